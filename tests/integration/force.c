/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Force release: for operators. */

#include "support/actor.h"
#include "support/kinds.h"
#include "support/kit.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

Law(force_release, takes_the_lock_from_another_client_and_tells_it)
{
    hl_client *holder = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(6000), .on_event = record_event, .arg = &told));
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
    check(now_ms() - before_ms < slow_ms(8000)); /* the next renewal is due in 10 s */
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
    check(now_ms() - before_ms < slow_ms(8000));
    expect_held_by(client, lock, 1);
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    expect_held_by(client, lock, 1); /* which the late release left alone */
}

Law(force_release, reports_a_lock_that_is_free)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_force_release(lock, &err), HL_ENOENT);
    check_str(err.text, "force release 'stock': nobody holds it");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOENT);
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

static hl_lock *fair_of(hl_client *client)
{
    hl_lock *fair = NULL;
    expect_ok(fair_lock_new(client, "fair", NULL, &fair, NULL));
    return keep_lock(fair);
}

static hl_lock *fenced_of(hl_client *client)
{
    hl_lock *fenced = NULL;
    expect_ok(fenced_lock_new(client, "fenced", NULL, &fenced, NULL));
    return keep_lock(fenced);
}

static hl_lock *half_of(hl_client *client, bool writes)
{
    hl_lock *half[2] = {NULL, NULL};
    expect_ok(rw_lock_new(client, "both", NULL, &half[0], &half[1], NULL));
    keep_lock(half[0]), keep_lock(half[1]);
    return half[writes];
}

/* The call's own thread would go on as if it held, if it were told by a renewal. */
static void expect_over_at_once(hl_lock *lock, hl_lock *others)
{
    for (int round = 0; round < 20; round++) {
        expect_ok(hl_lock_acquire(lock, NULL));
        expect_ok(hl_lock_force_release(lock, NULL));
        check(!hl_lock_is_held(lock, NULL));
        expect_ok(hl_lock_acquire_for(others, slow_ms(5000), NULL));
        expect_outcome(hl_lock_try_acquire(lock, NULL), HL_ELOST);
        expect_ok(hl_lock_release(others, NULL));
        expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    }
}

Law(force_release, ends_a_hold_of_its_own_client_before_it_returns)
{
    hl_client *client = open_client(NULL), *other = open_client(NULL);
    expect_over_at_once(new_lock(client, "stock"), new_lock(other, "stock"));
    expect_over_at_once(fair_of(client), fair_of(other));
    expect_over_at_once(fenced_of(client), fenced_of(other));
    expect_over_at_once(half_of(client, false), half_of(other, true));
    expect_over_at_once(half_of(client, true), half_of(other, true));
    check_int(stats_of(client).losses, 5 * 20);
}

Law(force_release, of_a_write_lock_ends_its_owners_read_hold_and_not_the_other_way_round)
{
    hl_client *client = open_client(NULL);
    hl_lock *read = NULL, *write = NULL;
    expect_ok(rw_lock_new(client, "both", NULL, &read, &write, NULL));
    keep_lock(read), keep_lock(write);
    expect_ok(hl_lock_acquire(write, NULL));
    expect_ok(hl_lock_acquire(read, NULL));
    expect_ok(hl_lock_force_release(read, NULL));
    check(!hl_lock_is_held(read, NULL));
    check(hl_lock_is_held(write, NULL));
    expect_outcome(hl_lock_release(read, NULL), HL_ELOST);
    expect_ok(hl_lock_acquire(read, NULL));
    expect_ok(hl_lock_force_release(write, NULL));
    check(!hl_lock_is_held(write, NULL));
    check(!hl_lock_is_held(read, NULL));
    expect_outcome(hl_lock_release(read, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(write, NULL), HL_ELOST);
}

static void expect_refused(hl_lock *lock, const char *says)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_outcome(hl_lock_force_release(lock, &err), HL_ESERVER);
    check_msg(strstr(err.text, says) != NULL, "%s", err.text);
    expect_outcome(hl_lock_inspect(lock, &info, &err), HL_ESERVER);
    check_msg(strstr(err.text, says) != NULL, "%s", err.text);
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ESERVER);
    check_msg(strstr(err.text, says) != NULL, "%s", err.text);
    check_int(redis_int(server, "EXISTS orders"), 1);
    redis_do(server, "DEL orders");
}

/* A mistyped name deletes nothing, for a lock of any kind. */
Law(force_release, reports_the_type_of_a_key_that_is_no_lock_and_leaves_it)
{
    hl_client *client = open_client(NULL);
    hl_lock *locks[5] = {NULL};
    expect_ok(hl_lock_new(client, "orders", &locks[0], NULL));
    expect_ok(fair_lock_new(client, "orders", NULL, &locks[1], NULL));
    expect_ok(fenced_lock_new(client, "orders", NULL, &locks[2], NULL));
    expect_ok(rw_lock_new(client, "orders", NULL, &locks[3], &locks[4], NULL));
    for (int i = 0; i < 5; i++) {
        redis_do(server, "SET orders important");
        expect_refused(locks[i], "no lock but a string");
        redis_do(server, "RPUSH orders a b");
        expect_refused(locks[i], "no lock but a list");
        redis_do(server, "HSET orders alice 1 bob 2");
        expect_refused(locks[i], "no lock but a hash whose field 'alice'");
        hl_lock_free(locks[i]);
    }
}

/* An acquire waits for any field that looks like an owner; a forced release checks it. */
Law(force_release, of_an_owner_that_is_no_client_of_ours_or_redissons_is_refused)
{
    hl_lock *lock = new_lock(open_client(NULL), "cart");
    hl_error err = HL_ERROR_INIT;
    redis_do(server, "HSET cart item:17 2");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_force_release(lock, &err), HL_ESERVER);
    check_msg(strstr(err.text, "'item:17'") != NULL, "%s", err.text);
    check_int(redis_int(server, "HGET cart item:17"), 2);
}
