/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The end of a test whose machinery broke. It aborts, so it needs no test around it and works on
 * any thread and in any process; servers and children die with the process.
 */
#ifndef HL_TEST_FATAL_H
#define HL_TEST_FATAL_H

_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fatal_errno(const char *format, ...) /* and what errno says */
    __attribute__((format(printf, 1, 2)));

/* Like check(), without a test around it. */
#define must(condition)                                                                            \
    ((condition) ? (void)0 : fatal("%s:%d: not so: %s", __FILE__, __LINE__, #condition))

#endif
