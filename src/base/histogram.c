/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The histogram: powers of two of microseconds. Relaxed atomics, since the counters are read one by
 * one anyway. */
#include "base/histogram.h"

void hli_histogram_add(struct hli_histogram *histogram, hli_ns duration)
{
    uint64_t us = duration > 0 ? (uint64_t)duration / 1000 : 0;
    unsigned bits = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);
    uint_fast64_t seen = atomic_load_explicit(&histogram->max_us, memory_order_relaxed);

    if (us > 0)
        atomic_fetch_add_explicit(&histogram->sum_us, us, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->bucket[bits < 31 ? bits : 31], 1, memory_order_relaxed);
    while (seen < us &&
           !atomic_compare_exchange_weak_explicit(&histogram->max_us, &seen, us,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void hli_histogram_read(const struct hli_histogram *histogram, hl_histogram *ret)
{
    ret->count = 0;
    ret->sum_us = atomic_load_explicit(&histogram->sum_us, memory_order_relaxed);
    ret->max_us = atomic_load_explicit(&histogram->max_us, memory_order_relaxed);
    for (unsigned i = 0; i < 32; i++) {
        ret->bucket[i] = atomic_load_explicit(&histogram->bucket[i], memory_order_relaxed);
        ret->count += ret->bucket[i];
    }
}
