/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Pauses between attempts to connect. */

#include "redis/backoff.h"

#include "support/test.h"

static hli_ns highest(struct hli_backoff *backoff)
{
    struct hli_backoff copy = *backoff;
    hli_ns half = hli_backoff_next(&copy, 0);
    return hli_backoff_next(backoff, (uint64_t)half);
}

Test(backoff, doubles_up_to_its_limit)
{
    struct hli_backoff backoff = {.min_ms = 50, .max_ms = 300};
    static const int64_t steps_ms[] = {50, 100, 200, 300, 300, 300};
    for (size_t i = 0; i < sizeof steps_ms / sizeof steps_ms[0]; i++)
        check_int(highest(&backoff), HLI_MS(steps_ms[i]));
}

Test(backoff, begins_anew_after_a_success)
{
    struct hli_backoff backoff = {.min_ms = 50, .max_ms = 2000};
    for (int i = 0; i < 5; i++)
        hli_backoff_next(&backoff, 0);
    hli_backoff_reset(&backoff);
    check_int(highest(&backoff), HLI_MS(50));
}

Test(backoff, throws_its_dice_between_half_of_the_step_and_the_whole)
{
    for (uint64_t dice = 0; dice < 1000; dice++) {
        struct hli_backoff backoff = {.min_ms = 10, .max_ms = 20};
        hli_ns pause = hli_backoff_next(&backoff, dice * UINT64_C(0x9e3779b97f4a7c15));
        check(pause >= HLI_MS(5) && pause <= HLI_MS(10));
    }
}

Test(backoff, neither_overflows_nor_tires)
{
    struct hli_backoff backoff = {.min_ms = 1, .max_ms = INT64_C(100000000000)};
    hli_ns before = 0;
    for (int i = 0; i < 1000; i++) {
        hli_ns pause = hli_backoff_next(&backoff, 0);
        check(pause >= before);
        before = pause;
    }
    check_int(before, HLI_MS(INT64_C(100000000000)) / 2);
}
