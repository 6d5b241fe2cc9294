/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Checks of calls that a benchmark needs and does not measure: a failure ends the program with a
 * message. */
#ifndef HL_BENCH_MUST_H
#define HL_BENCH_MUST_H

#include <stddef.h>

/* must(HOLDS, FORMAT, ...): the text is made only when it is needed. */
#define must(holds, ...) ((holds) ? (void)0 : must_fail(__VA_ARGS__))

void must_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void *must_alloc(size_t count, size_t size); /* zeroed */

#endif
