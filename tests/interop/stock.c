/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The C side of java/.../Stock.java. */
#include "stock.h"

#include "redisson.h"

#include "support/fatal.h"
#include "support/redis_link.h"

static const char number_key[] = "units", writer_key[] = "writer";

void stock_fill(void)
{
    redis_do(server, "MSET %s 0 %s nobody", number_key, writer_key);
}

int64_t stock_number(void)
{
    return redis_int(server, "GET %s", number_key);
}

void stock_count(redisContext *link, struct stock_tally *tally)
{
    redisReply *reply = redisCommand(link, "MGET %s %s", number_key, writer_key);
    must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
    long long next = strtoll(reply->element[0]->str, NULL, 10) + 1;
    tally->turns++;
    if (strcmp(reply->element[1]->str, "java") == 0)
        tally->handovers++;
    freeReplyObject(reply);
    reply = redisCommand(link, "MSET %s %lld %s c", number_key, next, writer_key);
    must(reply && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

int stock_begin_java(const char *who, const char *kind, const char *lock, int64_t ms)
{
    return redisson_begin(who, "%s.serve %s %s %s %lld", kind, lock, number_key, writer_key,
                          (long long)ms);
}

void stock_end_java(int number, struct stock_tally *tally)
{
    struct stock_tally one = {0};
    check_int(sscanf(redisson_end(number), "%jd %jd %jd", &one.turns, &one.handovers,
                     &one.longest_wait_ms),
              3);
    stock_add(tally, &one);
}

void stock_add(struct stock_tally *all, const struct stock_tally *one)
{
    all->turns += one->turns;
    all->handovers += one->handovers;
    if (one->longest_wait_ms > all->longest_wait_ms)
        all->longest_wait_ms = one->longest_wait_ms;
}
