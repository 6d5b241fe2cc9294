/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * What the tests of this folder that break processes share: clients with short times, and a
 * recorder of what their callbacks were told.
 */
#ifndef HL_TEST_PROCESS_KIT_H
#define HL_TEST_PROCESS_KIT_H

#include <hirelock/hirelock.h>
#include <pthread.h>

#include "support/census.h"
#include "support/handle.h"
#include "support/test.h"

enum { KIT_KINDS = HL_EVENT_RELEASE_FAILED + 1 };

struct kit_events {
    atomic_int told[KIT_KINDS];
    _Atomic int64_t lost_at_ns;
    _Atomic(const char *) lost_reason; /* a constant of the library's */
};

static inline void kit_on_event(const hl_event *event, void *arg)
{
    struct kit_events *events = arg;
    if (event->kind == HL_EVENT_LOST) {
        atomic_store(&events->lost_reason, event->reason);
        atomic_store(&events->lost_at_ns, now_ns());
    }
    atomic_fetch_add(&events->told[event->kind], 1);
}

static inline int kit_told(struct kit_events *events, hl_event_kind kind)
{
    return atomic_load(&events->told[kind]);
}

static inline bool kit_await_told(struct kit_events *events, hl_event_kind kind, int count,
                                  int64_t ms)
{
    struct deadline deadline = deadline_in(ms);
    while (kit_told(events, kind) < count && !deadline_is_over(deadline))
        deadline_nap();
    return kit_told(events, kind) >= count;
}

/* The lease of a hold that the watchdog renews; events may be NULL. */
static inline hl_client_options kit_options(int64_t watchdog_ms, struct kit_events *events)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.watchdog_timeout_ms = watchdog_ms;
    options.poll_ms = 200;
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 50;
    options.connect_timeout_ms = slow_ms(2000);
    options.request_timeout_ms = slow_ms(1000);
    options.on_event = events ? kit_on_event : NULL;
    options.arg = events;
    return options;
}

/* Ends the test, with the library's own words, when a call has another result. */
static inline void kit_expect_at(int line, const char *call, int code, int expected,
                                 const hl_error *err)
{
    check_msg(code == expected, "line %d: %s is %s, expected %s (%s)", line, call,
              hl_err_name(code), hl_err_name(expected), code < 0 && err ? err->text : "");
}
#define kit_expect(call, expected)                                                                 \
    do {                                                                                           \
        hl_error err = HL_ERROR_INIT;                                                              \
        int kit_code_ = (call);                                                                    \
        kit_expect_at(__LINE__, #call, kit_code_, (expected), &err);                               \
    } while (0)

static inline hl_client *kit_open(const char *url, const hl_client_options *options)
{
    hl_client *client = NULL;
    kit_expect(hl_client_open(url, options, &client, &err), HL_OK);
    return client;
}

static inline hl_lock *kit_lock(hl_client *client, const char *name)
{
    hl_lock *lock = NULL;
    kit_expect(handle_new(client, name, &lock, &err), HL_OK);
    return lock;
}

static inline hl_lock *kit_lock_number(hl_client *client, const char *prefix, int number)
{
    char name[64];
    snprintf(name, sizeof name, "%s:%d", prefix, number);
    return kit_lock(client, name);
}

static inline hl_stats kit_stats(hl_client *client)
{
    hl_stats stats = {.size = sizeof stats};
    check_int(hl_client_stats(client, &stats), HL_OK);
    return stats;
}

/* Acquires and releases: the library is in order. */
static inline void kit_try_out(hl_client *client, const char *name)
{
    hl_lock *lock = kit_lock(client, name);
    kit_expect(hl_lock_acquire_for(lock, slow_ms(5000), &err), HL_OK);
    check(hl_lock_is_held(lock, NULL));
    kit_expect(hl_lock_release(lock, &err), HL_OK);
    hl_lock_free(lock);
}

/* A thread that was joined may be seen in /proc for a moment longer. */
static inline void kit_expect_no_threads(void)
{
    struct deadline deadline = deadline_in(2000);
    while (census_threads_named("hirelock") > 0 && !deadline_is_over(deadline))
        deadline_nap();
    check_int(census_threads_named("hirelock"), 0);
}

static inline pthread_t kit_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

#endif
