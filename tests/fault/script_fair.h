/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fair lock "n", its scripts called raw: the words that each test varies are given, the others
 * filled in. The keys are looked at as Redisson sees them, and what a script did long ago is played
 * by an older sign of life.
 */
#ifndef HL_TEST_SCRIPT_FAIR_H
#define HL_TEST_SCRIPT_FAIR_H

#include "script_raw.h"

#define FAIR_QUEUE "redisson_lock_queue:{n}"
#define FAIR_ENDS "redisson_lock_timeout:{n}"
#define FAIR_SIGNS "hirelock_fair:{n}"
#define FAIR_CHANNEL(field) "redisson_lock__channel:{n}:" field
#define FAIR_SEEN "1  -1" /* released */
#define FAIR_NONE "0"     /* held nothing */

enum { FAIR_STAND_MS = 5000, FAIR_GRACE_MS = 1000, FAIR_WAIT_MS = 300000 }; /* as written below */

static inline const char *fair_run(hli_script_id id, const char *words)
{
    char args[256];
    snprintf(args, sizeof args, "PUBLISH NUMSUB 5000 1000 %s", words);
    return run_script(id, "n", args);
}

/* The queue may be looked through again. */
static inline void fair_look_is_due(void)
{
    redis_str(server, "HDEL " FAIR_SIGNS " look");
}

/* field lease count wait; some time after the call before */
static inline const char *fair_acquire(const char *words)
{
    fair_look_is_due();
    return fair_run(HLI_SCRIPT_FAIR_LOCK_ACQUIRE, words);
}

/* This field asks, for the first time or again. */
static inline const char *fair_ask(const char *field)
{
    char words[64];
    snprintf(words, sizeof words, "%s 30000 1 1", field);
    return fair_acquire(words);
}

/* The same, a moment after a call that looked, however long this machine took for it. */
static inline const char *fair_ask_at_once(const char *field)
{
    char words[64];
    snprintf(words, sizeof words, "%s 30000 1 1", field);
    redis_do(server, "HSET " FAIR_SIGNS " look %lld", (long long)server_now_ms() + 60000);
    return fair_run(HLI_SCRIPT_FAIR_LOCK_ACQUIRE, words);
}

static inline const char *fair_try(const char *field)
{
    char words[64];
    snprintf(words, sizeof words, "%s 30000 1 0", field);
    return fair_acquire(words);
}

/* Whoever releases is asked to look again after so long; 0: is not. */
static int64_t fair_again_ms;

/* The last level; or what a wait sends that is over. */
static inline const char *fair_release(const char *field)
{
    char words[64];
    snprintf(words, sizeof words, "%s 0 0 0", field);
    const char *said = fair_run(HLI_SCRIPT_FAIR_LOCK_RELEASE, words);
    const char *plain = said[0] == '1' ? FAIR_SEEN : FAIR_NONE;
    size_t length = strlen(plain);
    fair_again_ms = strncmp(said, plain, length) == 0 ? strtoll(said + length, NULL, 10) : 0;
    return fair_again_ms == 0 ? said : plain;
}

static inline const char *fair_force(void)
{
    return fair_run(HLI_SCRIPT_FAIR_LOCK_FORCE_RELEASE, "hirelock:");
}

/* A:1 holds it, and these ask in this order. */
static inline void fair_queue_of(const char *fields)
{
    char copy[256], *rest = NULL;
    check_str(fair_ask("A:1"), RAW_TAKEN);
    snprintf(copy, sizeof copy, "%s", fields);
    for (char *field = strtok_r(copy, " ", &rest); field; field = strtok_r(NULL, " ", &rest))
        check(strncmp(fair_ask(field), "0 ", 2) == 0);
}

static inline void fair_check_queue(const char *fields)
{
    check_str(redis_str(server, "LRANGE " FAIR_QUEUE " 0 -1"), fields);
    check_int(redis_int(server, "ZCARD " FAIR_ENDS), redis_int(server, "LLEN " FAIR_QUEUE));
}

/* In how many milliseconds Redisson's clients would pass it over. */
static inline int64_t fair_left(const char *field)
{
    return redis_int(server, "ZSCORE " FAIR_ENDS " %s", field) - server_now_ms();
}

static inline int64_t fair_distance(const char *from, const char *to)
{
    return redis_int(server, "ZSCORE " FAIR_ENDS " %s", to) -
           redis_int(server, "ZSCORE " FAIR_ENDS " %s", from);
}

static inline void fair_check_left(const char *field, int64_t ms)
{
    int64_t left = fair_left(field);
    check_msg(left > ms - slow_ms(2000) && left < ms + slow_ms(2000), "%s has %d ms, not %d", field,
              (int)left, (int)ms);
}

/* Redisson's way to queue, as its script leaves it. */
static inline void fair_java_queues(const char *field, int64_t left_ms)
{
    redis_do(server, "RPUSH " FAIR_QUEUE " %s", field);
    redis_do(server, "ZADD " FAIR_ENDS " %lld %s", (long long)(server_now_ms() + left_ms), field);
}

/* Our waiter asked so long ago; or, if it is one of Redisson's, has been suspected since then. */
static inline void fair_asked(const char *field, int64_t ms_ago)
{
    redis_do(server, "HSET " FAIR_SIGNS " %s %lld:%d", field, (long long)(server_now_ms() - ms_ago),
             FAIR_STAND_MS);
}

static inline void fair_suspected(const char *field, int64_t ms_ago)
{
    redis_do(server, "HSET " FAIR_SIGNS " %s %lld", field, (long long)(server_now_ms() - ms_ago));
}

static inline void fair_check_nothing_left(void)
{
    check_int(redis_int(server, "DBSIZE"), 0);
}

#endif
