/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Java's workers at a stock, and both sides at once. */
#include "stock.h"

#include "redisson.h"

#include "support/actor.h"

enum { TEAM = 4 };

int stock_begin_java(const char *who, const char *kind, const char *lock, int64_t ms)
{
    return redisson_begin(who, "%s.serve %s %s %s %lld", kind, lock, STOCK_NUMBER, STOCK_WRITER,
                          (long long)ms);
}

void stock_end_java(int number, struct stock_tally *tally)
{
    stock_add_text(tally, redisson_end(number));
}

/* ---- All at once ---- */

static bool is_done(void *number)
{
    return redisson_is_done(*(int *)number);
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
        shifts[count] = (struct stock_shift){team->locks[count], now_ms() + team->ms, false, {0}};
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
    stock_expect_whole(&result.c, "Java", &result.java);
    return result;
}
