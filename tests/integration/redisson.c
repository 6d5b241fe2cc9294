/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Side by side with Redisson's RLock: the bytes in Redis and on the channel, with a Java program
 * played by a plain Redis connection that does what Redisson's client does, in words of our own.
 */

#include "support/actor.h"
#include "support/ear.h"
#include "support/kit.h"

static const char channel[] = "redisson_lock__channel:{stock}";
static const char java[] = "0a1b2c3d-0000-4000-8000-1234567890ab:71";

/* One more level for the owner, with a new lease; else how long the holder's still lasts. */
static const char java_lock[] =
    "if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then "
    "return redis.call('PTTL', KEYS[1]) end "
    "redis.call('HINCRBY', KEYS[1], ARGV[2], 1) "
    "redis.call('PEXPIRE', KEYS[1], ARGV[1]) return nil";

/* One level less; with the last one the key goes, and waiters are told. */
static const char java_unlock[] =
    "if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end "
    "if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then "
    "redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 0 end "
    "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[1], '0') return 1";

/* -1: it has the lock. */
static int64_t java_tries(const char *name)
{
    return redis_int(server, "EVAL %s 1 %s 30000 %s", java_lock, name, java);
}

static int64_t java_releases(const char *name)
{
    return redis_int(server, "EVAL %s 1 %s %s 30000 %s", java_unlock, name, channel, java);
}

Law(wire, has_the_key_the_field_and_the_expiry_that_redisson_writes)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = 30000));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check_str(redis_str(server, "TYPE stock"), "hash");
    check_int(redis_int(server, "HLEN stock"), 1);
    check_int(redis_int(server, "DBSIZE"), 1);
    const char *field = field_of(lock);
    check(strncmp(field, hl_client_id(client), 36) == 0 && field[36] == ':');
    check(strlen(field) > 37 && strspn(field + 37, "0123456789") == strlen(field + 37));
    check(strtoull(field + 37, NULL, 10) <= INT64_MAX); /* a thread id is a Java long */
    check_str(redis_str(server, "HGET stock %s", field), "1");
    int64_t pttl_ms = pttl_of(lock);
    check(pttl_ms > 29000 - slow_ms(1000) && pttl_ms <= 30000);
}

Law(wire, tells_waiters_of_the_last_release_only)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    redisContext *ear = ear_open(channel);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_force_release(lock, NULL));
    redis_do(server, "PUBLISH %s end", channel);
    check_str(ear_next(ear), "redisson_lock__channel:{stock} 0");
    check_str(ear_next(ear), "redisson_lock__channel:{stock} 0");
    check_str(ear_next(ear), "redisson_lock__channel:{stock} end");
    redisFree(ear);
}

Law(wire, puts_no_braces_around_a_name_that_has_its_own)
{
    hl_lock *lock = new_lock(open_client(NULL), "order:{42}:lock");
    redisContext *ear = ear_open("redisson_lock__channel:order:{42}:lock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check_str(ear_next(ear), "redisson_lock__channel:order:{42}:lock 0");
    redisFree(ear);
}

Law(java, holder_keeps_us_out_and_its_release_lets_us_in)
{
    hl_client *client = open_client(CLIENT(.poll_ms = slow_ms(30000)));
    hl_lock *lock = new_lock(client, "stock");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    struct actor *waiter = actor_start();
    check_int(java_tries("stock"), -1);
    check_int(java_tries("stock"), -1); /* reentrant */
    expect_outcome(acquire_past(lock, ACQUIRE(), &info), HL_EBUSY);
    check_str(info.owner, java);
    check_int(info.hold_count, 2);
    check(!info.mine);
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, channel, 1, 5000));
    check_int(java_releases("stock"), 0);
    expect_waiters(client, 1);
    int64_t before_ms = now_ms();
    check_int(java_releases("stock"), 1);
    expect_ok(actor_end(waiter));
    check(now_ms() - before_ms < slow_ms(15000)); /* the poll would take 30 s */
    expect_held_by(client, lock, 1);
}

Law(java, waiter_is_kept_out_and_woken_by_our_release)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    int64_t left_ms = java_tries("stock");
    check(left_ms > 20000 && left_ms <= 30000); /* how long it would sleep at most */
    redisContext *ear = ear_open(channel);
    check(java_tries("stock") > 0);
    check_int(java_releases("stock"), -1); /* not its own */
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check_str(ear_next(ear), "redisson_lock__channel:{stock} 0");
    check_int(java_tries("stock"), -1);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisFree(ear);
}

Law(java, holder_that_dies_is_followed_when_its_lease_ends)
{
    hl_client *client = open_client(CLIENT(.poll_ms = slow_ms(30000)));
    hl_lock *lock = new_lock(client, "stock");
    redis_do(server, "HSET stock %s 1", java);
    redis_do(server, "PEXPIRE stock 300");
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire(lock, NULL));
    check(now_ms() - before_ms < slow_ms(15000)); /* the poll would take 30 s */
    expect_held_by(client, lock, 1);
}

Law(java, messages_that_we_do_not_know_are_taken_as_hints)
{
    hl_client *client = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *waiter = actor_start();
    check_int(java_tries("stock"), -1);
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, channel, 1, 5000));
    redis_do(server, "PUBLISH %s 1", channel);
    redis_do(server, "PUBLISH %s nonsense", channel);
    redis_do(server, "PUBLISH %s %s", channel, "");
    expect_waiters(client, 1);
    check_int(java_releases("stock"), 1);
    expect_ok(actor_end(waiter));
}
