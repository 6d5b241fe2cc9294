/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Four threads of C and four of Java serve one stock as fast as they can for a minute
 * (HL_INTEROP_SECONDS): nothing is lost, and each side has its turns after the other's.
 */
#include "redisson.h"
#include "stock.h"

#include "support/actor.h"
#include "support/fatal.h"
#include "support/redis_link.h"

enum { SECONDS = 60, CLIENTS = 2, THREADS = 4, HANDOVERS = 100 };

struct server_of_stock {
    hl_lock *lock;
    int64_t until_ms;
    struct stock_tally tally;
};

static int64_t run_ms(void)
{
    const char *seconds = getenv("HL_INTEROP_SECONDS");
    return (seconds ? strtoll(seconds, NULL, 10) : SECONDS) * 1000;
}

static void serve(void *arg)
{
    struct server_of_stock *me = arg;
    redisContext *link = redis_link_connect(redis_server_socket(server));
    must(link);
    for (int64_t before_ms; (before_ms = now_ms()) < me->until_ms;) {
        must(hl_lock_acquire(me->lock, NULL) == HL_OK);
        stock_add(&me->tally, &(struct stock_tally){.longest_wait_ms = now_ms() - before_ms});
        stock_count(link, &me->tally);
        must(hl_lock_is_held(me->lock, NULL));
        must(hl_lock_release(me->lock, NULL) == HL_OK);
    }
    redisFree(link);
}

static bool is_served(void *arg)
{
    const int *number = arg;
    return redisson_is_done(*number);
}

static void tell_tally(const char *side, const char *other, const struct stock_tally *tally)
{
    tell_figure("%s: %jd turns, %jd of them right after one of %s; longest wait %jd ms", side,
                tally->turns, tally->handovers, other, tally->longest_wait_ms);
}

static void expect_shared(const struct stock_tally *c, const struct stock_tally *java)
{
    tell_tally("C", "Java's", c);
    tell_tally("Java", "C's", java);
    tell_figure("%jd updates lost", c->turns + java->turns - stock_number());
    check_int(stock_number(), c->turns + java->turns);
    check(c->handovers >= HANDOVERS * run_ms() / 60000);
    check(java->handovers >= HANDOVERS * run_ms() / 60000);
    check(c->longest_wait_ms < REDISSON_LEASE_MS);
    check(java->longest_wait_ms < REDISSON_LEASE_MS);
}

Law(one_stock, served_by_threads_of_c_and_java_loses_nothing)
{
    static struct server_of_stock servers[THREADS];
    struct actor *actors[THREADS];
    int javas[THREADS];
    struct stock_tally c = {0}, java = {0};
    hl_client *clients[CLIENTS] = {open_client(NULL), open_client(NULL)};
    stock_fill();
    for (int i = 0; i < THREADS; i++) {
        char who[8];
        snprintf(who, sizeof who, "t%d", i);
        javas[i] = stock_begin_java(who, "lock", "stock", run_ms());
        servers[i].lock = new_lock(clients[i % CLIENTS], "stock");
        servers[i].until_ms = now_ms() + run_ms();
        actors[i] = actor_start();
        actor_begin(actors[i], serve, &servers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        check(wait_until(is_served, &javas[i], run_ms() + 60000));
        stock_end_java(javas[i], &java);
    }
    for (int i = 0; i < THREADS; i++) {
        actor_await(actors[i]);
        stock_add(&c, &servers[i].tally);
    }
    expect_shared(&c, &java);
}
