/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The verdict on a stress run: what the processes believed against what the server did. */
#ifndef HL_STRESS_VERDICT_H
#define HL_STRESS_VERDICT_H

#include "replay.h"

struct verdict {
    uint64_t calls, holds;
    uint64_t overlaps;  /* two believed at one time */
    uint64_t unfounded; /* believed what the server never gave */
    uint64_t outlived;  /* believed before the server gave it, or after it took it back */
    uint64_t late;      /* the lock was free, somebody waited, and nobody got it in time */
    uint64_t unrenewed; /* two renewals were too far apart, or one came after the end */
    uint64_t judged;    /* renewal gaps that were looked at */
    int64_t longest_idle_ms, longest_gap_ms;
    char text[300]; /* the first violation */
};

/* Consumes the replay's order: it is sorted afterwards. */
void verdict_give(struct verdict *verdict, struct replay *replay);

static inline uint64_t verdict_violations(const struct verdict *verdict)
{
    return verdict->overlaps + verdict->unfounded + verdict->outlived + verdict->late +
           verdict->unrenewed;
}

#endif
