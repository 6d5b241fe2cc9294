/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Find, acquire, read, decide, write, release. A buyer who asks again finds the answer of the first
 * time; the lock keeps others from the article meanwhile; the token keeps a late write out of the
 * row; the order and the new stock are written together.
 */
#define _POSIX_C_SOURCE 200809L
#include "sale.h"

#include "store.h"

#include <stdio.h>
#include <time.h>

enum {
    SALE_ROUNDS = 3,
    /* A hold is renewed for no longer than this: a thread that hangs may not keep an article
     * closed. A sale mostly takes some milliseconds. One whose every wait goes on until just
     * before its deadline takes longer than this: then its token keeps the late write out. */
    SALE_MAX_HOLD_MS = 30000
};

/* One buyer's order under way. */
struct attempt {
    struct sale *sale;
    const struct order *order;
    hl_lock *lock;
    struct reading reading;
    enum answer answer;
    char why[ORDER_WHY_SIZE]; /* of the last failure */
};

int sale_init(struct sale *sale, const struct config *config, hl_client *client, struct pool *pool,
              hl_error *err)
{
    int rc = hl_cancel_new(&sale->hurry);

    sale->config = config;
    sale->client = client;
    sale->pool = pool;
    for (int i = 0; rc == 0 && i < config->article_count; i++) {
        hl_lock_options options = HL_LOCK_OPTIONS_INIT;
        char name[CONFIG_NAME_SIZE + 16];

        snprintf(name, sizeof(name), "article:%s", config->articles[i].name);
        options.kind = HL_LOCK_FENCED;
        options.name = name;
        rc = hl_lock_new_with(client, &options, &sale->locks[i], err);
    }
    return rc;
}

void sale_deinit(struct sale *sale)
{
    for (int i = 0; i < CONFIG_MAX_ARTICLES; i++)
        hl_lock_free(sale->locks[i]);
    hl_cancel_free(sale->hurry);
}

void sale_hurry(struct sale *sale)
{
    atomic_store(&sale->is_hurried, true);
    hl_cancel_fire(sale->hurry);
    pool_hurry(sale->pool);
}

static int attempt_acquire(struct attempt *attempt, hl_error *err)
{
    const struct config *config = attempt->sale->config;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = config->wait_ms;
    options.max_hold_ms = SALE_MAX_HOLD_MS;
    options.cancel = attempt->sale->hurry;
    return config->is_locked ? hl_lock_acquire_with(attempt->lock, &options, err) : 0;
}

/* What a release reports changes no answer: the order is in the table, or it is not. */
static void attempt_release(struct attempt *attempt)
{
    if (attempt->sale->config->is_locked && hl_lock_release(attempt->lock, NULL) == HL_ELOST)
        atomic_fetch_add(&attempt->sale->lost, 1);
}

/* The steps that need a connection. */
static enum store_verdict step_find(struct attempt *attempt, struct database *database)
{
    return store_find(database, attempt->sale->config, attempt->order, &attempt->answer);
}

static enum store_verdict step_read(struct attempt *attempt, struct database *database)
{
    return store_read(database, &attempt->reading);
}

static enum store_verdict step_write(struct attempt *attempt, struct database *database)
{
    enum store_verdict verdict = store_write(database, &attempt->reading, attempt->order,
                                             attempt->answer, hl_client_id(attempt->sale->client));

    return verdict == STORE_TWICE ? step_find(attempt, database) : verdict;
}

static enum store_verdict step_token(struct attempt *attempt, struct database *database)
{
    return store_token(database, attempt->reading.article, &attempt->reading.token);
}

/* A connection is borrowed for one statement: while a thread waits for a lock or thinks, others use
 * it. */
static enum store_verdict attempt_step(struct attempt *attempt,
                                       enum store_verdict (*step)(struct attempt *attempt,
                                                                  struct database *database))
{
    struct database *database = pool_take(attempt->sale->pool, attempt->why, sizeof(attempt->why));

    if (!database)
        return STORE_FAILED;
    enum store_verdict verdict = step(attempt, database);
    snprintf(attempt->why, sizeof(attempt->why), "%s",
             verdict == STORE_REFUSED ? "the row has seen a larger token" : database->why);
    pool_give(attempt->sale->pool, database);
    return verdict;
}

/* In place of what a shop does here: a price, a limit of this buyer, a payment. */
static void attempt_decide(struct attempt *attempt)
{
    long ms = attempt->sale->config->decide_ms;

    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    attempt->answer =
        attempt->reading.stock >= attempt->order->quantity ? ANSWER_SOLD : ANSWER_SOLD_OUT;
}

/* Inside of the lock. A step that fails leaves the answer open, and the buyer asks again. */
static enum store_verdict attempt_sell(struct attempt *attempt)
{
    const struct config *config = attempt->sale->config;

    attempt->reading = (struct reading){
        .article = config->articles[attempt->order->article].name,
        .token = hl_lock_token(attempt->lock, NULL), /* 0 without a lock */
    };
    if (config->is_locked && attempt->reading.token == 0)
        return STORE_REFUSED; /* the hold is over already */
    enum store_verdict verdict = attempt_step(attempt, step_read);
    if (verdict != STORE_DONE)
        return verdict;
    attempt_decide(attempt);
    return attempt_step(attempt, step_write);
}

/* A row that has seen larger tokens than Redis gives refuses every hold, as after a Redis that came
 * back empty. If it refused us because we were late, this changes nothing. */
static enum store_verdict attempt_raise(struct attempt *attempt)
{
    enum store_verdict verdict = attempt_step(attempt, step_token);
    hl_error err = HL_ERROR_INIT;

    atomic_fetch_add(&attempt->sale->fenced, 1);
    if (verdict != STORE_DONE)
        return STORE_FAILED;
    if (attempt->reading.token > 0 &&
        hl_lock_raise_token(attempt->lock, attempt->reading.token, &err) < 0) {
        snprintf(attempt->why, sizeof(attempt->why), "%s", err.text);
        return STORE_FAILED;
    }
    return STORE_REFUSED; /* so far: the next round has a larger token */
}

/* One hold. */
static enum store_verdict attempt_round(struct attempt *attempt)
{
    hl_error err = HL_ERROR_INIT;

    if (attempt_acquire(attempt, &err) < 0) {
        snprintf(attempt->why, sizeof(attempt->why), "%s", err.text);
        return STORE_FAILED;
    }
    enum store_verdict verdict = attempt_sell(attempt);
    if (verdict == STORE_REFUSED)
        verdict = attempt_raise(attempt);
    attempt_release(attempt);
    return verdict;
}

/* The reason is for the log: it may name hosts and users, which are no buyer's business. One line
 * a second is enough of an outage. */
static void attempt_tell(struct attempt *attempt)
{
    long long now_s = time(NULL);

    if (atomic_exchange(&attempt->sale->told_s, now_s) != now_s)
        fprintf(stderr, "shop: order %s: %s\n", attempt->order->id, attempt->why);
}

enum answer sale_serve(struct sale *sale, const struct order *order)
{
    struct attempt attempt = {.sale = sale,
                              .order = order,
                              .lock = sale->locks[order->article],
                              .why = "the shop closes"};
    enum store_verdict verdict = STORE_FAILED;

    if (!atomic_load(&sale->is_hurried))
        verdict = attempt_step(&attempt, step_find);
    if (verdict == STORE_ABSENT) {
        verdict = STORE_REFUSED;
        for (int i = 0; i < SALE_ROUNDS && verdict == STORE_REFUSED; i++)
            verdict = attempt_round(&attempt);
    }
    enum answer answer = verdict == STORE_DONE ? attempt.answer : ANSWER_TRY_AGAIN;
    if (answer == ANSWER_TRY_AGAIN)
        attempt_tell(&attempt);
    atomic_fetch_add(&sale->answers[answer], 1);
    return answer;
}
