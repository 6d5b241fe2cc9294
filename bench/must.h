/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a benchmark needs and does not measure: when it fails, the program ends and says why. */
#ifndef HL_BENCH_MUST_H
#define HL_BENCH_MUST_H

#include <stdbool.h>
#include <stddef.h>

void must(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

void *must_alloc(size_t count, size_t size); /* zeroed */

#endif
