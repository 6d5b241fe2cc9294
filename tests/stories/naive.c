/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The answers that Redis gives to SET NX, SETNX and GETSET are all that these locks know. */
#include "naive.h"

#include "support/redis_link.h"

#include <time.h>

enum { COMMAND = 256 };

static void naive_free(void *item)
{
    struct naive *naive = item;
    redisFree(naive->redis);
    free(naive);
}

struct naive *naive_at(struct redis_server *at, const char *who)
{
    struct naive *naive = calloc(1, sizeof *naive);
    check(naive != NULL);
    naive->who = who;
    naive->redis = redis_link_connect(redis_server_socket(at));
    check(naive->redis != NULL);
    return free_at_end(naive, naive_free);
}

static void naive_read(const redisReply *reply, char ret_text[COMMAND])
{
    check(reply != NULL);
    if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(ret_text, COMMAND, "%lld", reply->integer);
    else
        snprintf(ret_text, COMMAND, "%s", reply->str ? reply->str : "(nil)");
}

const char *naive_do(struct naive *naive, const char *format, ...)
{
    static _Thread_local char answer[COMMAND];
    char command[COMMAND];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    redisReply *reply = redisCommand(naive->redis, command);
    naive_read(reply, answer);
    freeReplyObject(reply);
    if (!naive->is_quiet)
        fprintf(stderr, "    %s: %s -> %s\n", naive->who, command, answer);
    return answer;
}

bool naive_setnx(struct naive *naive, const char *name)
{
    return strcmp(naive_do(naive, "SETNX %s %s", name, naive->who), "1") == 0;
}

bool naive_take(struct naive *naive, const char *name, int64_t lease_ms)
{
    const char *answer =
        naive_do(naive, "SET %s %s NX PX %jd", name, naive->who, (intmax_t)lease_ms);
    return strcmp(answer, "OK") == 0;
}

void naive_drop(struct naive *naive, const char *name)
{
    naive_do(naive, "DEL %s", name);
}

/* The value of the key is the second at which the lock ends, by the clock of whoever wrote it. What
 * GETSET gives back tells whether another was faster (Redis docs, "SETNX", the old pattern). */
bool naive_take_by_stamp(struct naive *naive, const char *name, int64_t lease_s)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    intmax_t now_s = now.tv_sec, end_s = now_s + lease_s;

    if (strcmp(naive_do(naive, "SETNX %s %jd", name, end_s), "1") == 0)
        return true;
    if (strtoll(naive_do(naive, "GET %s", name), NULL, 10) >= now_s)
        return false;
    return strtoll(naive_do(naive, "GETSET %s %jd", name, end_s), NULL, 10) < now_s;
}
