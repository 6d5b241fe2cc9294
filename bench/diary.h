/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A diary of one lock, in memory that processes share: its holders and their times. Hand-over is
 * the time from the call of release in one process to the return of acquire in the next.
 */
#ifndef HL_BENCH_DIARY_H
#define HL_BENCH_DIARY_H

#include "samples.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { DIARY_TURNS = 1 << 21 };

struct turn {
    int process;
    int64_t got_at, gave_at;
};

struct diary {
    atomic_size_t count; /* what does not fit is counted, and not written */
    struct turn turn[DIARY_TURNS];
};

/* By the holder, at once when it has the lock. The caller writes gave_at before it lets go. */
struct turn *diary_begin_turn(struct diary *diary, int process);

/* Between rounds: appends the hand-overs, in microseconds, and begins a new page. Returns how often
 * the lock went to another process. */
uint64_t diary_read(struct diary *diary, struct samples *ret_hands);

#endif
