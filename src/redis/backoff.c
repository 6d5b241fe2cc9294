/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Capped exponential backoff with equal jitter. */
#include "redis/backoff.h"

hli_ns hli_backoff_next(struct hli_backoff *backoff, uint64_t dice)
{
    int64_t step = backoff->min_ms;

    for (unsigned i = 0; i < backoff->attempts && step < backoff->max_ms; i++)
        step *= 2;
    if (step > backoff->max_ms)
        step = backoff->max_ms;
    backoff->attempts++;
    hli_ns half = HLI_MS(step) / 2;
    return half + (hli_ns)(dice % (uint64_t)(half + 1));
}
