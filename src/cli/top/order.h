/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The order: which locks are shown, and which comes first. Of the thread of the screen. */
#ifndef CLI_TOP_ORDER_H
#define CLI_TOP_ORDER_H

#include "cli/top/column.h"
#include "cli/top/store.h"

enum { TOP_FILTER = 200 };

struct top_order {
    const struct top_record **rows; /* owned; each is the store's */
    size_t count, room;
    enum top_column column;
    bool is_reversed;
    char filter[TOP_FILTER]; /* a part of the name, or a pattern of SCAN; "": all */
    struct top_moment moment;
    size_t locks, waited; /* the store's, as it was then */
    int64_t keys;
    uint64_t made_of; /* the store's changes, and */
    char made_for[TOP_FILTER];
};

/* Brings it up to what the store has now. With the store's mutex. */
void top_order_make(struct top_order *order, const struct top_store *store);
void top_order_deinit(struct top_order *order);

/* The row of the lock with this name, as in Redis; order->count: it is not shown. */
size_t top_order_find(const struct top_order *order, const char *name, size_t length);

#endif
