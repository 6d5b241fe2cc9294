/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Points in time, in nanoseconds of the clock by which the library judges leases. */
#ifndef HL_BENCH_INSTANT_H
#define HL_BENCH_INSTANT_H

#include <stdint.h>
#include <time.h>

static inline int64_t instant_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t instant_after_ms(int64_t ms)
{
    return instant_now() + ms * 1000000;
}

static inline void instant_sleep_us(int64_t us)
{
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    nanosleep(&pause, NULL);
}

static inline void instant_sleep_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

#endif
