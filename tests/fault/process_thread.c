/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Threads that end, hang, or are cancelled while they hold or wait, and callbacks that do not come
 * back. */
#include "process_kit.h"

#include <errno.h>
#include <semaphore.h>

#include "support/aof.h"
#include "support/redis_probe.h"

static struct events events;

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.appendonly = true});
}

static void stop(void)
{
    redis_server_stop(server);
}

static hl_client *thread_open(int64_t watchdog_ms, unsigned flags)
{
    hl_client_options options = kit_options(watchdog_ms, &events);
    options.flags = flags;
    return open_client(&options);
}

static void *acquire_and_leave(void *lock)
{
    expect_ok(hl_lock_acquire(lock, ERR));
    return NULL;
}

struct waiter {
    hl_lock *lock;
    _Atomic int64_t at_ms;
};

static void *acquire_then_release(void *arg)
{
    struct waiter *waiter = arg;
    expect_ok(hl_lock_acquire_for(waiter->lock, slow_ms(20000), ERR));
    atomic_store(&waiter->at_ms, now_ms());
    expect_ok(hl_lock_release(waiter->lock, ERR));
    return NULL;
}

Test(process_thread, a_thread_that_ends_holding_is_not_renewed_any_more, .init = start,
     .fini = stop)
{
    hl_client *client = thread_open(slow_ms(600) + 7400, 0);
    hl_client *other = open_client(NULL);
    struct waiter waiter[2] = {{.lock = new_lock(client, "left")},
                               {.lock = new_lock(other, "left")}};
    hl_lock *lock = new_lock(client, "left");
    pthread_t thread = kit_thread(acquire_and_leave, lock);
    pthread_join(thread, NULL);
    check(events_wait(&events, HL_EVENT_LOST, 1, 2000));
    check_str(events.reason[HL_EVENT_LOST], "thread exit");
    size_t renewals = aof_count(server, "PEXPIREAT left");
    int64_t free_by = now_ms() + redis_int(server, "PTTL left") + 1300;

    pthread_t next[2];
    for (int i = 0; i < 2; i++)
        next[i] = kit_thread(acquire_then_release, &waiter[i]);
    while (stats_of(client).waiters_now == 0 && atomic_load(&waiter[0].at_ms) == 0)
        deadline_nap();
    check(redis_int(server, "PTTL left") > 0); /* not released at once: its work is half done */
    check_int(aof_count(server, "PEXPIREAT left"), renewals);
    for (int i = 0; i < 2; i++) {
        pthread_join(next[i], NULL);
        check(atomic_load(&waiter[i].at_ms) < free_by + slow_ms(5000));
        free_lock(waiter[i].lock);
    }
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    check_int(stats_of(client).holds_now, 0);
    free_lock(lock);
    close_client(client);
    close_client(other);
}

Test(process_thread, a_thread_that_ends_holding_releases_if_the_client_says_so, .init = start,
     .fini = stop)
{
    hl_client *client = thread_open(30000, HL_CLIENT_RELEASE_ON_THREAD_EXIT);
    hl_lock *lock = new_lock(client, "left");
    pthread_join(kit_thread(acquire_and_leave, lock), NULL);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    free_lock(lock);
    close_client(client);
}

/* The thread hangs in its work: it makes no call, and the watchdog would renew for ever. */
Test(process_thread, max_hold_ends_the_hold_of_a_thread_that_hangs, .init = start, .fini = stop)
{
    const int64_t lease_ms = slow_ms(900) + 2100;
    const int64_t leash_ms = lease_ms * 11 / 6; /* it ends between two renewals */
    hl_client *client = thread_open(lease_ms, 0);
    hl_lock *lock = new_lock(client, "leashed");
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    options.max_hold_ms = leash_ms;
    int64_t before = now_ms();
    expect_ok(hl_lock_acquire_with(lock, &options, ERR));
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    int64_t held_ms = now_ms() - before;
    check_str(events.reason[HL_EVENT_LOST], "max_hold");
    check_msg(held_ms >= leash_ms && held_ms < leash_ms + slow_ms(10000), "held for %d ms",
              (int)held_ms);
    check(!hl_lock_is_held(lock, NULL));
    check(stats_of(client).renewals >= 3);
    size_t renewals = aof_count(server, "PEXPIREAT leashed");
    check(redis_wait_int(server, 0, lease_ms * 2, "EXISTS leashed"));
    check_int(aof_count(server, "PEXPIREAT leashed"), renewals);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    free_lock(lock);
    close_client(client);
}

static sem_t callback_entered, callback_may_go;

static void callback_hangs(int code, const hl_error *err, void *arg)
{
    (void)err, (void)arg;
    check_int(code, HL_OK);
    sem_post(&callback_entered);
    while (sem_wait(&callback_may_go) != 0)
        ;
}

Test(process_thread, a_callback_that_hangs_delays_no_renewal, .init = start, .fini = stop)
{
    sem_init(&callback_entered, 0, 0);
    sem_init(&callback_may_go, 0, 0);
    hl_client *client = thread_open(slow_ms(900) + 1100, 0);
    hl_lock *lock = new_lock(client, "renewed"), *asked = new_lock(client, "asked");
    hl_owner *owner = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    expect_ok(hl_owner_new(client, &owner));
    options.owner = owner;
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_acquire_async(asked, &options, callback_hangs, NULL));
    sem_wait(&callback_entered);

    struct deadline deadline = deadline_of_wait(20000);
    uint64_t enough = stats_of(client).renewals + 30; /* of two holds, in five leases */
    while (stats_of(client).renewals < enough && !deadline_is_over(deadline)) {
        check(hl_lock_is_held(lock, NULL) && hl_lock_is_held(asked, owner));
        deadline_nap();
    }
    check(!deadline_is_over(deadline));
    kit_try_out(client, "while it hangs");
    check_int(stats_of(client).losses, 0);
    sem_post(&callback_may_go);
    expect_ok(hl_lock_release_as(asked, owner, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_owner(owner);
    free_lock(asked);
    free_lock(lock);
    close_client(client);
}

struct cancelled {
    hl_client *client;
    hl_lock *lock;
    atomic_bool returned;
};

static void *wait_while_cancelled(void *arg)
{
    struct cancelled *cancelled = arg;
    expect_ok(hl_lock_acquire(cancelled->lock, ERR));
    atomic_store(&cancelled->returned, true);
    pthread_testcancel();
    return NULL;
}

Test(process_thread, a_wait_is_no_cancellation_point, .init = start, .fini = stop)
{
    hl_client *client = thread_open(slow_ms(400) + 2600, 0);
    struct cancelled cancelled = {.client = client, .lock = new_lock(client, "cancelled")};
    void *result = NULL;
    expect_ok(hl_lock_acquire(cancelled.lock, ERR));
    pthread_t thread = kit_thread(wait_while_cancelled, &cancelled);
    while (stats_of(client).waiters_now == 0)
        deadline_nap();
    check_int(pthread_cancel(thread), 0);
    check_int(pthread_tryjoin_np(thread, NULL), EBUSY);
    expect_ok(hl_lock_release(cancelled.lock, ERR));
    pthread_join(thread, &result);
    check(result == PTHREAD_CANCELED && atomic_load(&cancelled.returned));
    check(events_wait(&events, HL_EVENT_LOST, 1, 2000)); /* it ended as a holder */
    check_str(events.reason[HL_EVENT_LOST], "thread exit");
    kit_try_out(client, "cancelled");
    check_int(stats_of(client).holds_now, 0);
    free_lock(cancelled.lock);
    close_client(client);
}
