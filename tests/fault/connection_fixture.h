/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fixture of the tests of broken connections: a server, a proxy before it, and clients with
 * short timeouts. */
#ifndef HL_TEST_CONNECTION_FIXTURE_H
#define HL_TEST_CONNECTION_FIXTURE_H

#include <hirelock/hirelock.h>
#include <pthread.h>

#include "support/handle.h"
#include "support/kit.h"
#include "support/proxy.h"
#include "support/redis_probe.h"

/* The request timeout, before slow_ms(), of tests in which a silent link is to be given up. */
enum { CONNECTION_PATIENCE_MS = 150 };

struct connection {
    struct redis_server *server;
    struct proxy *proxy;
};

static inline struct connection connection_start(const struct redis_options *options)
{
    server = redis_server_start(options);
    struct connection c = {.server = server};
    c.proxy = proxy_start_before(c.server);
    return c;
}

static inline void connection_stop(struct connection *c)
{
    proxy_stop(c->proxy);
    redis_server_stop(c->server);
}

/* The connection on which the one client behind the proxy sends its commands, once it has sent one.
 */
static inline int connection_of_commands(const struct connection *c)
{
    int number = proxy_find(c->proxy, "EVALSHA");
    check(number >= 0);
    return number;
}

/* No poll, no lease and no request's time ends during a test, so the fault is the cause of all that
 * happens. */
static inline hl_client_options connection_options(void)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.connect_timeout_ms = slow_ms(5000);
    options.request_timeout_ms = patience_ms(5000);
    options.outage_timeout_ms = slow_ms(5000);
    options.poll_ms = slow_ms(20000);
    options.watchdog_timeout_ms = slow_ms(20000);
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 20;
    return options;
}

/* The same, and a link that is silent is given up soon. */
static inline hl_client_options connection_impatient_options(void)
{
    hl_client_options options = connection_options();
    options.connect_timeout_ms = slow_ms(1000);
    options.request_timeout_ms = slow_ms(CONNECTION_PATIENCE_MS);
    return options;
}

/* A call in a thread of its own; the code and the text are there after connection_join(). */
struct connection_call {
    pthread_t thread;
    hl_lock *lock;
    int64_t wait_ms;
    bool keeps; /* ends with its thread, as a loss; else it is released */
    int code, release_code;
    int64_t lasted_ms;
    hl_error err;
};

static inline void *connection_call_run(void *arg)
{
    struct connection_call *call = arg;
    int64_t begin_ms = now_ms();
    call->code = hl_lock_acquire_for(call->lock, call->wait_ms, &call->err);
    call->lasted_ms = now_ms() - begin_ms;
    if (call->code == HL_OK && !call->keeps)
        call->release_code = hl_lock_release(call->lock, &call->err);
    return NULL;
}

static inline void connection_call_start(struct connection_call *call, hl_lock *lock,
                                         int64_t wait_ms)
{
    *call = (struct connection_call){.lock = lock, .wait_ms = wait_ms};
    check_int(pthread_create(&call->thread, NULL, connection_call_run, call), 0);
}

static inline void connection_join(struct connection_call *call)
{
    check_int(pthread_join(call->thread, NULL), 0);
}

/* Is the key held by exactly one field, and that one of this client's? */
static inline bool connection_key_is_of(struct redis_server *of, const char *name,
                                        const hl_client *client)
{
    const char *fields = redis_str(of, "HKEYS %s", name);
    return strncmp(fields, hl_client_id(client), 36) == 0 && strchr(fields, ' ') == NULL;
}

struct connection_number {
    hl_client *client;
    uint64_t (*read)(const hl_stats *stats);
    uint64_t at_least;
};

static inline bool connection_number_is_there(void *arg)
{
    const struct connection_number *number = arg;
    hl_stats stats = {.size = sizeof stats};
    expect_ok(hl_client_stats(number->client, &stats));
    return number->read(&stats) >= number->at_least;
}

static inline uint64_t connection_reconnects(const hl_stats *stats)
{
    return stats->reconnects;
}

static inline uint64_t connection_renewals(const hl_stats *stats)
{
    return stats->renewals;
}

static inline bool connection_wait_for(hl_client *client, uint64_t (*read)(const hl_stats *),
                                       uint64_t at_least, int64_t ms)
{
    struct connection_number number = {client, read, at_least};
    return wait_until(connection_number_is_there, &number, ms);
}

#endif
