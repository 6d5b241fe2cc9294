/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A crew: threads of this process that work in rounds, all at once. */
#ifndef HL_BENCH_CREW_H
#define HL_BENCH_CREW_H

#include <stdatomic.h>
#include <stdint.h>

enum { CREW_MOST = 64 };

struct crew;

/* A member's work in a round: repeats it until `is_over`, and returns the number of repetitions. */
typedef uint64_t crew_work(void *arg, int member, const atomic_bool *is_over);

struct crew *crew_start(int threads);
void crew_stop(struct crew *crew);

/* A round that goes on until somebody sets *is_over; returns the sum. */
uint64_t crew_work_until(struct crew *crew, crew_work *work, void *arg, const atomic_bool *is_over);

/* A round until `until` (instant_now()'s time). */
uint64_t crew_round(struct crew *crew, crew_work *work, void *arg, int64_t until);

uint64_t crew_done(const struct crew *crew, int member); /* in the last round */

#endif
