/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The spin lock: the same lock, whose waiters look in, and whose release publishes nothing. */

#include "settled.h"
#include "support/actor.h"
#include "support/kinds.h"
#include "support/kit.h"
#include "support/listener.h"

static hl_lock *new_spin(hl_client *client, const hl_lock_options *options)
{
    hl_lock *lock = NULL;
    expect_ok(spin_lock_new(client, "stock", options, &lock, NULL));
    return lock;
}

#define SPIN(...) (&(hl_lock_options){.size = sizeof(hl_lock_options), __VA_ARGS__})

Law(spin_lock, excludes_locks_and_spin_locks_of_the_same_name)
{
    hl_client *a = open_client(NULL), *b = open_client(NULL);
    hl_lock *spin_a = new_spin(a, NULL), *spin_b = new_spin(b, NULL), *lock = new_lock(b, "stock");
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(spin_a, NULL));
    expect_held_by(a, spin_a, 1);
    expect_outcome(hl_lock_try_acquire(spin_b, NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(actor_acquire(other, spin_a, ACQUIRE(.wait_ms = 20)), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(spin_a, NULL));
    expect_ok(hl_lock_acquire(spin_b, NULL));
    expect_outcome(hl_lock_try_acquire(spin_a, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(lock, NULL)); /* they are one lock */
    expect_free(spin_a);
    hl_lock_free(spin_a);
    hl_lock_free(spin_b);
}

Law(spin_lock, nests_and_is_renewed)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *spin = new_spin(client, NULL);
    expect_ok(hl_lock_acquire(spin, NULL));
    expect_ok(hl_lock_acquire(spin, NULL));
    check_int(hl_lock_hold_count(spin, NULL), 2);
    wait_stat(client, renewals, 3);
    expect_ok(hl_lock_release(spin, NULL));
    check(hl_lock_is_held(spin, NULL));
    expect_ok(hl_lock_release(spin, NULL));
    expect_free(spin);
    hl_lock_free(spin);
}

Law(spin_lock, is_taken_soon_after_its_release_without_a_message)
{
    hl_client *a = open_client(NULL), *b = open_client(CLIENT(.poll_ms = 60000));
    hl_lock *held = new_spin(a, NULL), *waiting = new_spin(b, NULL);
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(held, NULL));
    int64_t messages = redis_calls(server, "publish");
    expect_ok(hl_lock_release(held, NULL));
    check_int(redis_calls(server, "publish"), messages);
    expect_ok(hl_lock_acquire(held, NULL));
    actor_begin_acquire(other, waiting, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(b, 1);
    check_int(redis_subscribers(server, "redisson_lock__channel:{stock}"), 0);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(other)); /* long before the poll, and the lease's end */
    check_int(redis_int(server, "EXISTS hirelock_queue:{stock}"), 0);
    expect_ok(actor_release(other, waiting, NULL));
    hl_lock_free(held);
    hl_lock_free(waiting);
}

/* Nothing is published to the lock's channel; the grant goes to the waiter's mailbox. */
Law(spin_lock, hands_the_lock_to_the_first_in_the_queue)
{
    hl_client *a = open_client(NULL), *b = open_client(CLIENT(.poll_ms = 60000));
    hl_lock *held = new_spin(a, NULL), *waiting = new_lock(b, "stock");
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(held, NULL));
    actor_begin_acquire(other, waiting, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_settled_wait(waiting);
    check_int(redis_int(server, "ZCARD hirelock_queue:{stock}"), 1);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(other));
    check_int(stats_of(b).grants, 1);
    expect_ok(actor_release(other, waiting, NULL));
    hl_lock_free(held);
}

/* Without a backoff that grows there would be 1,500 requests in 1.5 s; 128 ms between two of them
 * leave no more than about twenty. */
Law(spin_lock, looks_in_less_and_less_often)
{
    hl_client *a = open_client(NULL), *b = open_client(NULL);
    hl_lock *held = new_spin(a, NULL), *waiting = new_spin(b, NULL);
    expect_ok(hl_lock_acquire(held, NULL));
    int64_t before = redis_evalsha_calls(server);
    expect_outcome(hl_lock_acquire_for(waiting, slow_ms(1500), NULL), HL_ETIMEDOUT);
    int64_t asked = redis_evalsha_calls(server) - before;
    check(asked >= 7);
    check(asked <= 9 + slow_ms(1500) / 128 + 1);
    hl_lock_free(held);
    hl_lock_free(waiting);
}

Law(spin_lock, hears_the_releases_of_locks_if_it_wants_to)
{
    hl_client *a = open_client(NULL), *b = open_client(CLIENT(.poll_ms = 60000));
    hl_lock *held = new_lock(a, "stock");
    hl_lock *waiting = new_spin(b, SPIN(.flags = HL_LOCK_SUBSCRIBE, .backoff_min_ms = 60000));
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(held, NULL));
    actor_begin_acquire(other, waiting, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 5000));
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(other));
    expect_ok(actor_release(other, waiting, NULL));
    hl_lock_free(waiting);
}

Law(spin_lock, that_times_out_or_is_cancelled_leaves_nothing)
{
    hl_client *a = open_client(NULL), *b = open_client(NULL);
    hl_lock *held = new_spin(a, NULL), *waiting = new_spin(b, NULL);
    hl_cancel *cancel = new_cancel();
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(held, NULL));
    expect_outcome(hl_lock_acquire_for(waiting, 30, NULL), HL_ETIMEDOUT);
    actor_begin_acquire(other, waiting, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel));
    expect_waiters(b, 1);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(other), HL_ECANCELED);
    expect_ok(hl_lock_release(held, NULL));
    expect_free(held);
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
    hl_lock_free(held);
    hl_lock_free(waiting);
}

Law(spin_lock, refuses_a_backoff_that_makes_no_sense)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = NULL;
    const hl_lock_options bad[] = {
        {.size = sizeof(bad[0]), .backoff_min_ms = -1},
        {.size = sizeof(bad[0]), .backoff_min_ms = 60001},
        {.size = sizeof(bad[0]), .backoff_min_ms = 10, .backoff_max_ms = 9},
        {.size = sizeof(bad[0]), .backoff_max_ms = 60001},
        {.size = sizeof(bad[0]), .flags = HL_LOCK_PREFER_WRITERS},
        {.size = sizeof(bad[0]), .retain_ms = 10},
        {.size = 0},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_outcome(spin_lock_new(client, "stock", &bad[i], &lock, NULL), HL_EINVAL);
    check(!lock);
    expect_outcome(spin_lock_new(NULL, "stock", NULL, &lock, NULL), HL_EINVAL);
    expect_outcome(spin_lock_new(client, NULL, NULL, &lock, NULL), HL_EINVAL);
    expect_outcome(spin_lock_new(client, "stock", NULL, NULL, NULL), HL_EINVAL);
}

Law(spin_lock, may_be_released_asynchronously_and_not_nest_and_have_any_name)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = NULL;
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.kind = HL_LOCK_SPIN;
    options.flags = HL_LOCK_ASYNC_RELEASE | HL_LOCK_NON_REENTRANT;
    options.name = "a\0b";
    options.name_length = 3;
    expect_ok(hl_lock_new_with(client, &options, &lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    check_int(redis_int(server, "EXISTS %b", "a\0b", (size_t)3), 1);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EDEADLK);
    expect_ok(hl_lock_release(lock, NULL));
    close_client(client); /* behind the release */
    check_int(redis_int(server, "EXISTS %b", "a\0b", (size_t)3), 0);
    hl_lock_free(lock);
}
