/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A suspend: CLOCK_BOOTTIME, by which all is due, has gone on for an hour, and CLOCK_MONOTONIC, by
 * which the kernel lets threads sleep, has not. What became due meanwhile is told soon, and not
 * when the sleep that was begun before is over.
 */

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "support/actor.h"
#include "support/kit.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;
static _Atomic int64_t suspended_s;

/* In place of the C library's, for the library too. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret_time);

    if (clock == CLOCK_BOOTTIME)
        ret_time->tv_sec += atomic_load(&suspended_s);
    return result;
}

static void suspend(void)
{
    atomic_fetch_add(&suspended_s, 3600);
}

/* Nothing is due for minutes. A subscription may be on its way; the silence of an hour is then held
 * against the server, and waits end in HL_ECONN. */
static hl_client *open_quiet(void)
{
    return open_client(CLIENT(.poll_ms = 600000, .outage_timeout_ms = 600000,
                              .watchdog_timeout_ms = 600000, .on_event = record_event,
                              .arg = &told));
}

Law(suspend, of_a_holder_is_told_as_a_loss_when_it_is_over)
{
    hl_client *client = open_quiet();
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(redis_wait_clients(server, REDIS_PUBSUB, 1, 5000)); /* no subscription is on its way */
    suspend();
    expect_story(&told, "LOST expired"); /* before any call could notice it */
    check(!hl_lock_is_held(lock, NULL));
}

/* Its age counts from the end of the lease, for what was done since then is in question. */
Law(suspend, of_a_holder_ends_its_hold_when_its_lease_ran_out)
{
    hl_client *client = open_quiet();
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;
    double ago_s = 0;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 600000), NULL));
    check(redis_wait_clients(server, REDIS_PUBSUB, 1, 5000));
    suspend();
    expect_story(&told, "LOST expired");
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    check_msg(sscanf(err.text,
                     "release 'stock': the hold ended before its release (its lease ran out %lf s "
                     "ago)",
                     &ago_s) == 1 &&
                  ago_s >= 3000,
              "%s", err.text);
}

static hl_lock *lock_held_elsewhere(hl_client *client)
{
    redis_do(server, "HSET stock stranger:1 1");
    redis_do(server, "PEXPIRE stock 7200000");
    return new_lock(client, "stock");
}

static bool actor_is_over(void *actor)
{
    return actor_is_done(actor);
}

Law(suspend, of_a_waiter_counts_as_waiting)
{
    hl_client *client = open_quiet();
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock_held_elsewhere(client), ACQUIRE(.wait_ms = 500000));
    expect_waiters(client, 1);
    expect_ok(hl_client_ping(client, 5000, NULL)); /* behind what it asked */
    suspend();
    check(wait_until(actor_is_over, actor, 20000));
    int code = actor_end(actor);
    check_msg(code == HL_ETIMEDOUT || code == HL_ECONN, "%s", hl_err_name(code));
}

Law(suspend, of_an_async_waiter_counts_as_waiting)
{
    hl_client *client = open_quiet();
    expect_ok(hl_lock_acquire_async(lock_held_elsewhere(client),
                                    ACQUIRE(.wait_ms = 500000, .owner = new_owner(client)),
                                    record_done, &told));
    expect_ok(hl_client_ping(client, 5000, NULL));
    suspend();
    check(recorder_wait_says(&told, "done HL_E"));
}
