/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Time. The library has one type, nanoseconds on CLOCK_BOOTTIME, which runs on during a suspend;
 * and it uses deadlines only. Timeouts in milliseconds exist at the API's edge.
 */
#ifndef HLI_BASE_CLOCK_H
#define HLI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

typedef int64_t hli_ns;

#define HLI_NEVER INT64_MAX
#define HLI_MS(ms) ((hli_ns)(ms)*1000000)

hli_ns hli_now(void);

/* `from` + ms; HLI_NEVER when ms is negative ("without end") or the sum does not fit. */
hli_ns hli_after_ms(hli_ns from, int64_t ms);

/* The time until `deadline`, rounded down; 0 when the deadline is over. */
int64_t hli_ms_left(hli_ns now, hli_ns deadline);

/*
 * The next sleep towards a deadline that is not HLI_NEVER: at most a second. Sleeps in the kernel
 * (a futex, a condition variable, poll, libevent) use CLOCK_MONOTONIC, which stops during a
 * suspend: so a deadline that passed during a suspend is noticed at most a second after it.
 */
hli_ns hli_nap(hli_ns deadline);

static inline struct timespec hli_timespec(hli_ns ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static inline hli_ns hli_earlier(hli_ns a, hli_ns b)
{
    return a < b ? a : b;
}

static inline hli_ns hli_later(hli_ns a, hli_ns b)
{
    return a > b ? a : b;
}

#endif
