/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Deadlines: sums that do not overflow, and the time that is left. */

#include "base/clock.h"
#include "support/test.h"

Test(clock, adds_milliseconds)
{
    check_int(hli_after_ms(5, 0), 5);
    check_int(hli_after_ms(5, 3), 3000005);
    check_int(HLI_MS(7), 7000000);
}

Test(clock, takes_a_negative_time_for_never)
{
    check(hli_after_ms(5, -1) == HLI_NEVER);
    check(hli_after_ms(5, INT64_MIN) == HLI_NEVER);
}

Test(clock, takes_a_sum_that_does_not_fit_for_never)
{
    check(hli_after_ms(0, INT64_MAX) == HLI_NEVER);
    check(hli_after_ms(INT64_MAX - 10, 1) == HLI_NEVER);
    check(hli_after_ms(HLI_NEVER, 1) == HLI_NEVER);
    check(hli_after_ms(0, INT64_C(100000000000)) == INT64_C(100000000000) * 1000000);
}

Test(clock, rounds_what_is_left_down_to_zero)
{
    check_int(hli_ms_left(0, HLI_MS(3)), 3);
    check_int(hli_ms_left(1, HLI_MS(3)), 2);
    check_int(hli_ms_left(HLI_MS(3), HLI_MS(3)), 0);
    check_int(hli_ms_left(HLI_MS(9), HLI_MS(3)), 0);
}

Test(clock, knows_the_earlier_and_the_later)
{
    check_int(hli_earlier(1, 2), 1);
    check_int(hli_earlier(2, 1), 1);
    check_int(hli_later(1, HLI_NEVER) == HLI_NEVER, true);
}

Test(clock, never_goes_back)
{
    hli_ns before = hli_now();
    for (int i = 0; i < 10000; i++) {
        hli_ns now = hli_now();
        check(now >= before);
        before = now;
    }
    check(before > 0);
}

Test(clock, naps_until_the_deadline_and_a_second_at_most)
{
    hli_ns now = hli_now();
    check(hli_nap(now + HLI_MS(500)) <= HLI_MS(500));
    check(hli_nap(now + HLI_MS(3600000)) == HLI_MS(1000));
    check(hli_nap(HLI_NEVER) == HLI_MS(1000));
    check_int(hli_nap(now - 1), 0);
}
