/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Rounds: first to last, last to first, and so on. */
#include "rounds.h"

#include "cpu.h"
#include "instant.h"
#include "samples.h"

enum { ROUNDS_WARM_UP = 2 };

struct score {
    struct samples rates;
    double cpu_us, done;
};

static void rounds_play(const struct rounds *rounds, size_t number, struct score *score)
{
    const struct rounds_side *side = &rounds->side[number];
    double cpu_us = cpu_own_us();
    int64_t began = instant_now();
    double done = (double)side->work(side->arg, began + rounds->ms * 1000000);

    samples_add(&score->rates, done * 1e9 / (double)(instant_now() - began));
    score->cpu_us += cpu_own_us() - cpu_us;
    score->done += done;
}

static void rounds_forget(struct score *score)
{
    samples_free(&score->rates);
    *score = (struct score){0};
}

void rounds_run(struct rounds *rounds)
{
    struct score score[ROUNDS_SIDES] = {0};

    for (size_t i = 0; i < rounds->count + ROUNDS_WARM_UP; i++) {
        for (size_t j = 0; j < rounds->sides; j++) {
            size_t number = i % 2 ? rounds->sides - 1 - j : j;
            rounds_play(rounds, number, &score[number]);
            if (i < ROUNDS_WARM_UP)
                rounds_forget(&score[number]);
        }
    }
    for (size_t i = 0; i < rounds->sides; i++) {
        rounds->side[i].rate = samples_quantile(&score[i].rates, 0.5);
        rounds->side[i].cpu_us = score[i].done > 0 ? score[i].cpu_us / score[i].done : 0;
        rounds_forget(&score[i]);
    }
}
