/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Reads the clock and naps; nothing else in the tests sleeps. */
#include "deadline.h"

#include <time.h>

#include "test.h"

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t now_ms(void)
{
    return now_ns() / 1000000;
}

struct deadline deadline_in(int64_t ms)
{
    return (struct deadline){.at_ns = now_ns() + slow_ms(ms) * 1000000};
}

bool deadline_is_over(struct deadline deadline)
{
    return now_ns() >= deadline.at_ns;
}

int64_t deadline_left_ms(struct deadline deadline)
{
    int64_t left_ns = deadline.at_ns - now_ns();
    return left_ns > 0 ? (left_ns + 999999) / 1000000 : 0;
}

void deadline_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
