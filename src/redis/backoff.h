/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* How long to pause before the next attempt: doubled each time up to a limit, with jitter, so that
 * a thousand clients do not come back at once (AWS Architecture Blog, "Exponential Backoff And
 * Jitter"). Pure. */
#ifndef HLI_REDIS_BACKOFF_H
#define HLI_REDIS_BACKOFF_H

#include "base/clock.h"

struct hli_backoff {
    int64_t min_ms, max_ms; /* immutable after init */
    unsigned attempts;      /* since the last success */
};

static inline void hli_backoff_reset(struct hli_backoff *backoff)
{
    backoff->attempts = 0;
}

/* From half of the step to the whole of it; `dice` is random. */
hli_ns hli_backoff_next(struct hli_backoff *backoff, uint64_t dice);

#endif
