/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The C side of java/.../Stock.java, and of those in other languages. */
#include "stock.h"

#include "support/fatal.h"
#include "support/kit.h"
#include "support/redis_link.h"

static const char number_key[] = STOCK_NUMBER, writer_key[] = STOCK_WRITER;

void stock_fill(void)
{
    redis_do(server, "MSET %s 0 %s nobody", number_key, writer_key);
}

int64_t stock_number(void)
{
    return redis_int(server, "GET %s", number_key);
}

void stock_add(struct stock_tally *all, const struct stock_tally *one)
{
    all->turns += one->turns;
    all->handovers += one->handovers;
    if (one->longest_wait_ms > all->longest_wait_ms)
        all->longest_wait_ms = one->longest_wait_ms;
}

void stock_add_text(struct stock_tally *tally, const char *text)
{
    struct stock_tally one = {0};
    check_int(sscanf(text, "%jd %jd %jd", &one.turns, &one.handovers, &one.longest_wait_ms), 3);
    stock_add(tally, &one);
}

/* ---- Turns of C ---- */

/* One turn, which nothing but the lock guards. */
static void stock_count(redisContext *link, struct stock_tally *tally)
{
    redisReply *reply = redisCommand(link, "MGET %s %s", number_key, writer_key);
    must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
    long long next = strtoll(reply->element[0]->str, NULL, 10) + 1;
    const char *writer = reply->element[1]->str;
    bool is_after_other = strcmp(writer, "c") != 0 && strcmp(writer, "nobody") != 0;
    freeReplyObject(reply);
    reply = redisCommand(link, "MSET %s %lld %s c", number_key, next, writer_key);
    must(reply && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    stock_add(tally, &(struct stock_tally){.turns = 1, .handovers = is_after_other});
}

void stock_serve(void *arg)
{
    struct stock_shift *shift = arg;
    redisContext *link = redis_link_connect(redis_server_socket(server));
    must(link);
    for (int64_t before_ms; (before_ms = now_ms()) < shift->until_ms;) {
        expect_ok(hl_lock_acquire(shift->lock, NULL));
        stock_add(&shift->tally, &(struct stock_tally){.longest_wait_ms = now_ms() - before_ms});
        stock_count(link, &shift->tally);
        check(hl_lock_is_held(shift->lock, NULL));
        expect_ok(hl_lock_release(shift->lock, NULL));
        if (shift->rests)
            deadline_nap();
    }
    redisFree(link);
}

/* ---- The end ---- */

static void tell_tally(const char *side, const char *other, const struct stock_tally *tally)
{
    tell_figure("%s: %jd turns, %jd of them right after one of %s; longest wait %jd ms", side,
                tally->turns, tally->handovers, other, tally->longest_wait_ms);
}

void stock_expect_whole(const struct stock_tally *c, const char *other,
                        const struct stock_tally *others)
{
    int64_t turns = c->turns + others->turns;
    char of_other[64];
    snprintf(of_other, sizeof of_other, "%s's", other);
    tell_tally("C", of_other, c);
    tell_tally(other, "C's", others);
    tell_figure("%jd updates lost", turns - stock_number());
    check_int(stock_number(), turns);
}
