/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One sale: the customers' orders, and what became of them. It lies in memory that all processes
 * share, so that it outlives the one that is killed. It is how the demo watches; nothing of it
 * keeps the sellers apart.
 */
#ifndef STOCK_DEDUCTION_SALE_H
#define STOCK_DEDUCTION_SALE_H

#include "options.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct sale {
    bool is_locked;  /* immutable, as the next three */
    long id;         /* in the keys' names: the parent's process id */
    uint32_t orders; /* more than the stock can serve: half as much again is asked for */
    uint32_t kills;  /* the order whose seller is killed; `orders` when nobody is */

    atomic_uint next; /* the order that is served next */
    atomic_uint sold, refused;
    atomic_uint lost;     /* holds that ended before their release */
    atomic_uint in_doubt; /* releases that nobody confirmed */
    atomic_uint ready, failed;
    int64_t began_us;                         /* the parent's */
    _Atomic int64_t ended_us;                 /* of the last answer */
    _Atomic int64_t killed_us, lease_left_ms; /* set by the seller that dies, last thing */
    _Atomic int64_t held_us, pause_us; /* the last hold; the longest time without one after it */
    atomic_uint answered[OPTIONS_MAX_PROCESSES]; /* orders, by process */
    _Atomic int killed_process;                  /* -1: none */
    long left_in_redis, sold_in_redis;           /* counted by the parent at the end */
    uint32_t waits;                              /* acquires; as many of wait_us */
    uint32_t wait_us[];                          /* by order, then sorted; UINT32_MAX: none */
};

/* NULL when there is no memory. */
struct sale *sale_new(const struct options *options, bool is_locked);
void sale_free(struct sale *sale);

/* Customers want one, two or three units. */
static inline long sale_quantity(uint32_t order)
{
    return (long)(order % 3) + 1;
}

/* The next order, or false when all are served. */
bool sale_next(struct sale *sale, uint32_t *ret_order);
void sale_note_wait(struct sale *sale, uint32_t order, int64_t wait_us);
void sale_note_answer(struct sale *sale, int process, bool is_sold);

/* Called when all sellers are done. */
void sale_close(struct sale *sale, long left_in_redis, long sold_in_redis);
int64_t sale_wait_us(const struct sale *sale, double quantile);
int64_t sale_duration_us(const struct sale *sale);
int64_t sale_pause_us(const struct sale *sale);
long sale_oversold(const struct sale *sale, long stock);
/* Does what is left and what was sold make up the stock, and was no more sold than there was? */
bool sale_is_right(const struct sale *sale, long stock);

int64_t sale_now_us(void);

#endif
