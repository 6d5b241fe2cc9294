/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A process, or one thread of it, that stands still for longer than its lease: what it believes
 * when it goes on. */
#include "process_kit.h"

#include <semaphore.h>
#include <signal.h>

#include "lease/calls/client.h"
#include "support/history.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/redis_probe.h"

enum { GO, READY, GO_ON, DONE };

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
}

static void stop(void)
{
    redis_server_stop(server);
}

static int64_t stop_lease_ms(void)
{
    return slow_ms(450) + 2550;
}

static hl_client *stop_open(const char *url, struct events *events)
{
    hl_client_options options = kit_options(stop_lease_ms(), events);
    return open_client_at(url, &options);
}

/* One that holds on, beside the one that stands still. */
static hl_client *stop_open_other(void)
{
    hl_client_options options = kit_options(slow_ms(60000), NULL);
    return open_client(&options);
}

static void history_path(char path[128], const char *who)
{
    snprintf(path, 128, "%s/history.%s", redis_server_dir(server), who);
}

/* The time comes first: what is true later was true then, wherever between the two we are stopped.
 */
static void believe(struct history_record *record, const hl_lock *lock)
{
    int64_t now = now_ns(), left_ms = hl_lock_validity_ms(lock, NULL);
    if (left_ms > 0)
        history_until(record, now + left_ms * 1000000);
}

/* Before anything else can have run in this process, it does not believe any more. */
static void expect_lost_at_once(const hl_lock *lock)
{
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_validity_ms(lock, NULL), 0);
    check_int(hl_lock_hold_count(lock, NULL), 0);
}

static void hold_over_a_stop(struct process *self, void *arg)
{
    static struct events events;
    char path[128];
    (void)arg;
    check(process_await(self, GO, 1, 20000));
    hl_client *client = stop_open(process_shared(self), &events);
    hl_lock *lock = new_lock(client, "stopped");
    expect_ok(hl_lock_acquire(lock, ERR));
    history_path(path, "holder");
    struct history *history = history_open(path, 8);
    struct history_record *record = history_enter(history, 1, 1);
    believe(record, lock);
    process_tell(self, READY);
    while (!process_await(self, GO_ON, 1, 0))
        believe(record, lock);

    expect_lost_at_once(lock);
    check(events_wait(&events, HL_EVENT_LOST, 1, 2000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(process_await(self, GO_ON, 2, 20000)); /* the late renewal has been answered */
    expect_lost_at_once(lock);
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_outcome(hl_lock_release(lock, ERR), HL_ENOTOWNER);
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    check_int(stats_of(client).losses, 1);
    history_close(history);
    free_lock(lock);
    close_client(client);
}

static bool renewal_is_kept(void *arg)
{
    struct proxy *proxy = arg;
    return proxy_kept(proxy, PROXY_EVERY, PROXY_UP) > 0;
}

Test(process_stop, a_holder_stopped_past_its_lease_knows_it_before_any_reply, .init = start,
     .fini = stop)
{
    struct process *holder = process_start(hold_over_a_stop, NULL);
    struct proxy *proxy = proxy_start_before(server);
    snprintf(process_shared(holder), 128, "%s", proxy_url(proxy));
    process_tell(holder, GO);
    check(process_await(holder, READY, 1, 20000));
    int commands = proxy_find(proxy, "EVALSHA");
    check(commands >= 0);
    proxy_hold(proxy, commands, PROXY_UP);
    check(wait_until(renewal_is_kept, proxy, 5000));
    process_stop(holder);

    hl_client *client = stop_open_other();
    hl_lock *lock = new_lock(client, "stopped");
    char path[2][128];
    history_path(path[0], "holder");
    history_path(path[1], "next");
    struct history *history[2] = {history_open(path[0], 8), history_open(path[1], 8)};
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), ERR));
    struct history_record *record = history_enter(history[1], 1, 2);

    process_tell(holder, GO_ON);
    process_continue(holder);
    uint64_t answered = proxy_bytes(proxy, commands, PROXY_DOWN);
    proxy_release(proxy, commands, PROXY_UP); /* the renewal comes late */
    struct deadline deadline = deadline_of_wait(5000);
    while (proxy_bytes(proxy, commands, PROXY_DOWN) == answered && !deadline_is_over(deadline))
        deadline_nap();
    process_tell(holder, GO_ON);
    check_int(process_finish(holder, 10000), 0);

    check(hl_lock_is_held(lock, NULL)); /* nothing of the late one has harmed it */
    check_int(redis_int(server, "HLEN stopped"), 1);
    history_leave(record);
    expect_ok(hl_lock_release(lock, ERR));
    check_int(history_count(history[0]), 1);
    check_int(history_check(history, 2, NULL), 0);
    history_close(history[0]);
    history_close(history[1]);
    free_lock(lock);
    close_client(client);
    proxy_stop(proxy);
}

struct reading {
    int64_t wait_ms;
    bool is_ours_in_the_end;
};

static void acquire_over_a_stop(struct process *self, void *arg)
{
    const struct reading *reading = arg;
    check(process_await(self, GO, 1, 20000));
    hl_client *client = stop_open(process_shared(self), NULL);
    hl_lock *lock = new_lock(client, "stopped");
    kit_try_out(client, "warm"); /* the server knows the scripts */
    process_tell(self, READY);
    check(process_await(self, GO_ON, 1, 20000));
    int code = hl_lock_acquire_for(lock, reading->wait_ms, NULL);
    if (reading->is_ours_in_the_end) {
        check_int(code, HL_OK);
        check(hl_lock_is_held(lock, NULL));
        int64_t looked = now_ms(), validity = hl_lock_validity_ms(lock, NULL);
        int64_t left = redis_int(server, "PTTL stopped");
        check(looked + validity <= left + now_ms());
        expect_ok(hl_lock_release(lock, ERR));
    } else { /* the latter when its time was over before it could read that another holds */
        check(code == HL_ETIMEDOUT || code == HL_ECONN);
        check(!hl_lock_is_held(lock, NULL));
        expect_outcome(hl_lock_release(lock, ERR), HL_ENOTOWNER);
    }
    free_lock(lock);
    close_client(client);
}

static bool grant_is_kept(void *arg)
{
    struct proxy *proxy = arg;
    return proxy_kept(proxy, PROXY_EVERY, PROXY_DOWN) > 0;
}

static bool all_is_delivered(void *arg)
{
    struct proxy *proxy = arg;
    return proxy_kept(proxy, PROXY_EVERY, PROXY_DOWN) == 0;
}

/* The grant arrives in the socket of a process that is stopped, and is read when its lease is over.
 * Returns with the process stopped and the key gone. */
static void stop_before_the_grant_is_read(struct process *process, struct proxy *proxy)
{
    snprintf(process_shared(process), 128, "%s", proxy_url(proxy));
    process_tell(process, GO);
    check(process_await(process, READY, 1, 20000));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    process_tell(process, GO_ON);
    check(redis_wait_int(server, 1, 5000, "EXISTS stopped"));
    check(wait_until(grant_is_kept, proxy, 5000));
    process_stop(process);
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    check(wait_until(all_is_delivered, proxy, 5000));
    check(redis_wait_int(server, 0, 10000, "EXISTS stopped"));
}

Test(process_stop, a_grant_read_after_its_lease_is_no_hold_and_the_wait_goes_on, .init = start,
     .fini = stop)
{
    struct reading reading = {HL_WAIT_FOREVER, true};
    struct process *process = process_start(acquire_over_a_stop, &reading);
    struct proxy *proxy = proxy_start_before(server);
    stop_before_the_grant_is_read(process, proxy);
    int64_t asked = redis_evalsha_calls(server);
    process_continue(process);
    check_int(process_finish(process, 10000), 0);
    check(redis_evalsha_calls(server) >= asked + 2); /* asked anew, and released */
    proxy_stop(proxy);
}

Test(process_stop, a_grant_read_after_its_lease_times_out_when_another_holds, .init = start,
     .fini = stop)
{
    struct reading reading = {stop_lease_ms() + slow_ms(1000), false};
    struct process *process = process_start(acquire_over_a_stop, &reading);
    struct proxy *proxy = proxy_start_before(server);
    stop_before_the_grant_is_read(process, proxy);
    hl_client *client = stop_open_other();
    hl_lock *lock = new_lock(client, "stopped");
    expect_ok(hl_lock_try_acquire(lock, ERR));
    process_continue(process);
    check_int(process_finish(process, 10000), 0);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
    proxy_stop(proxy);
}

static sem_t handler_entered;
static int handler_may_go[2]; /* a pipe: sem_wait is not for signal handlers */

static void stand_still(int signal)
{
    char byte;
    (void)signal;
    sem_post(&handler_entered);
    while (read(handler_may_go[0], &byte, 1) != 1)
        ;
}

struct stand {
    hl_lock *lock;
    int64_t lease_ms;
    atomic_bool is_back;
};

static void *acquire_and_check(void *arg)
{
    struct stand *stand = arg;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_WAIT_FOREVER;
    options.lease_ms = stand->lease_ms;
    expect_ok(hl_lock_acquire_with(stand->lock, &options, ERR));
    check(hl_lock_is_held(stand->lock, NULL));
    atomic_store(&stand->is_back, true);
    expect_ok(hl_lock_release(stand->lock, ERR));
    return NULL;
}

/* The grant is read in time by the loop; the caller alone sleeps through its lease. */
Test(process_stop, a_caller_that_stands_still_past_its_lease_is_not_told_that_it_holds,
     .init = start, .fini = stop)
{
    sem_init(&handler_entered, 0, 0);
    check_int(pipe(handler_may_go), 0);
    check(signal(SIGUSR1, stand_still) != SIG_ERR);
    hl_client *client = stop_open(redis_server_url(server), NULL);
    hl_lock *before = new_lock(client, "stopped");
    expect_ok(hl_lock_acquire(before, ERR));
    struct stand stand = {.lock = new_lock(client, "stopped"), .lease_ms = slow_ms(1000) + 3000};
    pthread_t thread = kit_thread(acquire_and_check, &stand);
    while (stats_of(client).waiters_now == 0)
        deadline_nap();
    check_int(hl_lock_hold_count(before, NULL), 1); /* the thread has left the name's mutex */
    deadline_nap();
    pthread_kill(thread, SIGUSR1);
    sem_wait(&handler_entered);

    expect_ok(hl_lock_release(before, ERR));
    check(redis_wait_int(server, 1, 5000, "EXISTS stopped"));
    check(redis_wait_int(server, 0, 5000, "EXISTS stopped"));
    check(!atomic_load(&stand.is_back));
    check_int(write(handler_may_go[1], "", 1), 1);
    pthread_join(thread, NULL);
    check(atomic_load(&stand.is_back));
    check_int(stats_of(client).losses, 0); /* the caller never believed in the first one */
    free_lock(before);
    free_lock(stand.lock);
    close_client(client);
}

struct block {
    struct hli_task task;
    sem_t entered, may_go;
};

static void block_run(void *arg)
{
    struct block *block = arg;
    sem_post(&block->entered);
    while (sem_wait(&block->may_go) != 0)
        ;
}

Test(process_stop, a_blocked_loop_does_not_hide_that_a_hold_is_lost, .init = start, .fini = stop)
{
    static struct events events;
    struct block block = {.task = {.run = block_run, .arg = &block}};
    sem_init(&block.entered, 0, 0);
    sem_init(&block.may_go, 0, 0);
    hl_client *client = stop_open(redis_server_url(server), &events);
    hl_lock *lock = new_lock(client, "stopped");
    expect_ok(hl_lock_acquire(lock, ERR));
    hli_loop_post(client->loop, &block.task);
    sem_wait(&block.entered);
    int64_t valid_until = now_ns() + hl_lock_validity_ms(lock, NULL) * 1000000;

    check(events_wait(&events, HL_EVENT_JEOPARDY, 1, 2000));
    check(hl_lock_is_held(lock, NULL) || now_ns() > valid_until);
    check(events_wait(&events, HL_EVENT_LOST, 1, 2000));
    int64_t late_ms = (atomic_load(&events.at_ns[HL_EVENT_LOST]) - valid_until) / 1000000;
    check_msg(late_ms < slow_ms(10000), "told %d ms late", (int)late_ms);
    check_str(events.reason[HL_EVENT_LOST], "expired");
    expect_lost_at_once(lock);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(50), ERR),
                   HL_ETIMEDOUT); /* the server does not read */
    expect_lost_at_once(lock);

    sem_post(&block.may_go);
    kit_try_out(client, "stopped");
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    free_lock(lock);
    close_client(client);
}
