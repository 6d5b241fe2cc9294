/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Reentry: levels, their counts here and in Redis, and their effect on the lease. */

#include "support/actor.h"
#include "support/kit.h"

static hl_client *client;
static hl_lock *lock;

static void begin(const hl_client_options *options)
{
    client = open_client(options);
    lock = new_lock(client, "stock");
}

Law(reentry, counts_its_levels_here_and_in_redis)
{
    begin(NULL);
    check_int(hl_lock_hold_count(lock, NULL), 0);
    for (int level = 1; level <= 3; level++) {
        expect_ok(hl_lock_acquire(lock, NULL));
        check_int(hl_lock_hold_count(lock, NULL), level);
        expect_held_by(client, lock, level);
    }
    for (int level = 2; level >= 1; level--) {
        expect_ok(hl_lock_release(lock, NULL));
        check_int(hl_lock_hold_count(lock, NULL), level);
        check(hl_lock_is_held(lock, NULL));
        expect_held_by(client, lock, level);
    }
    expect_ok(hl_lock_release(lock, NULL));
    check_int(hl_lock_hold_count(lock, NULL), 0);
    check(!hl_lock_is_held(lock, NULL));
    expect_free(lock);
}

Law(reentry, is_local_and_the_count_in_redis_follows_in_the_end)
{
    begin(NULL);
    for (int i = 0; i < 1000; i++)
        expect_ok(hl_lock_try_acquire(lock, NULL));
    expect_held_by(client, lock, 1000);
    check(stats_of(client).commands < 1500);
    for (int i = 0; i < 999; i++)
        expect_ok(hl_lock_release(lock, NULL));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
    check_int(stats_of(client).acquires, 1000);
    check_int(stats_of(client).releases, 1000);
}

Law(reentry, belongs_to_the_owner_whatever_handle_it_uses)
{
    begin(NULL);
    hl_lock *same = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_try_acquire(same, NULL));
    check_int(hl_lock_hold_count(lock, NULL), 2);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(same, NULL));
    expect_free(lock);
}

Law(reentry, keeps_others_out_until_the_last_level_is_released)
{
    begin(NULL);
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_outcome(actor_acquire(other, lock, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_acquire(other, lock, ACQUIRE(.wait_ms = 0)));
}

Law(reentry, never_shortens_the_lease)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 60000), NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 1000), NULL));
    expect_held_by(client, lock, 2);
    check(pttl_of(lock) > 50000);
    check(hl_lock_validity_ms(lock, NULL) > 50000);
    expect_ok(hl_lock_release(lock, NULL));
    expect_held_by(client, lock, 1);
    check(pttl_of(lock) > 50000);
    check(hl_lock_validity_ms(lock, NULL) > 50000);
}

Law(reentry, makes_the_lease_longer_when_it_asks_for_more)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 5000), NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 60000), NULL));
    check(pttl_of(lock) > 50000);
    check(hl_lock_validity_ms(lock, NULL) > 50000);
    check_int(hl_lock_hold_count(lock, NULL), 2);
    expect_held_by(client, lock, 2);
    expect_ok(hl_lock_release(lock, NULL));
    check(hl_lock_validity_ms(lock, NULL) > 50000);
}

Law(reentry, without_a_lease_time_makes_the_hold_a_renewed_one)
{
    begin(CLIENT(.watchdog_timeout_ms = slow_ms(1000)));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(1000)), NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    wait_stat(client, renewals, 4); /* for longer than that */
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    wait_stat(client, renewals, 6);
    check(hl_lock_is_held(lock, NULL)); /* it stays so */
    expect_ok(hl_lock_release(lock, NULL));
}

Law(reentry, with_a_lease_time_leaves_a_renewed_hold_renewed)
{
    begin(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(50)), NULL));
    wait_stat(client, renewals, 4);
    check_int(hl_lock_hold_count(lock, NULL), 2);
    expect_held_by(client, lock, 2);
}

Law(reentry, into_a_lost_hold_is_refused_until_each_level_is_released)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(1500)), NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(10)), NULL));
    expect_free(lock);
    expect_outcome(hl_lock_acquire(lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_ELOST);
    check_int(hl_lock_hold_count(lock, NULL), 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_acquire(lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    expect_ok(hl_lock_acquire(lock, NULL));
}

Law(reentry, that_finds_its_outer_hold_gone_in_redis_is_refused)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 5000), NULL));
    redis_do(server, "DEL stock");
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 60000), NULL), HL_ELOST);
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
}

Law(reentry, of_one_owner_is_no_reentry_of_another)
{
    begin(NULL);
    hl_owner *a = new_owner(client), *b = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = a), NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = a), NULL));
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.owner = b), NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    check_int(hl_lock_hold_count(lock, a), 2);
    check_int(hl_lock_hold_count(lock, b), 0);
    check_int(hl_lock_hold_count(lock, NULL), 0);
}

/* A server that does not answer, while a nested call wants a longer lease of it. */
static struct actor *begin_deepening(const hl_acquire_options *options, hl_owner *owner)
{
    struct actor *actor = actor_start();
    hl_acquire_options longer = *options;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 60000, .owner = owner), NULL));
    uint64_t commands = stats_of(client).commands;
    redis_server_freeze(server);
    longer.lease_ms = 3600000;
    longer.owner = owner;
    actor_begin_acquire(actor, lock, &longer);
    wait_stat(client, commands, commands + 1);
    return actor;
}

static void check_outer_hold(hl_owner *owner)
{
    redis_server_thaw(server);
    check(hl_lock_is_held(lock, owner));
    check_int(hl_lock_hold_count(lock, owner), 1);
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 7200000, .owner = owner), NULL));
    expect_held_by(client, lock, 2);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_free(lock);
}

SingleLaw(reentry, that_is_cancelled_leaves_the_outer_hold_as_it_was)
{
    begin(CLIENT(.request_timeout_ms = 60000));
    hl_owner *owner = new_owner(client);
    hl_cancel *cancel = new_cancel();
    struct actor *actor =
        begin_deepening(ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel), owner);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(actor), HL_ECANCELED);
    check_outer_hold(owner);
}

SingleLaw(reentry, that_is_not_answered_in_time_leaves_the_outer_hold_as_it_was)
{
    begin(CLIENT(.request_timeout_ms = 60000));
    hl_owner *owner = new_owner(client);
    struct actor *actor = begin_deepening(ACQUIRE(.wait_ms = 50), owner);
    expect_outcome(actor_end(actor), HL_ETIMEDOUT);
    check(strstr(actor_error(actor), "the wait time is over; no answer came by then"));
    check(actor_took_ms(actor) >= 50 && actor_took_ms(actor) < slow_ms(20000));
    check_outer_hold(owner);
}

SingleLaw(reentry, that_is_under_way_ends_with_the_close)
{
    begin(CLIENT(.request_timeout_ms = 60000));
    struct actor *actor = begin_deepening(ACQUIRE(.wait_ms = HL_WAIT_FOREVER), new_owner(client));
    close_client(client);
    expect_outcome(actor_end(actor), HL_ECANCELED);
    redis_server_thaw(server);
}

SingleLaw(reentry, that_is_under_way_when_the_hold_ends_is_lost_with_it)
{
    begin(CLIENT(.request_timeout_ms = 60000));
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(300), .owner = owner), NULL));
    redis_server_freeze(server);
    actor_begin_acquire(actor, lock,
                        ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .lease_ms = 60000, .owner = owner));
    expect_outcome(actor_end(actor), HL_ELOST);
    redis_server_thaw(server);
    check(!hl_lock_is_held(lock, owner));
    expect_outcome(hl_lock_release_as(lock, owner, NULL), HL_ELOST);
    expect_free(lock);
}
