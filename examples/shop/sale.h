/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The sale of one order, which is what all the rest is for: under the article's lock, and fenced.
 */
#ifndef SHOP_SALE_H
#define SHOP_SALE_H

#include "order.h"
#include "pool.h"

#include <hirelock/hirelock.h>
#include <stdatomic.h>

struct sale {
    const struct config *config;
    hl_client *client;
    struct pool *pool;
    hl_cancel *hurry; /* ends all waits for locks */
    atomic_bool is_hurried;
    atomic_llong told_s;                 /* when the log was last told of an order that failed */
    hl_lock *locks[CONFIG_MAX_ARTICLES]; /* one for each article */
    atomic_ullong answers[ANSWER_TRY_AGAIN + 1]; /* how often each was given */
    atomic_ullong fenced,
        lost; /* writes that the row refused; holds that ended before their release */
};

/* Makes the locks. The rest belongs to the caller, and lives longer. */
int sale_init(struct sale *sale, const struct config *config, hl_client *client, struct pool *pool,
              hl_error *err);
void sale_deinit(struct sale *sale);

/* Ends all waits. Orders that come later are not begun; those that have their lock go on, as long
 * as they have a connection at once. Threads: any. */
void sale_hurry(struct sale *sale);

/* Serves one order. The answer SOLD or SOLD OUT is in the table then. Threads: any. */
enum answer sale_serve(struct sale *sale, const struct order *order);

#endif
