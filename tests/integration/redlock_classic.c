/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The classic lock: a Redlock of one server. */

#include "support/actor.h"
#include "support/ear.h"
#include "support/events.h"
#include "support/kinds.h"
#include "support/masters.h"

static hl_lock *new_classic(hl_client *client, const char *name)
{
    hl_client *clients[] = {client};
    return new_redlock_of(clients, 1, name, NULL);
}

Law(redlock_classic, is_a_key_with_a_value_and_an_expiry)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_classic(client, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .lease_ms = 60000), ERR));
    check_str(redis_str(server, "TYPE stock"), "string");
    const char *value = redis_str(server, "GET stock");
    check(strncmp(value, hl_client_id(client), 36) == 0 && value[36] == ':');
    int64_t left_ms = pttl_of(lock);
    check(left_ms > 0 && left_ms <= 60000);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    expect_free(lock);
}

Law(redlock_classic, has_another_value_for_each_hold)
{
    hl_lock *lock = new_classic(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    char first[128];
    snprintf(first, sizeof first, "%s", redis_str(server, "GET stock"));
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    check(strcmp(first, redis_str(server, "GET stock")) != 0);
    expect_ok(hl_lock_release(lock, ERR));
}

Law(redlock_classic, leaves_what_another_has)
{
    hl_lock *lock = new_classic(open_client(NULL), "stock");
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    redis_do(server, "SET stock another PX 60000");
    expect_outcome(acquire_past(lock, ACQUIRE(.wait_ms = HL_NO_WAIT), &busy), HL_EBUSY);
    check_str(busy.owner, "another");
    check(busy.lease_left_ms > 0 && busy.lease_left_ms <= 60000);
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    redis_do(server, "SET stock another PX 60000");
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    check_str(redis_str(server, "GET stock"), "another");
}

Law(redlock_classic, is_renewed_and_lost_when_its_key_is_gone)
{
    static struct events events;
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_classic(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(client, renewals, 4);
    check(hl_lock_is_held(lock, NULL));
    redis_do(server, "DEL stock");
    check(events_wait(&events, HL_EVENT_LOST, 1, 20000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    check_int(redis_int(server, "EXISTS stock"), 0);
}

Law(redlock_classic, wakes_its_waiters)
{
    hl_client *client = open_client(NULL);
    hl_client *clients[] = {client};
    hl_lock *held = new_classic(open_client(NULL), "stock");
    hl_lock *lock = new_redlock_of(
        clients, 1, "stock", REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY, .retry_min_ms = 60000));
    expect_ok(hl_lock_acquire(held, ERR));
    struct actor *thread = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, "hirelock_redlock:{stock}", 1, 10000));
    expect_ok(hl_lock_release(held, ERR));
    expect_ok(actor_end(thread));
    expect_ok(actor_release(thread, lock, NULL));
    expect_free(lock);
}

Law(redlock_classic, finds_a_release_that_nobody_tells)
{
    hl_lock *lock = new_classic(open_client(CLIENT(.poll_ms = 60000)), "stock");
    redis_do(server, "SET stock another PX 60000");
    struct actor *thread = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, "hirelock_redlock:{stock}", 1, 10000));
    redis_do(server, "DEL stock");
    expect_ok(actor_end(thread));
    expect_ok(actor_release(thread, lock, NULL));
}

Law(redlock_classic, nests_by_a_count_of_its_own)
{
    hl_client *clients[] = {open_client(NULL)};
    hl_lock *flat = new_classic(clients[0], "flat");
    hl_lock *deep = new_redlock_of(
        clients, 1, "deep", REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY | HL_REDLOCK_NESTS));
    expect_ok(hl_lock_acquire(flat, ERR));
    expect_outcome(hl_lock_acquire(flat, ERR), HL_EDEADLK);
    expect_ok(hl_lock_release(flat, ERR));
    expect_ok(hl_lock_acquire_with(deep, ACQUIRE(.wait_ms = 0, .lease_ms = 60000), ERR));
    int64_t calls = redis_evalsha_calls(server);
    expect_ok(hl_lock_acquire(deep, ERR));
    expect_ok(hl_lock_acquire(deep, ERR));
    check_int(hl_lock_hold_count(deep, NULL), 3);
    expect_ok(hl_lock_release(deep, ERR));
    expect_ok(hl_lock_release(deep, ERR));
    check(hl_lock_is_held(deep, NULL));
    check_int(redis_evalsha_calls(server), calls);
    check(hl_lock_validity_ms(deep, NULL) <= 60000); /* as it was */
    expect_ok(hl_lock_release(deep, ERR));
    expect_free(deep);
}

Law(redlock_classic, gets_a_new_lease_when_asked_for_one)
{
    hl_lock *lock = new_classic(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .lease_ms = 20000), ERR));
    expect_ok(hl_lock_update_lease(lock, NULL, 60000, ERR));
    check(pttl_of(lock) > 20000);
    check(hl_lock_validity_ms(lock, NULL) > 20000);
    expect_ok(hl_lock_release(lock, ERR));
}

Law(redlock_classic, is_inspected_and_force_released)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_classic(client, "stock"), *other = new_classic(open_client(NULL), "stock");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, ERR));
    check(!info.locked);
    expect_outcome(hl_lock_force_release(lock, ERR), HL_ENOENT);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_inspect(lock, &info, ERR));
    check(info.locked && info.mine);
    expect_ok(hl_lock_inspect(other, &info, ERR));
    check(info.locked && !info.mine);
    check_str(info.owner, redis_str(server, "GET stock"));
    expect_ok(hl_lock_force_release(other, ERR));
    expect_free(lock);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
}

Law(redlock_classic, force_releases_no_data)
{
    hl_lock *lock = new_classic(open_client(NULL), "stock");
    hl_error err = HL_ERROR_INIT;
    redis_do(server, "SET stock 42");
    expect_outcome(hl_lock_force_release(lock, &err), HL_ESERVER);
    check_has(err.text, "the key holds no lock but a text without an expiry");
    redis_do(server, "DEL stock");
    redis_do(server, "RPUSH stock 42");
    expect_outcome(hl_lock_force_release(lock, ERR), HL_ESERVER);
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_ESERVER);
    check_int(redis_int(server, "LLEN stock"), 1);
}

/* The locks of redis.io's page know no other kind, and a plain lock's key is a hash. */
Law(redlock_classic, is_not_shared_with_plain_locks)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_classic(client, "stock"), *plain = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_outcome(hl_lock_try_acquire(plain, ERR), HL_ESERVER);
    expect_ok(hl_lock_release(lock, ERR));
}

Law(redlock_classic, rests_for_its_shortest_hold)
{
    hl_lock *lock = new_classic(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .min_hold_ms = 60000), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    check(pttl_of(lock) > 0);
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_EBUSY);
}

Law(redlock_classic, tells_its_release_on_a_channel_of_its_own)
{
    hl_lock *lock = new_classic(open_client(NULL), "stock");
    redisContext *ear = ear_open("hirelock_redlock:{stock}");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    ear_check(ear, "hirelock_redlock:{stock}", "0");
    redisFree(ear);
}
