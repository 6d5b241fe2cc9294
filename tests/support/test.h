/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The test framework: Test() and the checks. The tests run under Criterion, or under test_runner.c
 * where Criterion cannot run (ThreadSanitizer); no other file includes Criterion.
 *
 *     Test(fair_lock, grants_in_arrival_order, .init = start, .fini = stop) { ... }
 *
 * HL_TEST_TIMEOUT_S, made longer by slow_ms() like every deadline, ends a hang, also of a test that
 * computes; what a law expects in time, the law says itself. (.timeout, in seconds, is another one,
 * of a test that goes on for as long as it is told to.)
 * A check that fails ends the test, in .fini too. In another thread it ends the test's process,
 * without .fini; in a forked child it ends the child, and the test fails when its body returns.
 * Children end by _exit(). A body that calls exit() has failed, whatever the status.
 */
#ifndef HL_TEST_TEST_H
#define HL_TEST_TEST_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deadline.h"

#define check(condition)                                                                           \
    ((condition) ? (void)0 : hl_test_fail(__FILE__, __LINE__, "not so: %s", #condition))
#define check_msg(condition, ...)                                                                  \
    ((condition) ? (void)0 : hl_test_fail(__FILE__, __LINE__, __VA_ARGS__))
#define check_int(actual, expected)                                                                \
    hl_test_check_int(&(struct hl_test_place){__FILE__, __LINE__, #actual}, (intmax_t)(actual),    \
                      (intmax_t)(expected))
#define check_str(actual, expected)                                                                \
    hl_test_check_str(&(struct hl_test_place){__FILE__, __LINE__, #actual}, (actual), (expected))

#define check_has(text, part)                                                                      \
    hl_test_check_has(&(struct hl_test_place){__FILE__, __LINE__, #text}, (text), (part))

/* Ends the test as skipped; the arguments give the reason, like those of printf. */
#define skip(...) hl_test_skip(__FILE__, __LINE__, __VA_ARGS__)

/* A figure that script/test shows, whether the test passes or not; like printf. */
#define tell_figure(...) hl_test_tell("[TELL] " __VA_ARGS__)

/* A time that is `ms` on an idle machine: longer under sanitizers, and on a machine that was busy
 * when the program began (deadline.h). */
static inline int64_t slow_ms(int64_t ms)
{
    const char *slowdown = getenv("HL_TEST_SLOWDOWN");
    double factor = slowdown != NULL ? strtod(slowdown, NULL) : 1;
    return factor > 0 ? (int64_t)((double)ms * factor) : ms;
}

/* A request timeout that is stretched too, but within a lease of 30 s, and within the minute for
 * which the note of a command stands, so that it may be repeated. */
static inline int64_t patience_ms(int64_t ms)
{
    int64_t most_ms = 20000;
    return slow_ms(ms) < most_ms ? slow_ms(ms) : most_ms;
}

/* Looks at a condition until it is true or the wait is given up; the last look decides. */
static inline bool wait_until(bool (*condition)(void *), void *arg, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (!condition(arg)) {
        if (deadline_is_over(deadline))
            return condition(arg);
        deadline_nap();
    }
    return true;
}

/*
 * Resources that all tests of a program share: BeforeAll() { ... } makes them and AfterAll()
 * { ... } ends them, in the process that starts the tests. The tests find them by the environment.
 * A program has at most one of each.
 */

/* From here on: the implementation. */

enum {
    HL_TEST_TIMEOUT_S = 600,
    HL_TEST_FAILED = 97, /* status of a process that a check ended */
    HL_TEST_DONE = 120   /* of a body that was not left by exit(0), under test_runner.c */
};

struct hl_test_place {
    const char *file;
    int line;
    const char *what;
};

/* The process that a test runs in; one variable per program, which the linker merges. */
struct hl_test_process {
    pid_t pid;                 /* also the thread id of its main thread, and of no other */
    atomic_bool *child_failed; /* in memory shared with forked children */
    bool in_body, has_run;     /* main thread: the body */
};
__attribute__((weak)) struct hl_test_process hl_test_process;

_Noreturn void hl_test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void hl_test_skip(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline void hl_test_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void hl_test_tell(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "%s\n", text);
}

static inline void hl_test_process_init(void)
{
    if (hl_test_process.child_failed == NULL)
        hl_test_process.child_failed = mmap(NULL, sizeof(atomic_bool), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hl_test_process.child_failed == MAP_FAILED)
        abort();
    hl_test_process.pid = getpid();
}

static inline bool hl_test_in_main_thread(void)
{
    return gettid() == hl_test_process.pid;
}

static inline double hl_test_timeout_s(double timeout_s)
{
    return (double)slow_ms((int64_t)((timeout_s > 0 ? timeout_s : HL_TEST_TIMEOUT_S) * 1000)) /
           1000;
}

static inline void hl_test_run(void (*body)(void), const struct hl_test_place *place)
{
    hl_test_process.in_body = true;
    body();
    hl_test_process.in_body = false;
    hl_test_process.has_run = true;
    if (atomic_load(hl_test_process.child_failed))
        hl_test_fail(place->file, place->line, "a check failed in a child of %s", place->what);
}

static inline void hl_test_check_int(const struct hl_test_place *place, intmax_t actual,
                                     intmax_t expected)
{
    if (actual != expected)
        hl_test_fail(place->file, place->line, "%s is %jd, expected %jd", place->what, actual,
                     expected);
}

static inline void hl_test_check_str(const struct hl_test_place *place, const char *actual,
                                     const char *expected)
{
    if (actual == expected || (actual != NULL && expected != NULL && strcmp(actual, expected) == 0))
        return;
    hl_test_fail(place->file, place->line, "%s is \"%s\", expected \"%s\"", place->what,
                 actual != NULL ? actual : "(null)", expected != NULL ? expected : "(null)");
}

static inline void hl_test_check_has(const struct hl_test_place *place, const char *text,
                                     const char *part)
{
    if (strstr(text, part) == NULL)
        hl_test_fail(place->file, place->line, "\"%s\" is not in %s, which is \"%s\"", part,
                     place->what, text);
}

#ifdef HL_TEST_RUNNER

struct hl_test {
    const char *suite, *name;
    void (*body)(void);
    struct hl_test_place place;
    struct hl_test_options {
        int end; /* lets a Test without options be written without a comma */
        double timeout;
        void (*init)(void);
        void (*fini)(void);
    } options;
    struct hl_test *next;
};
void hl_test_register(struct hl_test *test);
void hl_test_before_all(void) __attribute__((weak));
void hl_test_after_all(void) __attribute__((weak));

#define Test(...) HL_TEST(__VA_ARGS__, .end = 0)
#define HL_TEST(suite_, name_, ...)                                                                \
    static void suite_##_##name_##_body(void);                                                     \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                     \
    {                                                                                              \
        static struct hl_test test = {.suite = #suite_,                                            \
                                      .name = #name_,                                              \
                                      .body = suite_##_##name_##_body,                             \
                                      .place = {__FILE__, __LINE__, #suite_ "/" #name_},           \
                                      .options = {__VA_ARGS__}};                                   \
        hl_test_register(&test);                                                                   \
    }                                                                                              \
    static void suite_##_##name_##_body(void)

#define BeforeAll() void hl_test_before_all(void)
#define AfterAll() void hl_test_after_all(void)

#else
#include <criterion/criterion.h>
#include <criterion/hooks.h>

/*
 * Criterion passes a test that calls exit(0), so hl_test_at_exit() fails it. The constructor runs
 * in Criterion's process, which enforces the timeout, and once more in the test's own.
 */
#undef Test
#define Test(...) HL_TEST(__VA_ARGS__, .sentinel_ = 0)
#define HL_TEST(suite_, name_, ...)                                                                \
    static void suite_##_##name_##_body(void);                                                     \
    CR_TEST_BASE(suite_, name_, __VA_ARGS__)                                                       \
    {                                                                                              \
        hl_test_run(suite_##_##name_##_body,                                                       \
                    &(struct hl_test_place){__FILE__, __LINE__, #suite_ "/" #name_});              \
    }                                                                                              \
    __attribute__((constructor)) static void suite_##_##name_##_prepare(void)                      \
    {                                                                                              \
        double *timeout = &CR_IDENTIFIER_(suite_, name_, extra).timeout;                           \
        *timeout = hl_test_timeout_s(*timeout);                                                    \
        hl_test_process_init();                                                                    \
    }                                                                                              \
    static void suite_##_##name_##_body(void)

#define BeforeAll() HL_HOOK(PRE_ALL, criterion_test_set, hl_test_before_all)
#define AfterAll() HL_HOOK(POST_ALL, criterion_global_stats, hl_test_after_all)
#define HL_HOOK(when, what, body)                                                                  \
    static void body(void);                                                                        \
    ReportHook(when)(struct what * unused)                                                         \
    {                                                                                              \
        (void)unused;                                                                              \
        body();                                                                                    \
    }                                                                                              \
    static void body(void)

__attribute__((destructor)) static void hl_test_at_exit(void)
{
    if (hl_test_process.in_body && hl_test_in_main_thread()) {
        dprintf(STDERR_FILENO, "[----] the test called exit()\n");
        _exit(HL_TEST_FAILED);
    }
}

/* Criterion answers only the test's main thread, and hangs when a forked child calls it. */
__attribute__((weak)) void hl_test_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!hl_test_in_main_thread()) {
        dprintf(STDERR_FILENO, "[----] %s:%d: %s\n", file, line, text);
        atomic_store(hl_test_process.child_failed, true);
        _exit(HL_TEST_FAILED);
    }
    if (hl_test_process.has_run) { /* in .fini, where Criterion counts no assertion, but a crash */
        dprintf(STDERR_FILENO, "[----] %s:%d: %s\n", file, line, text);
        abort();
    }
    struct criterion_assert_stats stats = {
        .message = text, .passed = false, .line = (unsigned)line, .file = file};
    hl_test_process.in_body = false;
    criterion_send_assert(&stats);
    criterion_abort_test();
}

__attribute__((weak)) void hl_test_skip(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!hl_test_in_main_thread())
        hl_test_fail(file, line, "skip() outside of the test's main thread: %s", text);
    dprintf(STDERR_FILENO, "[SKIP] %s::%s: %s\n", criterion_current_test->category,
            criterion_current_test->name, text);
    hl_test_process.in_body = false;
    criterion_skip_test("%s", text);
}
#endif

#endif
