/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Every thread of the program is interrupted a thousand times a second, by a handler without
 * SA_RESTART: each call ends as it would without. */
#include "process_kit.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "support/redis_probe.h"

enum { WORKERS = 4, TRIERS = 2 };

static hl_client *client;
static atomic_int interruptions, inside;
static atomic_bool is_over;

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
}

static void stop(void)
{
    redis_server_stop(server);
}

static void interrupted(int signal)
{
    (void)signal;
    atomic_fetch_add(&interruptions, 1);
}

static timer_t storm_begin(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    const struct itimerspec every = {{.tv_nsec = 1000000}, {.tv_nsec = 1000000}};
    event._sigev_un._tid = gettid();
    check_int(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    check_int(timer_settime(timer, 0, &every, NULL), 0);
    return timer;
}

static void *worker(void *arg)
{
    timer_t timer = storm_begin();
    hl_lock *lock = arg;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    while (!atomic_load(&is_over)) {
        expect_ok(hl_lock_acquire(lock, ERR));
        check_int(atomic_fetch_add(&inside, 1), 0);
        check(hl_lock_is_held(lock, NULL));
        expect_ok(hl_lock_inspect(lock, &info, ERR));
        check(info.locked && info.mine);
        atomic_fetch_sub(&inside, 1);
        expect_ok(hl_lock_release(lock, ERR));
        expect_ok(hl_client_ping(client, -1, ERR));
    }
    timer_delete(timer);
    return NULL;
}

/* Of a lock that is held all the time: a wait ends when its time is over, and not before. */
static void *trier(void *arg)
{
    timer_t timer = storm_begin();
    hl_lock *held = arg;
    while (!atomic_load(&is_over)) {
        int64_t before = now_ms();
        expect_outcome(hl_lock_acquire_for(held, 40, ERR), HL_ETIMEDOUT);
        check(now_ms() - before >= 40);
        expect_outcome(hl_lock_try_acquire(held, ERR), HL_EBUSY);
    }
    timer_delete(timer);
    return NULL;
}

static void completed(int code, const hl_error *err, void *arg)
{
    (void)err;
    check_int(code, HL_OK);
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void await_completed(const atomic_int *count, int value)
{
    struct deadline deadline = deadline_of_wait(10000);
    while (atomic_load(count) < value && !deadline_is_over(deadline))
        deadline_nap();
    check_int(atomic_load(count), value);
}

static void *async_worker(void *arg)
{
    timer_t timer = storm_begin();
    hl_lock *lock = arg;
    atomic_int count = 0;
    hl_owner *owner = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    expect_ok(hl_owner_new(client, &owner));
    options.wait_ms = HL_WAIT_FOREVER;
    options.owner = owner;
    for (int done = 0; !atomic_load(&is_over);) {
        expect_ok(hl_lock_acquire_async(lock, &options, completed, &count));
        await_completed(&count, ++done);
        check_int(atomic_fetch_add(&inside, 1), 0);
        atomic_fetch_sub(&inside, 1);
        expect_ok(hl_lock_release_async(lock, owner, completed, &count));
        await_completed(&count, ++done);
    }
    free_owner(owner);
    timer_delete(timer);
    return NULL;
}

Test(process_signals, a_storm_of_interruptions_changes_no_result, .init = start, .fini = stop)
{
    struct sigaction action = {.sa_handler = interrupted};
    static struct events events;
    pthread_t thread[WORKERS + TRIERS + 1];
    check_int(sigaction(SIGALRM, &action, NULL), 0);
    hl_client_options options = kit_options(slow_ms(2500), &events);
    client = open_client(&options);
    hl_lock *lock = new_lock(client, "stormy"), *held = new_lock(client, "held");
    expect_ok(hl_lock_acquire(held, ERR));
    for (int i = 0; i < WORKERS; i++)
        thread[i] = kit_thread(worker, lock);
    for (int i = 0; i < TRIERS; i++)
        thread[WORKERS + i] = kit_thread(trier, held);
    thread[WORKERS + TRIERS] = kit_thread(async_worker, lock);
    struct deadline deadline = deadline_in(1000);
    while (!deadline_is_over(deadline) || atomic_load(&interruptions) < 1000)
        deadline_nap();
    atomic_store(&is_over, true);
    for (int i = 0; i < WORKERS + TRIERS + 1; i++)
        pthread_join(thread[i], NULL);

    check(stats_of(client).acquires > 50);
    check_int(stats_of(client).losses, 0);
    check_int(stats_of(client).reconnects, 0);
    check(hl_lock_is_held(held, NULL));
    expect_ok(hl_lock_release(held, ERR));
    expect_gone(server, "stormy");
    expect_gone(server, "held");
    check_str(redis_str(server, "KEYS *"), "");
    free_lock(lock);
    free_lock(held);
    close_client(client);
}

static pthread_t the_caller;

/* Opening and closing wait as well. */
static void *interrupt_the_caller(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        pthread_kill(the_caller, SIGALRM);
        deadline_nap();
    }
    return NULL;
}

Test(process_signals, interruptions_do_not_disturb_open_and_close, .init = start, .fini = stop)
{
    struct sigaction action = {.sa_handler = interrupted};
    check_int(sigaction(SIGALRM, &action, NULL), 0);
    the_caller = pthread_self();
    pthread_t thread = kit_thread(interrupt_the_caller, NULL);
    for (int i = 0; i < 30; i++) {
        hl_client *opened = open_client(NULL);
        hl_lock *lock = new_lock(opened, "opened");
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
        free_lock(lock);
        close_client(opened);
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}
