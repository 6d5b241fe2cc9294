/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The pause before the next attempt to connect: doubled each time up to a limit, with jitter, so
 * that a thousand clients do not reconnect at once (AWS Architecture Blog, "Exponential Backoff
 * And Jitter"). Pure. */
#ifndef HLI_REDIS_BACKOFF_H
#define HLI_REDIS_BACKOFF_H

#include "base/clock.h"

/* Between half of the step and the whole step, after so many failed attempts; `dice` is a random
 * number. */
hli_ns hli_backoff_pause(int64_t min_ms, int64_t max_ms, unsigned attempts, uint64_t dice);

#endif
