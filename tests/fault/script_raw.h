/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The scripts of the lock "n", called raw: the words that each test varies are given, the names
 * that follow from "n" are filled in.
 */
#ifndef HL_TEST_SCRIPT_RAW_H
#define HL_TEST_SCRIPT_RAW_H

#include "redis/script.h"
#include "server_fault.h"
#include "support/ear.h"
#include "support/fatal.h"

#define RAW_QUEUE "hirelock_queue:{n}"
#define RAW_REDISSON "redisson_lock__channel:{n}"
#define RAW_OWN "hirelock:{n}"

#define RAW_TAKEN "1 1"    /* it was free */
#define RAW_HAD "1 0"      /* by this field */
#define RAW_DONE "1  0"    /* released, without a grant; no foreign waiter was seen */
#define RAW_UNSEEN "1  -1" /* the same, and foreign waiters were not looked for */

/* A client of ours, or of Redisson: no other program's lock can be forced. */
#define RAW_CLIENT "0d1c2b3a-4f5e-6789-abcd-ef0123456789"

enum { RAW_QUEUE_MS = 30000, RAW_CLAIM_MS = 4000 }; /* as written below */

/* A script, loaded and called raw; `args` are the words after the key, with spaces between. */
static inline const char *run_script(hli_script_id id, const char *key, const char *args)
{
    const struct hli_script *script = hli_script_get(id);
    char line[512];
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    snprintf(line, sizeof line, "EVALSHA %s 1 %s %s", script->sha1, key, args);
    return redis_str(server, line);
}

/* Hashes of another program's under the name of a lock. False when there are no more. */
static inline bool raw_odd_hash(size_t which)
{
    static const char *const odd[] = {
        "HSET n alice 1 bob 2",  /* no owners */
        "HSET n u:1 x",          /* no count */
        "EVAL %s 1 n profile 1", /* a long value */
        "EVAL %s 1 n u:1 1",     /* a long count */
        "EVAL %s 1 n long 1",    /* a long field */
        "EVAL %s 1 n u 100000",  /* many fields */
    };
    static const char script[] =
        "for i=1,ARGV[2] do "
        "local f=ARGV[1]=='u' and 'u:'..i or ARGV[1]=='long' and string.rep('u',1e5)..':1' or "
        "ARGV[1] "
        "redis.call('HSET',KEYS[1],f,ARGV[1]=='u' and 1 or string.rep('1',1e5)) end";

    if (which >= sizeof odd / sizeof odd[0])
        return false;
    redis_do(server, "DEL n");
    redis_do(server, odd[which], script);
    return true;
}

/* Such a hash is an error that is told at once, and short; and it stays as it is. */
static inline void raw_check_no_lock(const char *said, int64_t fields)
{
    check_msg(strncmp(said, "WRONGTYPE the key holds no lock", 31) == 0, "%.200s", said);
    check_msg(strlen(said) < 200, "%.300s", said);
    check_int(redis_int(server, "HLEN n"), fields);
}

static inline const char *raw_run(hli_script_id id, const char *words, const char *rest)
{
    char args[512];
    snprintf(args, sizeof args, "%s %s", words, rest);
    return run_script(id, "n", args);
}

/* By the server's clock. */
static inline int64_t server_now_ms(void)
{
    long long seconds = 0, us = 0;
    check_int(sscanf(redis_str(server, "TIME"), "%lld %lld", &seconds, &us), 2);
    return seconds * 1000 + us / 1000;
}

/* field lease count */
static inline const char *acquire(const char *words)
{
    return raw_run(HLI_SCRIPT_LOCK_ACQUIRE, words, RAW_QUEUE " 30000 hirelock:");
}

/* The same, for a caller that does not queue. */
static inline const char *acquire_unqueued(const char *words)
{
    return raw_run(HLI_SCRIPT_LOCK_ACQUIRE, words, RAW_QUEUE " 0 hirelock:");
}

/* field count lease rest */
static inline const char *release(const char *words)
{
    return raw_run(HLI_SCRIPT_LOCK_RELEASE, words,
                   RAW_REDISSON " PUBLISH " RAW_QUEUE " hirelock: 4000 " RAW_OWN " 0 NUMSUB");
}

/* The same; and if a client of Redisson's waits, the release yields to it. */
static inline const char *release_courteously(const char *words)
{
    return raw_run(HLI_SCRIPT_LOCK_RELEASE, words,
                   RAW_REDISSON " PUBLISH " RAW_QUEUE " hirelock: 4000 " RAW_OWN " 1 NUMSUB");
}

/* lease field */
static inline const char *renew(const char *words)
{
    return run_script(HLI_SCRIPT_LOCK_RENEW, "n", words);
}

/* field lease */
static inline const char *keep(const char *words)
{
    return raw_run(HLI_SCRIPT_LOCK_KEEP, words, RAW_REDISSON " " RAW_QUEUE " " RAW_OWN " NUMSUB");
}

/* Clients are called A, B, C; "B:1" waits. */
static inline void queue_up(const char *field)
{
    char words[64];
    snprintf(words, sizeof words, "%s 5000 1", field);
    check(strncmp(acquire(words), "0 ", 2) == 0);
}

/* A:1 holds it, and these stand in the queue, by a score of their own. */
static inline void queue_of(const char *fields)
{
    char copy[256], *rest = NULL;
    int place = 1;
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    snprintf(copy, sizeof copy, "%s", fields);
    for (char *field = strtok_r(copy, " ", &rest); field; field = strtok_r(NULL, " ", &rest))
        redis_do(server, "ZADD " RAW_QUEUE " %d %s", place++, field);
}

static inline int64_t queue_length(void)
{
    return redis_int(server, "ZCARD " RAW_QUEUE);
}

static inline void check_holder(const char *fields)
{
    check_str(redis_str(server, "HGETALL n"), fields);
}

/* "g field seconds microseconds claim waiting name" */
static inline void check_grant(redisContext *ear, const char *field, int waiting)
{
    char expected[64];
    long long seconds, microseconds;
    int from = 0, rest = 0;
    const char *heard = ear_next(ear), *space = strchr(heard, ' ');
    check(space != NULL);
    const char *text = space + 1;
    check_msg(sscanf(text, "g %*s%n %lld %lld%n", &from, &seconds, &microseconds, &rest) == 2, "%s",
              text);
    check_msg(strncmp(text + 2, field, (size_t)from - 2) == 0, "%s", text);
    long long now = strtoll(redis_str(server, "TIME"), NULL, 10);
    check(seconds <= now && seconds >= now - slow_ms(5000) / 1000 && microseconds < 1000000);
    snprintf(expected, sizeof expected, " %d %d n", RAW_CLAIM_MS, waiting);
    check_str(text + rest, expected);
}

#endif
