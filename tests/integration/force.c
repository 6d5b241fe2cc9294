/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Force release: for operators. */

#include "support/actor.h"
#include "support/lock_support.h"
#include "support/recorder.h"

#define Law(suite, name) Test(suite, name, .init = server_up, .fini = server_down)

static struct recorder told = RECORDER_INIT;

Law(force_release, takes_the_lock_from_another_client_who_is_told)
{
    hl_client *holder = open_client(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = record_event, .arg = &told));
    hl_lock *held = new_lock(holder, "stock");
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_free(lock);
    expect_story(&told, "LOST gone");
    check(!hl_lock_is_held(held, NULL));
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(held, NULL), HL_ENOTOWNER);
    check_int(redis_int(server, "EXISTS stock"), 0);
}

Law(force_release, tells_a_holder_of_its_own_client_without_waiting_for_a_renewal)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *holder = actor_start();
    expect_ok(actor_acquire(holder, lock, ACQUIRE(.wait_ms = 0)));
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_story(&told, "LOST gone");
    check(now_ms() - before_ms < slow_ms(3000)); /* the next renewal is due in 10 s */
    check(!actor_holds(holder, lock, NULL));
    expect_outcome(actor_release(holder, lock, NULL), HL_ELOST);
}

Law(force_release, wakes_a_waiter)
{
    hl_lock *held = new_lock(open_client(NULL), "stock");
    hl_client *client = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *waiter = actor_start();
    expect_ok(hl_lock_acquire(held, NULL));
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 5000));
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_ok(actor_end(waiter));
    check(now_ms() - before_ms < slow_ms(3000));
    expect_held_by(client, lock, 1);
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    expect_held_by(client, lock, 1); /* which the late release left alone */
}

Law(force_release, of_what_nobody_holds_says_so)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOTOWNER);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOTOWNER);
}

Law(force_release, of_a_leased_hold_is_noticed_by_its_release_at_the_latest)
{
    hl_lock *held = new_lock(open_client(NULL), "stock");
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire_with(held, ACQUIRE(.lease_ms = 60000), NULL));
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_ok(hl_lock_try_acquire(lock, NULL));
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    check(hl_lock_is_held(lock, NULL));
}
