/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The scripts of the lock "n", called raw: the words that each test varies are given, the names
 * that follow from "n" are filled in. And ears, which hear what the scripts publish.
 */
#ifndef HL_TEST_SCRIPT_RAW_H
#define HL_TEST_SCRIPT_RAW_H

#include <sys/time.h>

#include "server_fault.h"
#include "support/fatal.h"
#include "support/redis_link.h"

#define RAW_QUEUE "hirelock_queue:{n}"
#define RAW_REDISSON "redisson_lock__channel:{n}"
#define RAW_OWN "hirelock:{n}"

#define RAW_TAKEN "1 1"    /* it was free */
#define RAW_HAD "1 0"      /* by this field */
#define RAW_DONE "1  0"    /* released, to nobody; no stranger was seen */
#define RAW_UNSEEN "1  -1" /* the same, and nobody looked for strangers */

enum { RAW_QUEUE_MS = 30000, RAW_CLAIM_MS = 4000 }; /* as written below */

static struct redis_server *server;

static inline void raw_start(void)
{
    server = redis_server_start(NULL);
}

static inline void raw_stop(void)
{
    redis_server_stop(server);
}

static inline const char *raw_run(hli_script_id id, const char *words, const char *rest)
{
    char args[512];
    snprintf(args, sizeof args, "%s %s", words, rest);
    return fault_script(server, id, "n", args);
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

/* The same, for one who does not queue. */
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

/* The same; and if somebody of Redisson's waits, it is his turn. */
static inline const char *release_courteously(const char *words)
{
    return raw_run(HLI_SCRIPT_LOCK_RELEASE, words,
                   RAW_REDISSON " PUBLISH " RAW_QUEUE " hirelock: 4000 " RAW_OWN " 1 NUMSUB");
}

/* lease field */
static inline const char *renew(const char *words)
{
    return fault_script(server, HLI_SCRIPT_LOCK_RENEW, "n", words);
}

/* field lease */
static inline const char *keep(const char *words)
{
    return raw_run(HLI_SCRIPT_LOCK_KEEP, words, RAW_REDISSON " " RAW_QUEUE " " RAW_OWN " NUMSUB");
}

/* Subscribed to channels, "a b c", and nothing else. */
static inline redisContext *ear_open(const char *channels)
{
    redisContext *ear = redis_link_connect(redis_server_socket(server));
    redisReply *reply = NULL;
    char command[256];
    int count = 1;
    must(ear);
    for (const char *at = channels; (at = strchr(at, ' ')); at++)
        count++;
    snprintf(command, sizeof command, "SUBSCRIBE %s", channels);
    must(redisAppendCommand(ear, command) == REDIS_OK);
    for (; count > 0; count--) {
        must(redisGetReply(ear, (void **)&reply) == REDIS_OK);
        freeReplyObject(reply);
    }
    return ear;
}

/* The next message, to be freed; "channel message" are its last two items. */
static inline redisReply *ear_next(redisContext *ear)
{
    redisReply *reply = NULL;
    redisSetTimeout(ear, (struct timeval){.tv_sec = slow_ms(5000) / 1000});
    check_msg(redisGetReply(ear, (void **)&reply) == REDIS_OK, "no message: %s", ear->errstr);
    check(reply->type == REDIS_REPLY_ARRAY && reply->elements == 3);
    return reply;
}

static inline void ear_check(redisContext *ear, const char *channel, const char *text)
{
    redisReply *reply = ear_next(ear);
    check_str(reply->element[1]->str, channel);
    check_str(reply->element[2]->str, text);
    freeReplyObject(reply);
}

/* Nothing came but what was checked: the next message is one sent now. */
static inline void ear_check_end(redisContext *ear, const char *channel)
{
    redis_do(server, "PUBLISH %s end", channel);
    ear_check(ear, channel, "end");
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
    redisReply *reply = ear_next(ear);
    const char *text = reply->element[2]->str;
    check_msg(sscanf(text, "g %*s%n %lld %lld%n", &from, &seconds, &microseconds, &rest) == 2, "%s",
              text);
    check_msg(strncmp(text + 2, field, (size_t)from - 2) == 0, "%s", text);
    long long now = strtoll(redis_str(server, "TIME"), NULL, 10);
    check(seconds <= now && seconds >= now - slow_ms(5000) / 1000 && microseconds < 1000000);
    snprintf(expected, sizeof expected, " %d %d n", RAW_CLAIM_MS, waiting);
    check_str(text + rest, expected);
    freeReplyObject(reply);
}

#endif
