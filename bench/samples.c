/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Samples: kept in full, sorted when asked. */
#include "samples.h"

#include "must.h"

#include <stdlib.h>

void samples_add(struct samples *samples, double value)
{
    if (samples->count == samples->room) {
        samples->room = samples->room ? samples->room * 2 : 64;
        samples->value = realloc(samples->value, samples->room * sizeof(double));
        must(samples->value != NULL, "out of memory");
    }
    samples->value[samples->count++] = value;
}

static int samples_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

double samples_quantile(struct samples *samples, double q)
{
    if (samples->count == 0)
        return 0;
    qsort(samples->value, samples->count, sizeof(double), samples_compare);
    return samples->value[(size_t)(q * (double)(samples->count - 1) + 0.5)];
}

double samples_max(const struct samples *samples)
{
    double max = 0;

    for (size_t i = 0; i < samples->count; i++)
        if (samples->value[i] > max)
            max = samples->value[i];
    return max;
}

void samples_free(struct samples *samples)
{
    free(samples->value);
    *samples = (struct samples){0};
}
