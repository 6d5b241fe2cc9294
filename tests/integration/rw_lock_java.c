/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Side by side with Redisson's RReadWriteLock, played by a plain Redis connection that has the same
 * effects in Redis, in scripts of our own: its readers have a hold key for each level, and a reader
 * that leaves sets the lock's expiry by all hold keys.
 */

#include "rw_kit.h"
#include "support/ear.h"

static const char java[] = "0a1b2c3d-0000-4000-8000-1234567890ab:71";

#define JAVA_HEAD                                                                                  \
    "local lock, owner, lease = KEYS[1], ARGV[1], tonumber(ARGV[2]) "                              \
    "local function key(reader, i) return '{' .. lock .. '}:' .. reader .. ':rwlock_timeout:' .. " \
    "i end "                                                                                       \
    "local mode = redis.call('HGET', lock, 'mode') "

/* A level more: -1; or how long the lock's lease still is. */
static const char java_reads[] = JAVA_HEAD
    "if mode == 'write' and redis.call('HEXISTS', lock, owner .. ':write') == 0 then "
    "return redis.call('PTTL', lock) end "
    "if not mode then redis.call('HSET', lock, 'mode', 'read') end "
    "redis.call('SET', key(owner, redis.call('HINCRBY', lock, owner, 1)), '1', 'PX', lease) "
    "redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease)) return -1";

static const char java_read_leaves[] = JAVA_HEAD
    "if redis.call('HEXISTS', lock, owner) == 0 then return nil end "
    "local left = redis.call('HINCRBY', lock, owner, -1) "
    "redis.call('DEL', key(owner, left + 1)) "
    "if left == 0 then redis.call('HDEL', lock, owner) end "
    "local longest, all = 0, redis.call('HGETALL', lock) "
    "for at = 1, #all, 2 do for i = 1, tonumber(all[at + 1]) or 0 do "
    "longest = math.max(longest, redis.call('PTTL', key(all[at], i))) end end "
    "if longest > 0 then redis.call('PEXPIRE', lock, longest) return 0 end "
    "if mode == 'write' then return 0 end "
    "redis.call('DEL', lock) redis.call('PUBLISH', 'redisson_rwlock:{' .. lock .. '}', '0') "
    "return 1";

static const char java_renews[] =
    JAVA_HEAD "local count = tonumber(redis.call('HGET', lock, owner) or 0) "
              "for i = 1, count do redis.call('PEXPIRE', key(owner, i), lease) end "
              "return redis.call('PEXPIRE', lock, lease)";

static const char java_writes[] = JAVA_HEAD
    "local own = owner .. ':write' "
    "if mode and redis.call('HEXISTS', lock, own) == 0 then return redis.call('PTTL', lock) end "
    "redis.call('HSET', lock, 'mode', 'write') redis.call('HINCRBY', lock, own, 1) "
    "redis.call('PEXPIRE', lock, lease + math.max(redis.call('PTTL', lock), 0)) return -1";

static const char java_write_leaves[] = JAVA_HEAD
    "local own = owner .. ':write' "
    "if redis.call('HEXISTS', lock, own) == 0 then return nil end "
    "if redis.call('HINCRBY', lock, own, -1) > 0 then "
    "redis.call('PEXPIRE', lock, lease) return 0 end "
    "redis.call('HDEL', lock, own) "
    "if redis.call('HLEN', lock) > 1 then redis.call('HSET', lock, 'mode', 'read') return 1 end "
    "redis.call('DEL', lock) redis.call('PUBLISH', 'redisson_rwlock:{' .. lock .. '}', '1') "
    "return 1";

static int64_t java_does(const char *deed, int64_t lease_ms)
{
    return redis_int(server, "EVAL %s 1 stock %s %lld", deed, java, (long long)lease_ms);
}

RwLaw(rw_lock_java, has_the_keys_and_the_fields_that_redisson_writes)
{
    struct rw rw = rw_new(open_client(NULL));
    char id[64];
    expect_ok(hl_lock_acquire(rw.write, NULL));
    const char *fields = redis_str(server, "HGETALL stock");
    snprintf(id, sizeof id, "mode write %s:", hl_client_id(rw.client));
    check(strncmp(fields, id, strlen(id)) == 0);
    const char *number = fields + strlen(id);
    size_t digits = strspn(number, "0123456789");
    check(digits > 0 && strtoull(number, NULL, 10) <= INT64_MAX); /* a thread id is a Java long */
    check_str(number + digits, ":write 1");
    check_int(redis_int(server, "DBSIZE"), 1);
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    fields = redis_str(server, "HGETALL stock");
    snprintf(id, sizeof id, "mode read %s:", hl_client_id(rw.client));
    check(strncmp(fields, id, strlen(id)) == 0);
    number = fields + strlen(id);
    digits = strspn(number, "0123456789");
    check_str(number + digits, " 1");
    const char *hold = redis_str(server, "KEYS {stock}:*");
    check(strncmp(hold + 8, hl_client_id(rw.client), 36) == 0);
    check(strncmp(hold + 45, number, digits) == 0);
    check_str(hold + 45 + digits, ":rwlock_timeout:1");
    check_str(redis_str(server, "GET %s", hold), "1");
    int64_t left = redis_int(server, "PTTL %s", hold);
    check(left > 20000 && left <= 30000);
    expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock_java, readers_of_both_read_together_and_keep_the_others_writers_out)
{
    struct rw rw = rw_new(open_client(NULL));
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(rw.read, NULL));
    check_int(java_does(java_reads, 30000), -1);
    check_int(java_does(java_reads, 30000), -1);
    check(java_does(java_writes, 30000) > 0);
    expect_state("read 2");
    expect_ok(hl_lock_release(rw.read, NULL));
    expect_outcome(acquire_past(rw.write, ACQUIRE(), &info), HL_EBUSY);
    check_str(info.owner, java);
    check_int(info.hold_count, 2);
    check_int(java_does(java_read_leaves, 0), 0);
    check_int(java_does(java_read_leaves, 0), 1);
    expect_ok(hl_lock_try_acquire(rw.write, NULL));
    check(java_does(java_reads, 30000) > 0);
    check(java_does(java_writes, 30000) > 0);
    expect_ok(hl_lock_release(rw.write, NULL));
    check_int(java_does(java_writes, 30000), -1);
    expect_outcome(hl_lock_try_acquire(rw.read, NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(rw.write, NULL), HL_EBUSY);
    check_int(java_does(java_write_leaves, 30000), 1);
}

/* A reader that leaves sets the lock's expiry by all hold keys, and ours are among them. */
RwLaw(rw_lock_java, a_reader_of_redissons_that_leaves_leaves_us_our_lease)
{
    struct rw rw = rw_new(open_client(NULL));
    check_int(java_does(java_reads, 90000), -1);
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = 60000), NULL));
    check_int(java_does(java_read_leaves, 0), 0);
    int64_t left = redis_int(server, "PTTL stock");
    check(left > 50000 && left <= 60000);
    check(hl_lock_is_held(rw.read, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock_java, a_reader_of_ours_that_leaves_leaves_redissons_its_lease)
{
    struct rw rw = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = 90000), NULL));
    check_int(java_does(java_reads, 60000), -1);
    expect_ok(hl_lock_release(rw.read, NULL));
    int64_t left = redis_int(server, "PTTL stock");
    check(left > 50000 && left <= 60000);
    check_int(java_does(java_read_leaves, 0), 1);
}

RwLaw(rw_lock_java, redissons_renewal_beside_a_longer_lease_of_ours_is_corrected)
{
    struct rw rw = rw_new(open_client(CLIENT(.watchdog_timeout_ms = slow_ms(600))));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = 60000), NULL));
    check_int(java_does(java_reads, 30000), -1);
    for (int i = 0; i < 3; i++) {
        check_int(java_does(java_renews, 30000), 1);
        struct deadline deadline = deadline_in(5000);
        while (redis_int(server, "PTTL stock") <= 30000 && !deadline_is_over(deadline))
            deadline_nap();
        check(redis_int(server, "PTTL stock") > 50000);
    }
    check_int(java_does(java_read_leaves, 0), 0);
    expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock_java, a_dead_reader_of_redissons_keeps_our_writers_out_for_its_lease_only)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(CLIENT(.poll_ms = 100)));
    check_int(java_does(java_reads, slow_ms(300)), -1);
    expect_ok(hl_lock_acquire_with(a.read, ACQUIRE(.lease_ms = 60000), NULL));
    struct actor *writer = rw_waits(b.write);
    check(redis_wait_int(server, 2, 5000, "DBSIZE")); /* its hold key is gone, its field not yet */
    check(!actor_is_done(writer));
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(actor_end(writer));
    expect_ok(actor_release(writer, b.write, NULL));
}

RwLaw(rw_lock_java, redissons_writer_that_leaves_wakes_all_our_readers)
{
    struct rw rw = rw_new_deaf();
    struct actor *reader[8];
    check_int(java_does(java_writes, 60000), -1);
    check_int(java_does(java_writes, 60000), -1);
    for (int i = 0; i < 8; i++)
        reader[i] = rw_waits(rw.read);
    expect_waiters(rw.client, 8);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    check_int(java_does(java_write_leaves, 60000), 0);
    expect_waiters(rw.client, 8);
    check_int(java_does(java_write_leaves, 60000), 1);
    for (int i = 0; i < 8; i++)
        expect_ok(actor_end(reader[i]));
    expect_state("read 8");
    for (int i = 0; i < 8; i++)
        expect_ok(actor_release(reader[i], rw.read, NULL));
}

RwLaw(rw_lock_java, redissons_last_reader_wakes_our_writer)
{
    struct rw rw = rw_new_deaf();
    check_int(java_does(java_reads, 60000), -1);
    struct actor *writer = rw_waits(rw.write);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    check_int(java_does(java_read_leaves, 0), 1);
    expect_ok(actor_end(writer));
    expect_ok(actor_release(writer, rw.write, NULL));
}

/* Redisson publishes nothing. */
RwLaw(rw_lock_java, redissons_writer_that_goes_on_as_a_reader_is_found_by_a_poll)
{
    struct rw rw = rw_new(open_client(CLIENT(.poll_ms = 100)));
    check_int(java_does(java_writes, 60000), -1);
    check_int(java_does(java_reads, 60000), -1);
    struct actor *reader = rw_waits(rw.read);
    expect_waiters(rw.client, 1);
    check_int(java_does(java_write_leaves, 60000), 1);
    expect_ok(actor_end(reader));
    expect_state("read 2");
    expect_ok(actor_release(reader, rw.read, NULL));
    check_int(java_does(java_read_leaves, 0), 1);
}

/* `0` wakes one of Redisson's waiters and is remembered by it, `1` wakes all that sleep. */
RwLaw(rw_lock_java, redissons_waiters_hear_messages_that_they_understand)
{
    struct rw rw = rw_new(open_client(NULL));
    redisContext *ear = ear_open(RW_CHANNEL);
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_release(rw.write, NULL)); /* goes on as a reader */
    ear_check(ear, RW_CHANNEL, "1");
    ear_check(ear, RW_CHANNEL, "0");
    check_int(java_does(java_reads, 60000), -1);
    expect_ok(hl_lock_release(rw.read, NULL)); /* not the last */
    check_int(java_does(java_read_leaves, 0), 1);
    ear_check(ear, RW_CHANNEL, "0"); /* its own */
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
    ear_check(ear, RW_CHANNEL, "0");
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
    ear_check(ear, RW_CHANNEL, "1");
    ear_check(ear, RW_CHANNEL, "0");
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_force_release(rw.write, NULL));
    ear_check(ear, RW_CHANNEL, "1");
    ear_check(ear, RW_CHANNEL, "0");
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = new_owner(rw.client)), NULL));
    expect_ok(hl_lock_force_release(rw.read, NULL));
    ear_check(ear, RW_CHANNEL, "0");
    redis_do(server, "PUBLISH " RW_CHANNEL " end");
    ear_check(ear, RW_CHANNEL, "end");
    expect_outcome(hl_lock_release(rw.write, NULL), HL_ELOST);
    redisFree(ear);
}

/* By an operator who uses Redisson: the hold keys stay behind. */
RwLaw(rw_lock_java, redissons_forced_release_is_noticed_and_leaves_nothing)
{
    struct recorder told = RECORDER_INIT;
    struct rw rw = rw_new(open_client(
        CLIENT(.on_event = record_event, .arg = &told, .watchdog_timeout_ms = slow_ms(3000))));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    redis_do(server, "DEL stock");
    redis_do(server, "PUBLISH " RW_CHANNEL " 0");
    expect_story(&told, "LOST gone");
    expect_outcome(hl_lock_release(rw.read, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(rw.read, NULL), HL_ELOST);
}

RwLaw(rw_lock_java, messages_that_we_do_not_know_are_taken_as_hints)
{
    struct rw rw = rw_new_deaf();
    check_int(java_does(java_writes, 60000), -1);
    struct actor *reader = rw_waits(rw.read), *writer = rw_waits(rw.write);
    expect_waiters(rw.client, 2);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    redis_do(server, "PUBLISH " RW_CHANNEL " nonsense");
    redis_do(server, "PUBLISH " RW_CHANNEL " %s", "");
    expect_waiters(rw.client, 2);
    check_int(java_does(java_write_leaves, 60000), 1);
    struct deadline deadline = deadline_in(10000);
    while (!actor_is_done(reader) && !actor_is_done(writer) && !deadline_is_over(deadline))
        deadline_nap();
    if (actor_is_done(writer)) {
        expect_ok(actor_end(writer));
        expect_ok(actor_release(writer, rw.write, NULL));
        expect_ok(actor_end(reader));
        expect_ok(actor_release(reader, rw.read, NULL));
    } else {
        expect_ok(actor_end(reader));
        expect_ok(actor_release(reader, rw.read, NULL));
        expect_ok(actor_end(writer));
        expect_ok(actor_release(writer, rw.write, NULL));
    }
}
