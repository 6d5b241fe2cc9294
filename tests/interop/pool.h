/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A counter in Redis has the number of threads, of C and of Java, that have a permit of the pool;
 * there are never more than there are permits.
 */
#ifndef HL_INTEROP_POOL_H
#define HL_INTEROP_POOL_H

#include "support/fatal.h"
#include "support/redis_link.h"
#include "support/test.h"

static inline int64_t pool_count(redisContext *link, const char *command)
{
    redisReply *reply = redisCommand(link, command);
    must(reply && reply->type == REDIS_REPLY_INTEGER);
    int64_t number = reply->integer;
    freeReplyObject(reply);
    return number;
}

/* In and out again. */
static inline void pool_visit(redisContext *link, int64_t permits)
{
    int64_t inside = pool_count(link, "INCR inside:{pool}");
    check_msg(inside <= permits, "%jd inside", inside);
    pool_count(link, "DECR inside:{pool}");
}

#endif
