/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What hirelock top makes of looks, without a server, and by a clock of its own. */

#include "cli/output.h"
#include "cli/server.h"
#include "cli/top/order.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum { NEVER = -1 };

static long long clock_ms = 100000; /* of a machine that began just now */

long long cli_now_ms(void)
{
    return clock_ms;
}

/* No law here reads a time in words. */
void cli_write_ms(long long ms, char text[CLI_MS])
{
    snprintf(text, CLI_MS, "%lld", ms);
}

static struct top_store store;
static const struct cli_name stock = {"stock", 5, 0};

static json_object *lock_of(const char *owner)
{
    json_object *lock = json_object_new_object();

    json_object_object_add(lock, "kind", json_object_new_string("lock"));
    json_object_object_add(lock, "owner", json_object_new_string(owner));
    json_object_object_add(lock, "owners", json_object_new_int(1));
    return lock;
}

/* NULL: there is no key. */
static void look(json_object *lock)
{
    top_store_see(&store, &stock, lock);
    json_object_put(lock);
}

/* A survey that finds the lock, or misses it. */
static void survey(bool finds)
{
    store.round++;
    if (finds)
        look(lock_of("a:1"));
    store.finished = store.round;
}

/* So many wait, the first of them for so long; NEVER: the server does not know. */
static void look_at_queue(const char *owner, int waiters, int64_t queued_ms)
{
    json_object *lock = lock_of(owner);

    json_object_object_add(lock, "waiters", json_object_new_int(waiters));
    if (queued_ms != NEVER)
        json_object_object_add(lock, "queued_ms", json_object_new_int64(queued_ms));
    look(lock);
}

static struct top_record *record(void)
{
    return top_store_find(&store, stock.bytes, stock.length);
}

static void expect_longest(int64_t ms)
{
    check_int((int)top_record_longest_ms(record(), cli_now_ms()), (int)ms);
}

static void begin(void)
{
    top_store_init(&store);
}

static void end(void)
{
    top_store_deinit(&store);
}

#define FiguresLaw(suite, ...) Test(suite, __VA_ARGS__, .init = begin, .fini = end)

FiguresLaw(top_figures, of_a_lock_that_a_survey_misses_stay_for_some_seconds)
{
    survey(true);
    clock_ms += 5000;
    survey(false);
    top_store_sweep(&store);
    check(record() != NULL);
    clock_ms++;
    survey(false);
    top_store_sweep(&store);
    check(record() == NULL);
}

/* Whoever held it: one waiter may have gone, and another come, behind the same owner. */
FiguresLaw(top_figures, of_the_longest_wait_are_those_of_the_last_look)
{
    look_at_queue("a:1", 2, 900000);
    expect_longest(900000);
    clock_ms += 1000;
    expect_longest(901000);
    look_at_queue("a:1", 1, 500);
    expect_longest(500);
    look_at_queue("b:1", 1, 900000);
    expect_longest(900000);
}

FiguresLaw(top_figures, of_the_longest_wait_are_not_there_if_the_server_does_not_tell)
{
    look_at_queue("a:1", 1, 900000);
    look_at_queue("a:1", 1, NEVER);
    expect_longest(NEVER);
    look_at_queue("a:1", 1, 900000);
    look_at_queue("a:1", 0, NEVER);
    expect_longest(NEVER);
    look_at_queue("a:1", 1, 900000);
    look(NULL);
    expect_longest(NEVER);
}

/* Ten looks a second for five seconds; each finds a new owner, and so many tokens more. */
static struct top_figure pace_with_tokens(int tokens)
{
    char text[24];

    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "a:%d", i);
        json_object *lock = lock_of(text);
        snprintf(text, sizeof text, "%d", 7 + i * tokens);
        json_object_object_add(lock, "token_counter", json_object_new_string(text));
        look(lock);
        clock_ms += 100;
    }
    return top_record_pace(record());
}

FiguresLaw(top_figures, of_the_pace_are_exact_by_the_tokens_of_a_fenced_lock)
{
    struct top_figure pace = pace_with_tokens(5);

    check(!pace.is_least);
    check_msg(pace.value > 49 && pace.value < 51, "%.1f", pace.value);
}

/* A fenced lock of the same name may have left it behind. */
FiguresLaw(top_figures, of_the_pace_count_owners_beside_a_counter_of_tokens_that_stands_still)
{
    struct top_figure pace = pace_with_tokens(0);

    check(pace.is_least);
    check_msg(pace.value > 9 && pace.value < 11, "%.1f", pace.value);
}

/* As a client does whose threads pass the lock on. */
FiguresLaw(top_figures, of_the_pace_do_not_take_a_stock_of_tokens_for_owners)
{
    struct top_figure pace = pace_with_tokens(65537);

    check(pace.is_least);
    check_msg(pace.value > 9 && pace.value < 11, "%.1f", pace.value);
}

static void look_at(const char *name)
{
    json_object *lock = lock_of("a:1");

    top_store_see(&store, &(struct cli_name){name, strlen(name), 0}, lock);
    json_object_put(lock);
}

static struct top_order order;

static void order_begin(void)
{
    begin();
    order = (struct top_order){.column = TOP_WAITERS};
}

static void order_end(void)
{
    top_order_deinit(&order);
    end();
}

static void expect_rows(const char *names)
{
    char text[64] = "";

    order.moment.now_ms = clock_ms;
    top_order_make(&order, &store);
    for (size_t i = 0; i < order.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 order.rows[i]->name);
    check_str(text, names);
}

/* A key that was pressed meanwhile would hit another lock than the one that the user sees. */
Test(top_order, does_not_change_when_the_pace_of_a_lock_becomes_known, .init = order_begin,
     .fini = order_end)
{
    look_at("area");
    look_at("bay");
    expect_rows("area bay");
    clock_ms += 1000;
    look_at("bay"); /* 0.0, and of the other nothing is known yet */
    expect_rows("area bay");
    order.column = TOP_OWNERS;
    expect_rows("area bay");
}

Test(top_order, counts_the_locks_that_were_there_when_it_was_made, .init = order_begin,
     .fini = order_end)
{
    look_at("area");
    expect_rows("area");
    look_at("bay");
    check_int((int)order.locks, 1);
    expect_rows("area bay");
    check_int((int)order.locks, 2);
}
