/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of this folder's tests that break processes: clients with short times.
 */
#ifndef HL_TEST_PROCESS_KIT_H
#define HL_TEST_PROCESS_KIT_H

#include <hirelock/hirelock.h>
#include <pthread.h>

#include "support/census.h"
#include "support/events.h"
#include "support/handle.h"
#include "support/kit.h"

/* The lease of a hold that the watchdog renews; events may be NULL. */
static inline hl_client_options kit_options(int64_t watchdog_ms, struct events *events)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.watchdog_timeout_ms = watchdog_ms;
    options.poll_ms = 200;
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 50;
    options.connect_timeout_ms = slow_ms(5000);
    options.request_timeout_ms = patience_ms(5000);
    options.on_event = events ? count_event : NULL;
    options.arg = events;
    return options;
}

static inline hl_lock *kit_lock_number(hl_client *client, const char *prefix, int number)
{
    char name[64];
    snprintf(name, sizeof name, "%s:%d", prefix, number);
    return new_lock(client, name);
}

/* Releases what is held. What found no memory drops its link, as a cut does: then a copy of the
 * release may find nothing, and it is unknown. NULL: of this thread. */
static inline void kit_release(hl_lock *lock, hl_owner *owner)
{
    hl_error err = HL_ERROR_INIT;
    int code = owner ? hl_lock_release_as(lock, owner, &err) : hl_lock_release(lock, &err);
    check_msg(code == HL_OK || code == HL_EINDOUBT, "%s", err.text);
}

/* Acquires and releases: the library is in order. */
static inline void kit_try_out(hl_client *client, const char *name)
{
    hl_lock *lock = new_lock(client, name);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), ERR));
    check(hl_lock_is_held(lock, NULL));
    kit_release(lock, NULL);
    free_lock(lock);
}

static inline void kit_expect_no_threads(void)
{
    check(census_waits_for_no_thread());
}

static inline pthread_t kit_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

#endif
