/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Grants: one async waiter for each of many names, and when each of them was served. */
#ifndef HL_BENCH_GRANTS_H
#define HL_BENCH_GRANTS_H

#include "scenario.h"

#include <stdatomic.h>

struct grants {
    int count;
    atomic_int served;
    struct grant {
        struct grants *grants;
        hl_lock *lock;
        hl_owner *owner;
        int64_t free_at; /* for the scenario: from when on it could be had */
        int64_t served_at;
    } grant[];
};

/* Names "PREFIX0", "PREFIX1" ..., all of them held by somebody. Returns when every waiter listens,
 * and has asked a second time since. */
struct grants *grants_begin(struct bench *bench, hl_client *client, const char *prefix, int count);

/* Until all are served; those that are not within ms have served_at 0. */
void grants_wait(struct grants *grants, int64_t ms);

/* Releases and frees them. Before the client is closed; all of them served, or the client's close
 * ends the rest. */
void grants_release(struct grants *grants);

#endif
