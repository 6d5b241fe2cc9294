/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Rounds: raw, ours, ours, raw, and so on. */
#include "rounds.h"

#include "instant.h"
#include "samples.h"

#include <stdbool.h>

static double rounds_rate(const struct rounds *rounds, rounds_side *side)
{
    int64_t began = instant_now();
    uint64_t done = side(rounds->arg, began + rounds->ms * 1000000);

    return (double)done * 1e9 / (double)(instant_now() - began);
}

/* The first two rounds of each warm up and do not count. */
void rounds_run(struct rounds *rounds)
{
    struct samples raw = {0}, ours = {0};

    for (size_t i = 0; i < 2 * (rounds->count + 2); i++) {
        bool is_raw = i % 4 == 0 || i % 4 == 3;
        double rate = rounds_rate(rounds, is_raw ? rounds->raw : rounds->ours);
        if (i >= 4)
            samples_add(is_raw ? &raw : &ours, rate);
    }
    rounds->raw_rate = samples_quantile(&raw, 0.5);
    rounds->ours_rate = samples_quantile(&ours, 0.5);
    samples_free(&raw);
    samples_free(&ours);
}
