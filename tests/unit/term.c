/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Terms: numbers that a server says, of any size. */

#include "redis/term.h"

#include "support/test.h"

Test(term, has_a_grace_without_end_by_a_number_that_does_not_fit)
{
    struct hli_term term;
    const struct hli_term_said said = {.id = "one", .grace_left_ms = INT64_MAX, .told_at = 5};

    hli_term_init(&term, 1000);
    hli_term_meet(&term, &term, &said);
    check_int(atomic_load(&term.grace_until), HLI_NEVER);
}

Test(term, is_advised_on_by_any_number_of_seconds)
{
    const struct hli_term_said endless = {.min_replicas = 1, .max_lag_s = INT64_MAX};
    const struct hli_term_said ten = {.min_replicas = 1, .max_lag_s = 10};

    check(hli_term_advice(&endless, INT64_MAX / 2) != NULL);
    check(hli_term_advice(&ten, 9999) != NULL);
    check(hli_term_advice(&ten, 10000) == NULL);
}
