/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A histogram of durations that any thread may add to: hl_histogram with atomic counters. */
#ifndef HLI_BASE_HISTOGRAM_H
#define HLI_BASE_HISTOGRAM_H

#include "base/clock.h"

#include <hirelock/client.h>

#include <stdatomic.h>

struct hli_histogram { /* atomic */
    atomic_uint_fast64_t sum_us, max_us;
    atomic_uint_fast64_t bucket[32]; /* their sum is the count */
};

void hli_histogram_add(struct hli_histogram *histogram, hli_ns duration);
void hli_histogram_read(const struct hli_histogram *histogram, hl_histogram *ret);

#endif
