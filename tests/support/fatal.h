/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Ends a test whose own support code failed. fatal() aborts, so it works in any thread and in any
 * process, and outside of a test; servers and children die with the process.
 */
#ifndef HL_TEST_FATAL_H
#define HL_TEST_FATAL_H

_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fatal_errno(const char *format, ...) /* and errno's text */
    __attribute__((format(printf, 1, 2)));

/* Like check(), without a test around it. */
#define must(condition)                                                                            \
    ((condition) ? (void)0 : fatal("%s:%d: not so: %s", __FILE__, __LINE__, #condition))

#endif
