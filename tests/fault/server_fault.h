/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * What the tests of server faults share: clients with short times, the events they tell, calls that
 * run beside the test, and raw calls of the scripts.
 */
#ifndef HL_TEST_SERVER_FAULT_H
#define HL_TEST_SERVER_FAULT_H

#include <hirelock/hirelock.h>
#include <pthread.h>
#include <string.h>

#include "redis/script.h"
#include "support/handle.h"
#include "support/redis_probe.h"
#include "support/test.h"

enum { FAULT_KINDS = HL_EVENT_RELEASE_FAILED + 1 };

/* What a client told, counted. */
struct fault_events {
    atomic_int seen[FAULT_KINDS];
    char reason[FAULT_KINDS][128]; /* of the last one; written before it is counted */
};

static inline void fault_on_event(const hl_event *event, void *arg)
{
    struct fault_events *events = arg;
    snprintf(events->reason[event->kind], sizeof events->reason[0], "%s",
             event->reason ? event->reason : "");
    atomic_fetch_add(&events->seen[event->kind], 1);
}

struct fault_wish {
    struct fault_events *events;
    hl_event_kind kind;
    int count;
};

static inline bool fault_has_seen(void *arg)
{
    const struct fault_wish *wish = arg;
    return atomic_load(&wish->events->seen[wish->kind]) >= wish->count;
}

static inline bool fault_wait_event(struct fault_events *events, hl_event_kind kind, int64_t ms)
{
    return wait_until(fault_has_seen, &(struct fault_wish){events, kind, 1}, ms);
}

/* Short times, so that an outage is over soon; a lease of 3 s, which no quick test sees expire.
 * events may be NULL. */
static inline hl_client_options fault_options(struct fault_events *events)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.connect_timeout_ms = slow_ms(1000);
    options.request_timeout_ms = slow_ms(500);
    options.outage_timeout_ms = slow_ms(800);
    options.watchdog_timeout_ms = slow_ms(3000);
    options.poll_ms = 200;
    options.backoff_min_ms = 20;
    options.backoff_max_ms = 100;
    options.on_event = events ? fault_on_event : NULL;
    options.arg = events;
    return options;
}

static inline hl_client *fault_open(const char *url, const hl_client_options *options)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = hl_client_open(url, options, &client, &err);
    check_msg(rc == 0, "open %s: %s", url, err.text);
    return client;
}

static inline hl_client *fault_client(struct redis_server *server, struct fault_events *events)
{
    hl_client_options options = fault_options(events);
    return fault_open(redis_server_url(server), &options);
}

static inline hl_lock *fault_lock(hl_client *client, const char *name)
{
    hl_lock *lock = NULL;
    check_int(handle_new(client, name, &lock, NULL), 0);
    return lock;
}

static inline hl_owner *fault_owner(hl_client *client)
{
    hl_owner *owner = NULL;
    check_int(hl_owner_new(client, &owner), 0);
    return owner;
}

/* An acquire that waits beside the test, for an owner of its own. */
struct fault_call {
    hl_lock *lock;
    hl_acquire_options options;
    hl_error err;
    int code;
    int64_t returned_ns;
    atomic_bool is_over;
    pthread_t thread;
};

static inline void *fault_call_run(void *arg)
{
    struct fault_call *call = arg;
    call->code = hl_lock_acquire_with(call->lock, &call->options, &call->err);
    call->returned_ns = now_ns();
    atomic_store(&call->is_over, true);
    return NULL;
}

static inline void fault_call_begin(struct fault_call *call, hl_lock *lock, hl_owner *owner,
                                    int64_t wait_ms)
{
    *call = (struct fault_call){.lock = lock, .options = HL_ACQUIRE_OPTIONS_INIT};
    call->options.wait_ms = wait_ms;
    call->options.owner = owner;
    check_int(pthread_create(&call->thread, NULL, fault_call_run, call), 0);
}

static inline int fault_call_end(struct fault_call *call)
{
    pthread_join(call->thread, NULL);
    return call->code;
}

static inline bool fault_has_waiter(void *client)
{
    hl_stats stats = {.size = sizeof stats};
    return hl_client_stats(client, &stats) == 0 && stats.waiters_now > 0;
}

static inline hl_stats fault_stats(hl_client *client)
{
    hl_stats stats = {.size = sizeof stats};
    check_int(hl_client_stats(client, &stats), 0);
    return stats;
}

static inline void fault_check_has(const char *text, const char *part)
{
    check_msg(strstr(text, part) != NULL, "\"%s\" is not in \"%s\"", part, text);
}

/* A script, loaded and called raw; `args` are the words after the key, with spaces between. */
static inline const char *fault_script(struct redis_server *server, hli_script_id id,
                                       const char *key, const char *args)
{
    const struct hli_script *script = hli_script_get(id);
    char line[512];
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    snprintf(line, sizeof line, "EVALSHA %s 1 %s %s", script->sha1, key, args);
    return redis_str(server, line);
}

#endif
