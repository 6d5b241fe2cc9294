/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of the tests in which memory runs short: a server, the completion of an asynchronous
 * call, and a sweep that sees leaks.
 */
#ifndef HL_TEST_MEMORY_KIT_H
#define HL_TEST_MEMORY_KIT_H

#include <limits.h>

#include "process_kit.h"

#include "support/failing_malloc.h"
#include "support/redis_probe.h"

/* For .init and .fini. */
static inline void memory_up_with(const struct redis_options *options)
{
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    server = redis_server_start(options);
}

static inline void memory_up(void)
{
    memory_up_with(NULL);
}

static inline void memory_up_tcp(void)
{
    memory_up_with(&(struct redis_options){.tcp = true});
}

static inline void memory_down(void)
{
    redis_server_stop(server);
}

/* Of the one asynchronous call that is under way; the test that prepares it sets the first to 0. */
static atomic_int completions, completion_code;

static inline void completed(int code, const hl_error *err, void *arg)
{
    (void)err, (void)arg;
    atomic_store(&completion_code, code);
    atomic_fetch_add(&completions, 1);
}

/* A call that was not made with success has told nobody, one that was tells once. */
static inline int await_completion(int started)
{
    struct deadline deadline = deadline_of_wait(5000);
    if (started != HL_OK) {
        check_int(atomic_load(&completions), 0);
        return started;
    }
    while (atomic_load(&completions) == 0 && !deadline_is_over(deadline))
        deadline_nap();
    check_int(atomic_load(&completions), 1);
    return atomic_load(&completion_code);
}

static inline void ignore_event(const hl_event *event, void *arg)
{
    (void)event, (void)arg;
}

/* A leak makes the allocations grow in number with each sweep; what is only kept for later, such as
 * names until their timers are over, ceases to. Returns the failures of the last sweep. */
static inline long sweep_without_leaks(const struct failing_scenario *scenario)
{
    struct deadline deadline = deadline_of_wait(60000);
    long failures = 0, before = LONG_MAX;

    for (int steady = 0; steady < 3;) {
        check_msg(!deadline_is_over(deadline), "each sweep leaves memory behind");
        failures = failing_malloc_sweep(scenario);
        steady = failing_malloc_live() <= before ? steady + 1 : 0;
        before = failing_malloc_live();
    }
    return failures;
}

#endif
