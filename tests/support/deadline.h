/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A point in time by which something must have happened. Deadlines are made longer by slow_ms(): by
 * the factor HL_TEST_SLOWDOWN, which sanitizers set, and by one that is derived from the machine's
 * load when the test program begins. The clock is CLOCK_BOOTTIME, the one by which leases
 * are judged.
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

/* When a wait for an event is given up. From a second on, `ms` is there to end a hang only, and is
 * made longer: a busy machine is no failure. */
struct deadline deadline_of_wait(int64_t ms);

bool deadline_is_over(struct deadline deadline);
int64_t deadline_left_ms(struct deadline deadline); /* rounded up; 0 when it is over */

/* Sleeps for a millisecond between two looks at a polled condition. */
void deadline_nap(void);

#endif
