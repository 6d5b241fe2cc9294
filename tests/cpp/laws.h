/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Laws of the binding: tests in C++ with a redis-server of their own, as those of support/kit.h.
 * They run under support/test_runner.c in every build, since support/test.h is C.
 *
 *     LAW(mutex, excludes_another_thread) { ... check(condition) ... }
 */
#ifndef HL_TEST_CPP_LAWS_H
#define HL_TEST_CPP_LAWS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#include "support/deadline.h"
#include "support/failing_malloc.h"
#include "support/redis_probe.h"
#else
#include "support/redis_probe.h"
#endif

bool law_register(const char *const names[3], void (*body)(void), const char *file, int line);
const char *law_url(void); /* of the law's server */
struct redis_server *law_server(void);
int64_t law_slow_ms(int64_t ms); /* slow_ms() of support/test.h */

#ifdef __cplusplus
[[noreturn]] void hl_test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
}

#define check(condition)                                                                           \
    ((condition) ? (void)0 : hl_test_fail(__FILE__, __LINE__, "not so: %s", #condition))
/* A line that is not reached. */
#define never(what) hl_test_fail(__FILE__, __LINE__, "%s", what)

#define LAW(suite, name)                                                                           \
    static void suite##_##name();                                                                  \
    static const char *const suite##_##name##_names[] = {#suite, #name, #suite "/" #name};         \
    static const bool suite##_##name##_is_known =                                                  \
        law_register(suite##_##name##_names, suite##_##name, __FILE__, __LINE__);                  \
    static void suite##_##name()
#endif

#endif
