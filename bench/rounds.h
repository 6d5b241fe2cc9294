/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Rounds: sides that do the same work take turns of a fraction of a second, so that whatever else
 * the machine does at the time slows them all. What counts is the median round of each.
 */
#ifndef HL_BENCH_ROUNDS_H
#define HL_BENCH_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

enum { ROUNDS_SIDES = 5 };

/* Works until `until` (instant_now()'s time), and returns how often it was done. */
typedef uint64_t rounds_work(void *arg, int64_t until);

struct rounds {
    size_t count;
    int64_t ms; /* of each, at most 100 */
    size_t sides;
    struct rounds_side {
        rounds_work *work;
        void *arg;
        double rate;   /* the results: of the median round, per second */
        double cpu_us; /* and this process's CPU time for each, over all rounds */
    } side[ROUNDS_SIDES];
};

void rounds_run(struct rounds *rounds);

#endif
