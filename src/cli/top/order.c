/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/order.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { ORDER_MOVES = 200 }; /* from which on a whole sort is cheaper */

static bool order_shows(const struct top_order *order, const struct top_record *record)
{
    const char *name = record->name + order->moment.prefix, *filter = order->filter;
    size_t length = record->length - order->moment.prefix;

    if (!filter[0])
        return true;
    if (strpbrk(filter, "*?["))
        return fnmatch(filter, name, 0) == 0;
    return memmem(name, length, filter, strlen(filter)) != NULL;
}

static int order_compare(const void *left, const void *right, void *arg)
{
    const struct top_order *order = arg;
    const struct top_record *const *first = left, *const *second = right;
    int is_first = top_column_compare(order->column, *first, *second, &order->moment);

    return order->is_reversed ? -is_first : is_first;
}

static bool order_has_room(struct top_order *order, size_t count)
{
    if (count <= order->room)
        return true;
    const struct top_record **rows = realloc(order->rows, 2 * count * sizeof(*rows));
    if (!rows)
        return false;
    order->rows = rows;
    order->room = 2 * count;
    return true;
}

/* Where this row belongs among the first ones, which are in order. */
static size_t order_place(struct top_order *order, const struct top_record *record, size_t end)
{
    size_t begin = 0;

    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (order_compare(&order->rows[middle], &record, order) > 0)
            end = middle;
        else
            begin = middle + 1;
    }
    return begin;
}

/* From one picture to the next few rows change their places, and of very many locks a whole sort
 * would keep a processor busy. */
static void order_sort(struct top_order *order)
{
    size_t moves = 0;

    for (size_t i = 1; i < order->count && moves < ORDER_MOVES; i++) {
        const struct top_record *record = order->rows[i];
        if (order_compare(&order->rows[i - 1], &record, order) <= 0)
            continue;
        size_t to = order_place(order, record, i);
        memmove(&order->rows[to + 1], &order->rows[to], (i - to) * sizeof(*order->rows));
        order->rows[to] = record;
        moves++;
    }
    if (moves == ORDER_MOVES)
        qsort_r(order->rows, order->count, sizeof(*order->rows), order_compare, order);
}

static void order_collect(struct top_order *order, const struct top_store *store)
{
    order->count = 0;
    if (!order_has_room(order, store->count))
        return;
    for (size_t i = 0; i < store->bucket_count; i++)
        for (const struct top_record *at = store->buckets[i]; at; at = at->next)
            if (order_shows(order, at))
                order->rows[order->count++] = at;
    order->made_of = store->changes;
    memcpy(order->made_for, order->filter, sizeof(order->filter));
}

void top_order_make(struct top_order *order, const struct top_store *store)
{
    if (order->made_of != store->changes || strcmp(order->made_for, order->filter) != 0)
        order_collect(order, store);
    order->locks = store->count;
    order->waited = store->waited;
    order->keys = store->keys;
    order_sort(order);
}

void top_order_deinit(struct top_order *order)
{
    free(order->rows);
}

size_t top_order_find(const struct top_order *order, const char *name, size_t length)
{
    size_t at = 0;

    while (at < order->count &&
           (order->rows[at]->length != length || memcmp(order->rows[at]->name, name, length) != 0))
        at++;
    return at;
}
