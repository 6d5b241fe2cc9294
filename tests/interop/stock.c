/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The C side of java/.../Stock.java, and both at once. */
#include "stock.h"

#include "redisson.h"

#include "support/actor.h"
#include "support/fatal.h"
#include "support/redis_link.h"

enum { TEAM = 4 };

static const char number_key[] = "units:{stock}", writer_key[] = "writer:{stock}";

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

/* ---- One thread of each side ---- */

/* One turn, which nothing but the lock guards. */
static void stock_count(redisContext *link, struct stock_tally *tally)
{
    redisReply *reply = redisCommand(link, "MGET %s %s", number_key, writer_key);
    must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
    long long next = strtoll(reply->element[0]->str, NULL, 10) + 1;
    bool is_after_java = strcmp(reply->element[1]->str, "java") == 0;
    freeReplyObject(reply);
    reply = redisCommand(link, "MSET %s %lld %s c", number_key, next, writer_key);
    must(reply && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    stock_add(tally, &(struct stock_tally){.turns = 1, .handovers = is_after_java});
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
    }
    redisFree(link);
}

int stock_begin_java(const char *who, const char *kind, const char *lock, int64_t ms)
{
    return redisson_begin(who, "%s.serve %s %s %s %lld", kind, lock, number_key, writer_key,
                          (long long)ms);
}

void stock_end_java(int number, struct stock_tally *tally)
{
    struct stock_tally one = {0};
    const char *text = redisson_end(number);
    check_int(sscanf(text, "%jd %jd %jd", &one.turns, &one.handovers, &one.longest_wait_ms), 3);
    stock_add(tally, &one);
}

/* ---- All at once ---- */

static bool is_done(void *number)
{
    return redisson_is_done(*(int *)number);
}

static void tell_tally(const char *side, const char *other, const struct stock_tally *tally)
{
    tell_figure("%s: %jd turns, %jd of them right after one of %s; longest wait %jd ms", side,
                tally->turns, tally->handovers, other, tally->longest_wait_ms);
}

static void expect_nothing_lost(const struct stock_result *result)
{
    int64_t turns = result->c.turns + result->java.turns;
    tell_tally("C", "Java's", &result->c);
    tell_tally("Java", "C's", &result->java);
    tell_figure("%jd updates lost", turns - stock_number());
    check_int(stock_number(), turns);
}

struct stock_result stock_run(const struct stock_team *team)
{
    struct stock_shift shifts[TEAM];
    struct actor *actors[TEAM];
    int javas[TEAM], count = 0;
    struct stock_result result = {0};
    stock_fill();
    for (; count < TEAM && team->locks[count]; count++) {
        char who[8];
        snprintf(who, sizeof who, "t%d", count);
        javas[count] = stock_begin_java(who, team->kind, team->javas_lock, team->ms);
        shifts[count] = (struct stock_shift){team->locks[count], now_ms() + team->ms, {0}};
        actors[count] = actor_start();
        actor_begin(actors[count], stock_serve, &shifts[count]);
    }
    for (int i = 0; i < count; i++) {
        check(wait_until(is_done, &javas[i], team->ms + 60000));
        stock_end_java(javas[i], &result.java);
    }
    for (int i = 0; i < count; i++) {
        actor_await(actors[i]);
        stock_add(&result.c, &shifts[i].tally);
    }
    expect_nothing_lost(&result);
    return result;
}
