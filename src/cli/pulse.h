/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Times of many equal requests: percentiles, and a picture of them. */
#ifndef CLI_PULSE_H
#define CLI_PULSE_H

#include <hirelock/client.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A set of times in nanoseconds; zero is an empty one. */
struct cli_pulse {
    int64_t *ns; /* owned */
    size_t count, room;
};

int64_t cli_pulse_now(void);

/* Without memory a time is left out. */
void cli_pulse_add(struct cli_pulse *pulse, int64_t ns);
void cli_pulse_free(struct cli_pulse *pulse);

/* The time that this share of all, from 0 to 1, does not exceed; 0 for an empty set. Sorts it. */
int64_t cli_pulse_at(struct cli_pulse *pulse, double share);

/* A line for each power of two of microseconds between the first and the last one. */
void cli_pulse_draw(const struct cli_pulse *pulse, FILE *to);

/* Adds the times to the library's histogram, whose buckets are these powers of two. */
void cli_pulse_count(const struct cli_pulse *pulse, hl_histogram *histogram);

#endif
