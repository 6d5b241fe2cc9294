/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Pauses between attempts to connect. */

#include "redis/backoff.h"

#include "support/test.h"

Test(backoff, doubles_up_to_its_limit)
{
    static const int64_t steps_ms[] = {50, 100, 200, 300, 300, 300};
    for (unsigned i = 0; i < sizeof steps_ms / sizeof steps_ms[0]; i++) {
        hli_ns half = hli_backoff_pause(50, 300, i, 0);
        check_int(half, HLI_MS(steps_ms[i]) / 2);
        check_int(hli_backoff_pause(50, 300, i, (uint64_t)half), HLI_MS(steps_ms[i]));
    }
}

Test(backoff, throws_its_dice_between_half_of_the_step_and_the_whole)
{
    for (uint64_t dice = 0; dice < 1000; dice++) {
        hli_ns pause = hli_backoff_pause(10, 20, 0, dice * UINT64_C(0x9e3779b97f4a7c15));
        check(pause >= HLI_MS(5) && pause <= HLI_MS(10));
    }
}

Test(backoff, neither_overflows_nor_tires)
{
    const int64_t max_ms = INT64_C(100000000000);
    hli_ns before = 0;
    for (unsigned i = 0; i < 1000; i++) {
        hli_ns pause = hli_backoff_pause(1, max_ms, i, 0);
        check(pause >= before);
        before = pause;
    }
    check_int(before, HLI_MS(max_ms) / 2);
    check_int(hli_backoff_pause(1, max_ms, UINT32_MAX, 0), before);
}
