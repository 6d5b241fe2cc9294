/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Time on CLOCK_BOOTTIME. */
#include "base/clock.h"

enum { CLOCK_NAP_MS = 1000 };

hli_ns hli_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (hli_ns)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

hli_ns hli_after_ms(hli_ns from, int64_t ms)
{
    hli_ns ns, sum;

    if (ms < 0 || __builtin_mul_overflow(ms, 1000000, &ns) ||
        __builtin_add_overflow(from, ns, &sum))
        return HLI_NEVER;
    return sum;
}

int64_t hli_ms_left(hli_ns now, hli_ns deadline)
{
    return deadline > now ? (deadline - now) / 1000000 : 0;
}

hli_ns hli_nap(hli_ns deadline)
{
    return hli_earlier(hli_later(deadline - hli_now(), 0), HLI_MS(CLOCK_NAP_MS));
}
