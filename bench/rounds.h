/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Rounds: two sides that do the same work take turns of a fraction of a second, so that whatever
 * else the machine does at the time slows both. What counts is the median round of each.
 */
#ifndef HL_BENCH_ROUNDS_H
#define HL_BENCH_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

/* Works until `until` (instant_now()'s time), and returns how often it was done. */
typedef uint64_t rounds_side(void *arg, int64_t until);

struct rounds {
    size_t count;
    int64_t ms; /* of each, at most 100 */
    rounds_side *raw, *ours;
    void *arg;
    double raw_rate, ours_rate; /* the results: of the median round, per second */
};

void rounds_run(struct rounds *rounds);

#endif
