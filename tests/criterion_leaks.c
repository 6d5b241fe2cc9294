/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Part of each test program that is built with AddressSanitizer. Criterion 2.4.1 leaks a little of
 * its own when it runs tests side by side, in the process that starts them. No test runs there, so
 * leaks are looked for in the tests' processes only.
 */

#include <criterion/criterion.h>

#ifndef HL_TEST_RUNNER /* a program that has support/test_runner.c in Criterion's place */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return criterion_current_test == NULL;
}
#endif
