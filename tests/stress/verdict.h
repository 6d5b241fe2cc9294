/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The verdict on a stress run: compares the processes' beliefs with the server's log. */
#ifndef HL_STRESS_VERDICT_H
#define HL_STRESS_VERDICT_H

#include "replay.h"

struct verdict {
    uint64_t calls, holds;
    uint64_t overlaps;   /* two believed at one time */
    uint64_t misordered; /* believed in another order than the server gave */
    uint64_t unfounded;  /* beliefs that the server never granted */
    uint64_t outlived;   /* believed before the server gave it, or after it took it back */
    uint64_t miscounted; /* more levels on the server than any owner asked for */
    uint64_t late;       /* the lock was free, and no waiter got it in time */
    uint64_t unrenewed;  /* two renewals were too far apart, or one came after the end */
    uint64_t starved;    /* one of Redisson's waited longer than it has to */
    uint64_t judged;     /* holds whose renewals were looked at */
    uint64_t strangers;  /* holds of Redisson's */
    uint64_t orphans;    /* acquired for an ended field; no violation by itself */
    int64_t longest_idle_ms, longest_gap_ms, longest_stranger_ms, longest_excess_ms;
    char text[300]; /* the first violation */
};

struct verdict_belief {
    uint32_t book;
    const struct ledger_record *record;
    int64_t first_ns, seen_ns;
    struct replay_tenure *tenure;
};

struct verdict_case {
    struct verdict *verdict;
    const struct ledger *ledger;
    const struct replay *replay;
    struct verdict_belief *belief;
    size_t count;
};

enum {
    VERDICT_CLOCK_MS = 1,    /* the server counts in whole milliseconds */
    VERDICT_SLACK_MS = 1000, /* what a loaded machine may add to a timer */
};

/* Consumes the replay's order: it is sorted afterwards. */
void verdict_give(struct verdict *verdict, struct replay *replay);

/* What has to do with time; verdict_pace.c. */
void verdict_pace(struct verdict_case *the_case);

__attribute__((format(printf, 3, 4))) void verdict_violation(struct verdict_case *the_case,
                                                             uint64_t *count, const char *format,
                                                             ...);

static inline uint64_t verdict_violations(const struct verdict *verdict)
{
    return verdict->overlaps + verdict->misordered + verdict->unfounded + verdict->outlived +
           verdict->miscounted + verdict->late + verdict->unrenewed + verdict->starved;
}

#endif
