/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The orders, and the figures. */
#define _DEFAULT_SOURCE
#include "sale.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int64_t sale_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint32_t sale_orders_for(long units)
{
    uint32_t orders = 0;

    for (long wanted = 0; wanted < units; orders++)
        wanted += sale_quantity(orders);
    return orders;
}

static size_t sale_size(uint32_t orders)
{
    return sizeof(struct sale) + orders * sizeof(uint32_t);
}

struct sale *sale_new(const struct options *options, bool is_locked)
{
    uint32_t orders = sale_orders_for(options->stock + options->stock / 2 + 3);
    struct sale *sale =
        mmap(NULL, sale_size(orders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (sale == MAP_FAILED)
        return NULL;
    sale->is_locked = is_locked;
    sale->id = (long)getpid();
    sale->orders = orders;
    /* With one process nobody would be left to go on. */
    bool kills = options->kill_pid != 0 || (options->kill && options->processes > 1);
    sale->kills = is_locked && kills ? orders / 3 : orders;
    sale->killed_process = -1;
    for (uint32_t i = 0; i < orders; i++)
        sale->wait_us[i] = UINT32_MAX;
    return sale;
}

void sale_free(struct sale *sale)
{
    if (sale)
        munmap(sale, sale_size(sale->orders));
}

bool sale_next(struct sale *sale, uint32_t *ret_order)
{
    *ret_order = atomic_fetch_add(&sale->next, 1);
    return *ret_order < sale->orders;
}

/* Also the longest time without a hold after the kill. With a lock that a dead process holds it is
 * the first one. When the lock's server dies, sellers of the holder's process may go on for a
 * while: they hand over among themselves what is still theirs. */
void sale_note_wait(struct sale *sale, uint32_t order, int64_t wait_us)
{
    int64_t now_us = sale_now_us(), pause_us = now_us - atomic_exchange(&sale->held_us, now_us);

    sale->wait_us[order] = wait_us < UINT32_MAX ? (uint32_t)wait_us : UINT32_MAX - 1;
    if (atomic_load(&sale->killed_us) != 0 && pause_us > atomic_load(&sale->pause_us))
        atomic_store(&sale->pause_us, pause_us);
}

void sale_note_answer(struct sale *sale, int process, bool is_sold)
{
    atomic_fetch_add(is_sold ? &sale->sold : &sale->refused, 1);
    atomic_fetch_add(&sale->answered[process], 1);
    atomic_store(&sale->ended_us, sale_now_us());
}

static int sale_compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

void sale_close(struct sale *sale, long left_in_redis, long sold_in_redis)
{
    sale->left_in_redis = left_in_redis;
    sale->sold_in_redis = sold_in_redis;
    qsort(sale->wait_us, sale->orders, sizeof(sale->wait_us[0]), sale_compare);
    while (sale->waits < sale->orders && sale->wait_us[sale->waits] != UINT32_MAX)
        sale->waits++;
}

int64_t sale_wait_us(const struct sale *sale, double quantile)
{
    if (sale->waits == 0)
        return 0;
    return sale->wait_us[(uint32_t)(quantile * (sale->waits - 1))];
}

int64_t sale_duration_us(const struct sale *sale)
{
    return sale->ended_us > sale->began_us ? sale->ended_us - sale->began_us : 1;
}

/* How long nobody had the lock because its holder or its server was dead. */
int64_t sale_pause_us(const struct sale *sale)
{
    return sale->pause_us;
}

long sale_oversold(const struct sale *sale, long stock)
{
    return sale->sold_in_redis > stock ? sale->sold_in_redis - stock : 0;
}

bool sale_is_right(const struct sale *sale, long stock)
{
    return sale->left_in_redis >= 0 && sale->left_in_redis + sale->sold_in_redis == stock;
}
