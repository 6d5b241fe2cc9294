/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Samples: numbers of which the middle and the tail are wanted. */
#ifndef HL_BENCH_SAMPLES_H
#define HL_BENCH_SAMPLES_H

#include <stddef.h>

struct samples {
    double *value;
    size_t count, room;
};

void samples_add(struct samples *samples, double value);
double samples_quantile(struct samples *samples, double q); /* 0.5: the median; sorts; 0 of none */
double samples_max(const struct samples *samples);
void samples_free(struct samples *samples);

#endif
