/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A Java program with Redisson's RFairLock on "stock", played by plain Redis connections: what its
 * scripts leave in Redis and tell, in words of our own. Its clock is the machine's.
 */
#ifndef HL_TEST_FAIR_JAVA_H
#define HL_TEST_FAIR_JAVA_H

#include "fair_kit.h"

#include <time.h>

#define JAVA_UUID "0a1b2c3d-0000-4000-8000-1234567890ab:"

enum { JAVA_LEASE_MS = 30000, JAVA_WAIT_MS = 300000, JAVA_HAS_IT = -10 };

/* KEYS: the lock, the queue, the ends. Heads whose end has come are dropped. */
#define JAVA_DROPS_STALE                                                                           \
    "while true do local head = redis.call('LINDEX', KEYS[2], 0) "                                 \
    "local ends = head and redis.call('ZSCORE', KEYS[3], head) "                                   \
    "if not ends or tonumber(ends) > tonumber(ARGV[2]) then break end "                            \
    "redis.call('ZREM', KEYS[3], head) redis.call('LPOP', KEYS[2]) end "

/* ARGV: owner, now, lease, wait, and whether it queues. */
static const char java_fair_lock[] = JAVA_DROPS_STALE
    "if redis.call('EXISTS', KEYS[1]) == 0 and (redis.call('EXISTS', KEYS[2]) == 0 or "
    "redis.call('LINDEX', KEYS[2], 0) == ARGV[1]) then "
    "redis.call('LPOP', KEYS[2]) redis.call('ZREM', KEYS[3], ARGV[1]) "
    "for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do "
    "redis.call('ZINCRBY', KEYS[3], -tonumber(ARGV[4]), other) end "
    "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[3]) return -10 "
    "end "
    "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then "
    "redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[3]) return -10 "
    "end "
    "if ARGV[5] == '0' then return 1 end "
    "if redis.call('ZSCORE', KEYS[3], ARGV[1]) then "
    "return math.max(0, redis.call('PTTL', KEYS[1])) end "
    "local last = redis.call('LINDEX', KEYS[2], -1) "
    "local left = last and redis.call('ZSCORE', KEYS[3], last) - ARGV[2] or "
    "redis.call('PTTL', KEYS[1]) "
    "redis.call('ZADD', KEYS[3], left + ARGV[2] + ARGV[4], ARGV[1]) "
    "redis.call('RPUSH', KEYS[2], ARGV[1]) return left";

/* ARGV: owner, now, the channels' prefix. */
static const char java_fair_unlock[] =
    JAVA_DROPS_STALE "local function tell() local head = redis.call('LINDEX', KEYS[2], 0) "
                     "if head then redis.call('PUBLISH', ARGV[3] .. head, '0') end return 1 end "
                     "if redis.call('EXISTS', KEYS[1]) == 0 then return tell() end "
                     "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end "
                     "if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 0 end "
                     "redis.call('DEL', KEYS[1]) return tell()";

/* ARGV: owner, wait. */
static const char java_fair_gives_up[] =
    "local place = redis.call('LPOS', KEYS[2], ARGV[1]) "
    "if place then for i, other in ipairs(redis.call('LRANGE', KEYS[2], place + 1, -1)) do "
    "redis.call('ZINCRBY', KEYS[3], -tonumber(ARGV[2]), other) end end "
    "redis.call('ZREM', KEYS[3], ARGV[1]) return redis.call('LREM', KEYS[2], 0, ARGV[1])";

#define JAVA_KEYS "3 stock " FAIR_QUEUE " " FAIR_ENDS " "

static inline int64_t java_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* JAVA_HAS_IT, or how long it would sleep. */
static inline int64_t java_asks(const char *owner)
{
    return redis_int(server, "EVAL %s " JAVA_KEYS "%s %lld %d %d 1", java_fair_lock, owner,
                     (long long)java_clock_ms(), JAVA_LEASE_MS, JAVA_WAIT_MS);
}

/* At a time of its own. */
static inline int64_t java_tries_at(const char *owner, int64_t clock_ms)
{
    return redis_int(server, "EVAL %s " JAVA_KEYS "%s %lld %d %d 0", java_fair_lock, owner,
                     (long long)clock_ms, JAVA_LEASE_MS, JAVA_WAIT_MS);
}

static inline int64_t java_tries(const char *owner)
{
    return java_tries_at(owner, java_clock_ms());
}

static inline int64_t java_unlocks(const char *owner)
{
    return redis_int(server, "EVAL %s " JAVA_KEYS "%s %lld " FAIR_CHANNEL, java_fair_unlock, owner,
                     (long long)java_clock_ms());
}

static inline int64_t java_gives_up(const char *owner)
{
    return redis_int(server, "EVAL %s " JAVA_KEYS "%s %d", java_fair_gives_up, owner, JAVA_WAIT_MS);
}

/* By the subscription of its thread, the waiter's second step: fair_listens(). */
static inline void java_is_told(redisContext *ear)
{
    const char *heard = ear_next(ear);
    check_str(strchr(heard, ' '), " 0");
}

#endif
