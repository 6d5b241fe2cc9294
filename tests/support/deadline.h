/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A point in time by which something must have happened. Deadlines are made longer by slow_ms()
 * under sanitizers and valgrind; the clock is CLOCK_BOOTTIME, the one by which leases are judged.
 */
#ifndef HL_TEST_DEADLINE_H
#define HL_TEST_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline {
    int64_t at_ns;
};

int64_t now_ns(void);
int64_t now_ms(void);

struct deadline deadline_in(int64_t ms); /* in slow_ms(ms) from now */
bool deadline_is_over(struct deadline deadline);
int64_t deadline_left_ms(struct deadline deadline); /* rounded up; 0 when it is over */

/* A millisecond between two looks at a condition that nobody announces. */
void deadline_nap(void);

#endif
