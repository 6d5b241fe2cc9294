/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* How long a lock is held in a scenario: always the same, or at random, asleep in any case. */
#ifndef HL_BENCH_HOLD_H
#define HL_BENCH_HOLD_H

#include "instant.h"

#include <stdbool.h>

struct hold {
    int64_t us;     /* 0: released at once */
    bool is_random; /* from 0 to us */
    uint64_t state;
};

/* The same, with random numbers of its own. */
static inline struct hold hold_of(const struct hold *hold, int number)
{
    struct hold own = *hold;

    own.state = 0x9e3779b97f4a7c15u * (uint64_t)(number + 1);
    return own;
}

static inline uint64_t hold_random(struct hold *hold) /* xorshift64 */
{
    hold->state ^= hold->state << 13;
    hold->state ^= hold->state >> 7;
    hold->state ^= hold->state << 17;
    return hold->state;
}

static inline void hold_on(struct hold *hold)
{
    if (hold->us == 0)
        return;
    instant_sleep_us(hold->is_random ? (int64_t)(hold_random(hold) % (uint64_t)hold->us)
                                     : hold->us);
}

#endif
