/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/pulse.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PULSE_BUCKETS = 32, PULSE_BAR = 40, PULSE_ROOM = 256 };

int64_t cli_pulse_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void cli_pulse_add(struct cli_pulse *pulse, int64_t ns)
{
    if (pulse->count == pulse->room) {
        size_t room = pulse->room ? 2 * pulse->room : PULSE_ROOM;
        int64_t *more = realloc(pulse->ns, room * sizeof(*more));
        if (!more)
            return;
        pulse->ns = more;
        pulse->room = room;
    }
    pulse->ns[pulse->count++] = ns;
}

void cli_pulse_free(struct cli_pulse *pulse)
{
    free(pulse->ns);
    *pulse = (struct cli_pulse){0};
}

static int pulse_compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

int64_t cli_pulse_at(struct cli_pulse *pulse, double share)
{
    if (pulse->count == 0)
        return 0;
    qsort(pulse->ns, pulse->count, sizeof(*pulse->ns), pulse_compare);
    size_t at = (size_t)(share * (double)pulse->count);
    return pulse->ns[at < pulse->count ? at : pulse->count - 1];
}

/* The bucket of all times below 2^i microseconds that no smaller one has. */
static unsigned pulse_bucket(int64_t ns)
{
    uint64_t us = (uint64_t)ns / 1000;
    unsigned bits = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);

    return bits < PULSE_BUCKETS ? bits : PULSE_BUCKETS - 1;
}

void cli_pulse_draw(const struct cli_pulse *pulse, FILE *to)
{
    size_t counts[PULSE_BUCKETS] = {0}, most = 1;
    unsigned first = PULSE_BUCKETS, last = 0;

    for (size_t i = 0; i < pulse->count; i++) {
        unsigned bucket = pulse_bucket(pulse->ns[i]);
        counts[bucket]++;
        most = counts[bucket] > most ? counts[bucket] : most;
        first = bucket < first ? bucket : first;
        last = bucket > last ? bucket : last;
    }
    for (unsigned i = first; i <= last && pulse->count > 0; i++) {
        char bar[PULSE_BAR + 1] = {0};
        size_t length = (counts[i] * PULSE_BAR + most - 1) / most;
        memset(bar, '#', length);
        fprintf(to, "  < %8.3f ms %7zu %s\n", (double)(1U << i) / 1000, counts[i], bar);
    }
}

void cli_pulse_count(const struct cli_pulse *pulse, hl_histogram *histogram)
{
    for (size_t i = 0; i < pulse->count; i++) {
        uint64_t us = (uint64_t)pulse->ns[i] / 1000;
        histogram->bucket[pulse_bucket(pulse->ns[i])]++;
        histogram->count++;
        histogram->sum_us += us;
        histogram->max_us = us > histogram->max_us ? us : histogram->max_us;
    }
}
