/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Capped exponential backoff with equal jitter. */
#include "redis/backoff.h"

hli_ns hli_backoff_pause(int64_t min_ms, int64_t max_ms, unsigned attempts, uint64_t dice)
{
    int64_t step = min_ms;

    for (unsigned i = 0; i < attempts && step < max_ms; i++)
        step *= 2;
    if (step > max_ms)
        step = max_ms;
    hli_ns half = HLI_MS(step) / 2;
    return half + (hli_ns)(dice % (uint64_t)(half + 1));
}
