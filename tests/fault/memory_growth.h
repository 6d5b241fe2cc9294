/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* For sweeps that take seconds, of which sweep_without_leaks() has too few in its time. */
#ifndef HL_TEST_MEMORY_GROWTH_H
#define HL_TEST_MEMORY_GROWTH_H

#include "memory_kit.h"

/* A leak makes each sweep leave more behind; the noise of malloc's own makes only some do so.
 * Returns the failures of the last sweep. */
static inline long sweep_until_nothing_grows(const struct failing_scenario *scenario)
{
    struct deadline deadline = deadline_of_wait(60000);
    long failures = failing_malloc_sweep(scenario);
    size_t before, now = mallinfo2().uordblks;

    do {
        check_msg(!deadline_is_over(deadline), "each sweep leaves memory behind");
        before = now;
        failures = failing_malloc_sweep(scenario);
        now = mallinfo2().uordblks;
    } while (now > before);
    return failures;
}

#endif
