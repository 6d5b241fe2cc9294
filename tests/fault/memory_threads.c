/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Allocations that fail on the library's own threads, where no caller can be told: whatever is to
 * be done then is done later, and no hold is lost or left behind for it.
 */
#include "memory_kit.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/census.h"
#include "support/grace.h"

static int files_before, wire; /* for commands that need no memory */

static void wire_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", redis_server_socket(server));
    wire = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(wire >= 0);
    check_int(connect(wire, (struct sockaddr *)&address, sizeof address), 0);
}

static void wire_send(const char *command)
{
    char reply[64];
    check(write(wire, command, strlen(command)) == (ssize_t)strlen(command));
    check(read(wire, reply, sizeof reply) > 0);
    check_msg(reply[0] == ':' || reply[0] == '+', "%s: %.20s", command, reply);
}

static void start(void)
{
    memory_up();
    redis_do(server, "PING");
    wire_open();
    files_before = census_files();
}

/* Two clients: what one has, the other's calls wait for. */
struct scene {
    hl_client *client, *other;
    struct events events;
    hl_lock *held, *awaited, *others;
    hl_owner *owner;
    atomic_int completions, code;
    int started;
};

static int64_t scene_lease_ms(void)
{
    return slow_ms(450) + 1050;
}

static void scene_open_with(struct scene *scene, const hl_client_options *wanted)
{
    hl_client_options options = *wanted;
    scene->events = (struct events){0};
    scene->client = open_client(&options);
    options.on_event = NULL;
    options.watchdog_timeout_ms = slow_ms(30000); /* its holds are not what is looked at */
    scene->other = open_client(&options);
    scene->held = new_lock(scene->client, "held");
    scene->awaited = new_lock(scene->client, "awaited");
    scene->others = new_lock(scene->other, "awaited");
    expect_ok(hl_owner_new(scene->client, &scene->owner));
    atomic_store(&scene->completions, 0);
    expect_ok(hl_lock_acquire(scene->held, ERR));
    expect_ok(hl_lock_acquire(scene->others, ERR));
}

static void scene_open(struct scene *scene, unsigned flags)
{
    hl_client_options options = kit_options(scene_lease_ms(), &scene->events);
    options.flags = flags;
    scene_open_with(scene, &options);
}

static void scene_prepare(void *arg)
{
    scene_open(arg, 0);
}

static void scene_completed(int code, const hl_error *err, void *arg)
{
    struct scene *scene = arg;
    (void)err;
    atomic_store(&scene->code, code);
    atomic_fetch_add(&scene->completions, 1);
}

static void scene_wait(struct scene *scene)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.owner = scene->owner;
    options.wait_ms = HL_WAIT_FOREVER;
    scene->started = hl_lock_acquire_async(scene->awaited, &options, scene_completed, scene);
}

static bool scene_completes(struct scene *scene, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (atomic_load(&scene->completions) == 0 && !deadline_is_over(deadline))
        deadline_nap();
    return atomic_load(&scene->completions) == 1;
}

static void scene_close_client(struct scene *scene)
{
    free_lock(scene->held);
    free_lock(scene->awaited);
    free_owner(scene->owner);
    if (scene->client)
        close_client(scene->client);
}

/* Nothing is left of either client, and the server is empty within a lease. */
static void scene_end(struct scene *scene)
{
    scene_close_client(scene);
    free_lock(scene->others);
    close_client(scene->other);
    kit_expect_no_threads();
    check_int(census_files(), files_before);
    check(redis_wait_int(server, 0, scene_lease_ms() * 2, "EXISTS held awaited"));
}

static long sweep(void (*prepare)(void *), void (*run)(void *), void (*verify)(void *, bool))
{
    struct scene scene;
    return failing_malloc_sweep(&(struct failing_scenario){
        .scope = FAILING_PROCESS, .prepare = prepare, .run = run, .verify = verify, .arg = &scene});
}

static void await_renewals(struct scene *scene, uint64_t enough)
{
    struct deadline deadline = deadline_of_wait(5000);
    while (stats_of(scene->client).renewals < enough && !deadline_is_over(deadline))
        deadline_nap();
    check_msg(!deadline_is_over(deadline), "%d renewals, not %d; %d lost, the last one: %s",
              (int)stats_of(scene->client).renewals, (int)enough,
              events_told(&scene->events, HL_EVENT_LOST), scene->events.reason[HL_EVENT_LOST]);
}

static void run_renewals(void *arg)
{
    struct scene *scene = arg;
    await_renewals(scene, stats_of(scene->client).renewals + 2);
}

static void verify_still_held(void *arg, bool failed)
{
    struct scene *scene = arg;
    (void)failed;
    check(hl_lock_is_held(scene->held, NULL));
    check_int(events_told(&scene->events, HL_EVENT_LOST), 0);
    kit_release(scene->held, NULL);
    kit_release(scene->others, NULL);
    scene_end(scene);
}

Test(memory_threads, one_failure_costs_no_renewed_hold, .init = start, .fini = memory_down)
{
    check(sweep(scene_prepare, run_renewals, verify_still_held) >= 4);
}

static void run_wait(void *arg)
{
    struct scene *scene = arg;
    scene_wait(scene);
    struct deadline asked = deadline_of_wait(5000);
    uint64_t before = stats_of(scene->client).commands;
    while (scene->started == HL_OK && stats_of(scene->client).commands < before + 2 &&
           !deadline_is_over(asked))
        deadline_nap();
    while (hl_lock_release(scene->others, NULL) == HL_ENOMEM)
        check(hl_lock_is_held(scene->others, NULL));
    if (scene->started == HL_OK)
        check(scene_completes(scene, 5000));
}

static void verify_wait(void *arg, bool failed)
{
    struct scene *scene = arg;
    check(scene->started == HL_OK || (failed && scene->started == HL_ENOMEM));
    if (scene->started == HL_OK) {
        check_int(atomic_load(&scene->code), HL_OK);
        check(hl_lock_is_held(scene->awaited, scene->owner));
        kit_release(scene->awaited, scene->owner);
    } else {
        check_int(atomic_load(&scene->completions), 0);
    }
    check(hl_lock_is_held(scene->held, NULL));
    kit_release(scene->held, NULL);
    check_int(events_told(&scene->events, HL_EVENT_LOST), 0);
    scene_end(scene);
}

Test(memory_threads, one_failure_costs_no_waiter_its_turn, .init = start, .fini = memory_down)
{
    check(sweep(scene_prepare, run_wait, verify_wait) >= 10);
}

static void prepare_waiting(void *arg)
{
    struct scene *scene = arg;
    scene_prepare(scene);
    scene_wait(scene);
    check_int(scene->started, HL_OK);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{awaited}", 1, 5000));
}

static void run_reconnect(void *arg)
{
    struct scene *scene = arg;
    struct deadline deadline = deadline_of_wait(5000);
    uint64_t renewals = stats_of(scene->client).renewals;
    wire_send("CLIENT KILL TYPE normal SKIPME yes\r\n");
    while ((stats_of(scene->client).reconnects == 0 || stats_of(scene->other).reconnects == 0) &&
           !deadline_is_over(deadline))
        deadline_nap();
    check(!deadline_is_over(deadline));
    await_renewals(scene, renewals + 1); /* at once, as the connection is new */
}

static void verify_reconnect(void *arg, bool failed)
{
    struct scene *scene = arg;
    (void)failed;
    check_int(atomic_load(&scene->completions), 0);
    check(hl_lock_is_held(scene->held, NULL));
    check_int(events_told(&scene->events, HL_EVENT_LOST), 0);
    kit_release(scene->others, NULL);
    check(scene_completes(scene, 5000));
    check_int(atomic_load(&scene->code), HL_OK);
    kit_release(scene->awaited, scene->owner);
    kit_release(scene->held, NULL);
    scene_end(scene);
}

Test(memory_threads, one_failure_ends_no_reconnect, .init = start, .fini = memory_down)
{
    check(sweep(prepare_waiting, run_reconnect, verify_reconnect) >= 20);
}

/* A lease so long that nothing is renewed before the failover. */
static void prepare_in_term(void *arg)
{
    struct scene *scene = arg;
    hl_client_options options = kit_options(slow_ms(30000), &scene->events);
    options.failover_grace_ms = options.watchdog_timeout_ms;
    redis_do(server, "DEL hirelock_term"); /* the last failover's grace lasts */
    grace_serve(server, false);
    scene_open_with(scene, &options);
}

static void run_failover(void *arg)
{
    struct scene *scene = arg;
    struct deadline deadline = deadline_of_wait(5000);
    wire_send("DEL held\r\n");
    wire_send("REPLICAOF 127.0.0.1 1\r\n");
    wire_send("REPLICAOF NO ONE\r\n");
    wire_send("CLIENT KILL TYPE normal SKIPME yes\r\n");
    while ((stats_of(scene->client).reclaims == 0 || stats_of(scene->other).reclaims == 0) &&
           !deadline_is_over(deadline))
        deadline_nap();
}

static void verify_failover(void *arg, bool failed)
{
    struct scene *scene = arg;
    (void)failed;
    check_int((int)stats_of(scene->client).reclaims, 1);
    check_int(redis_int(server, "EXISTS held awaited"), 2);
    verify_still_held(arg, failed);
}

Test(memory_threads, one_failure_ends_no_reclaim, .init = start, .fini = memory_down)
{
    check(sweep(prepare_in_term, run_failover, verify_failover) >= 20);
}

static void run_loss(void *arg)
{
    struct scene *scene = arg;
    wire_send("DEL held\r\n");
    check(events_wait(&scene->events, HL_EVENT_LOST, 1, 5000));
}

static void verify_loss(void *arg, bool failed)
{
    struct scene *scene = arg;
    (void)failed;
    check(!hl_lock_is_held(scene->held, NULL));
    expect_outcome(hl_lock_release(scene->held, ERR), HL_ELOST);
    kit_release(scene->others, NULL);
    check_int(events_told(&scene->events, HL_EVENT_LOST), 1);
    scene_end(scene);
}

Test(memory_threads, a_loss_is_told_without_memory, .init = start, .fini = memory_down)
{
    check(sweep(scene_prepare, run_loss, verify_loss) >= 2);
}

static void run_close(void *arg)
{
    struct scene *scene = arg;
    close_client(scene->client);
    scene->client = NULL;
}

static void verify_close(void *arg, bool failed)
{
    struct scene *scene = arg;
    (void)failed;
    check_int(atomic_load(&scene->completions), 1);
    check_int(atomic_load(&scene->code), HL_ECANCELED);
    check_int(events_told(&scene->events, HL_EVENT_LOST), 1);
    check_str(scene->events.reason[HL_EVENT_LOST], "closed");
    check(!hl_lock_is_held(scene->held, NULL));
    kit_release(scene->others, NULL);
    scene_end(scene);
}

Test(memory_threads, close_ends_every_wait_and_hold_without_memory, .init = start,
     .fini = memory_down)
{
    sweep(prepare_waiting, run_close, verify_close);
}

static void prepare_to_release_on_close(void *arg)
{
    scene_open(arg, HL_CLIENT_RELEASE_ON_CLOSE);
}

/* A release that cannot be sent is left to its lease, which scene_end() waits for. */
static void verify_release_on_close(void *arg, bool failed)
{
    struct scene *scene = arg;
    if (!failed)
        check_int(redis_int(server, "EXISTS held"), 0);
    check_int(events_told(&scene->events, HL_EVENT_LOST), 0);
    kit_release(scene->others, NULL);
    scene_end(scene);
}

Test(memory_threads, close_releases_as_soon_as_it_can, .init = start, .fini = memory_down)
{
    check(sweep(prepare_to_release_on_close, run_close, verify_release_on_close) >= 1);
}

static sem_t leaver_may_go, leaver_holds;

static void *hold_and_leave(void *arg)
{
    struct scene *scene = arg;
    hl_lock *lock = new_lock(scene->client, "left");
    expect_ok(hl_lock_acquire(lock, ERR));
    free_lock(lock);
    sem_post(&leaver_holds);
    while (sem_wait(&leaver_may_go) != 0)
        ;
    return NULL;
}

static pthread_t leaver;

static void prepare_leaver(void *arg)
{
    sem_init(&leaver_may_go, 0, 0);
    sem_init(&leaver_holds, 0, 0);
    scene_prepare(arg);
    leaver = kit_thread(hold_and_leave, arg);
    while (sem_wait(&leaver_holds) != 0)
        ;
}

static void run_leaver(void *arg)
{
    struct scene *scene = arg;
    sem_post(&leaver_may_go);
    pthread_join(leaver, NULL);
    check(events_wait(&scene->events, HL_EVENT_LOST, 1, 5000));
    await_renewals(scene, stats_of(scene->client).renewals + 1); /* the others' */
}

static void verify_leaver(void *arg, bool failed)
{
    struct scene *scene = arg;
    check_str(scene->events.reason[HL_EVENT_LOST], "thread exit");
    check_int(events_told(&scene->events, HL_EVENT_LOST), 1);
    check(redis_wait_int(server, 0, scene_lease_ms() * 2, "EXISTS left"));
    atomic_store(&scene->events.told[HL_EVENT_LOST], 0);
    verify_still_held(scene, failed);
}

Test(memory_threads, a_thread_exit_is_noticed_without_memory, .init = start, .fini = memory_down)
{
    check(sweep(prepare_leaver, run_leaver, verify_leaver) >= 1);
}

/* Not one failure, but as many as can be: while they last calls may fail, afterwards none does. */
enum { STORM_WORKERS = 3 };
static atomic_int storm_inside;
static atomic_bool storm_is_over;
static atomic_uint storm_acquired;

static void *storm_worker(void *arg)
{
    hl_lock *lock = arg;
    while (!atomic_load(&storm_is_over)) {
        int code = hl_lock_acquire_for(lock, slow_ms(500), NULL);
        if (code != HL_OK) {
            check_msg(code == HL_ENOMEM || code == HL_ECONN || code == HL_ETIMEDOUT, "%s",
                      hl_err_name(code));
            continue;
        }
        check_int(atomic_fetch_add(&storm_inside, 1), 0);
        atomic_fetch_add(&storm_acquired, 1);
        atomic_fetch_sub(&storm_inside, 1);
        do {
            code = hl_lock_release(lock, NULL);
        } while (code == HL_ENOMEM);
        check_msg(code == HL_OK || code == HL_EINDOUBT || code == HL_ELOST, "%s",
                  hl_err_name(code));
    }
    return NULL;
}

/* The owner is told of a hold that was lost in such a time. */
static int release_or_lost(hl_lock *lock, hl_owner *owner)
{
    bool is_held = hl_lock_is_held(lock, owner);
    if (is_held)
        kit_release(lock, owner);
    else
        expect_outcome(hl_lock_release_as(lock, owner, ERR), HL_ELOST);
    return is_held ? 0 : 1;
}

Test(memory_threads, a_time_without_memory_breaks_nothing_for_good, .init = start,
     .fini = memory_down)
{
    struct scene scene;
    pthread_t worker[STORM_WORKERS];
    scene_prepare(&scene);
    scene_wait(&scene);
    check_int(scene.started, HL_OK);
    hl_lock *lock = new_lock(scene.client, "stormy");
    for (int i = 0; i < STORM_WORKERS; i++)
        worker[i] = kit_thread(storm_worker, lock);
    struct deadline deadline = deadline_in(1000), longest = deadline_of_wait(20000);
    for (int i = 0; !deadline_is_over(deadline) ||
                    (atomic_load(&storm_acquired) == 0 && !deadline_is_over(longest));
         i++) {
        failing_malloc_arm(FAILING_PROCESS, 0);
        if (i % 100 == 50)
            wire_send("CLIENT KILL TYPE normal SKIPME yes\r\n");
        deadline_nap();
    }
    failing_malloc_disarm();
    atomic_store(&storm_is_over, true);
    for (int i = 0; i < STORM_WORKERS; i++)
        pthread_join(worker[i], NULL);

    check(atomic_load(&storm_acquired) > 0);
    kit_try_out(scene.client, "stormy");
    hl_lock_release(scene.others, NULL); /* no callback hears its events */
    check(scene_completes(&scene, 5000));
    int lost = release_or_lost(scene.held, NULL);
    if (atomic_load(&scene.code) == HL_OK)
        lost += release_or_lost(scene.awaited, scene.owner);
    check(events_told(&scene.events, HL_EVENT_LOST) >= lost);
    free_lock(lock);
    scene_end(&scene);
    check(redis_wait_int(server, 0, scene_lease_ms() * 2, "EXISTS stormy"));
}
