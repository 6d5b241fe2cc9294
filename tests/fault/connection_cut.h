/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A connection that breaks after byte k of what a call sends or is answered, for every k of a step:
 * whatever the byte, the caller gets what it asked for or a documented code in its time, nothing
 * stays behind in Redis, and nobody else's hold is touched.
 */
#ifndef HL_TEST_CONNECTION_CUT_H
#define HL_TEST_CONNECTION_CUT_H

#include "connection_fixture.h"

struct cut {
    struct connection c;
    hl_client *client, *other; /* through the proxy, and past it */
    hl_lock *lock, *others_lock;
};

/* One run of the calls that are cut, from a free lock to a free lock. */
typedef void cut_scenario(struct cut *cut);

static inline void cut_start(struct cut *cut)
{
    hl_client_options options = connection_options();
    options.request_timeout_ms = slow_ms(1000); /* a cut is noticed at once */
    options.watchdog_timeout_ms = slow_ms(600); /* renewed at a third of it */
    cut->c = connection_start(NULL);
    cut->client = connection_open(proxy_url(cut->c.proxy), &options);
    cut->other = connection_open(redis_server_url(cut->c.server), &options);
    cut->lock = connection_lock(cut->client, "cut");
    cut->others_lock = connection_lock(cut->other, "cut");
}

static inline void cut_stop(struct cut *cut)
{
    hl_lock_free(cut->lock);
    hl_lock_free(cut->others_lock);
    check_int(hl_client_close(cut->client), HL_OK);
    check_int(hl_client_close(cut->other), HL_OK);
    connection_stop(&cut->c);
}

/* The lock is free at once, another client gets it, and no late or repeated command of the one that
 * was cut takes it away. */
static inline void cut_check_aftermath(struct cut *cut)
{
    check_int(hl_lock_hold_count(cut->lock, NULL), 0);
    expect_gone(cut->c.server, "cut");
    expect_code(hl_lock_acquire_for(cut->others_lock, slow_ms(1000), err), HL_OK);
    expect_code(hl_client_ping(cut->client, slow_ms(2000), err), HL_OK);
    check(connection_key_is_of(cut->c.server, "cut", cut->other));
    check_str(redis_str(cut->c.server, "HVALS cut"), "1");
    expect_code(hl_lock_release(cut->others_lock, err), HL_OK);
    expect_gone(cut->c.server, "cut");
}

/* Acquire and release. */
static inline void cut_plain(struct cut *cut)
{
    expect_code(hl_lock_acquire_for(cut->lock, slow_ms(2000), err), HL_OK);
    check(hl_lock_is_held(cut->lock, NULL));
    expect_code(hl_lock_release(cut->lock, err), HL_OK);
}

/* A nested acquire that makes the lease longer, and the counts on display on the way back. */
static inline void cut_nested(struct cut *cut)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = slow_ms(2000);
    options.lease_ms = slow_ms(5000);
    expect_code(hl_lock_acquire_with(cut->lock, &options, err), HL_OK);
    options.lease_ms = slow_ms(10000);
    expect_code(hl_lock_acquire_with(cut->lock, &options, err), HL_OK);
    check_int(hl_lock_hold_count(cut->lock, NULL), 2);
    check(hl_lock_validity_ms(cut->lock, NULL) > slow_ms(5000));
    expect_code(hl_lock_release(cut->lock, err), HL_OK);
    check_int(hl_lock_hold_count(cut->lock, NULL), 1);
    check(connection_key_is_of(cut->c.server, "cut", cut->client));
    expect_code(hl_lock_release(cut->lock, err), HL_OK);
}

/* A watched hold lives on: its renewal is repeated. */
static inline void cut_renewed(struct cut *cut)
{
    uint64_t renewals = connection_count(cut->client, connection_renewals);
    expect_code(hl_lock_acquire_for(cut->lock, slow_ms(2000), err), HL_OK);
    check_msg(connection_wait_for(cut->client, connection_renewals, renewals + 1, 3000),
              "not renewed: %lld ms left, %llu lost, %llu reconnects",
              (long long)hl_lock_validity_ms(cut->lock, NULL),
              (unsigned long long)connection_count(cut->client, connection_losses),
              (unsigned long long)connection_count(cut->client, connection_reconnects));
    check(hl_lock_is_held(cut->lock, NULL));
    check(connection_key_is_of(cut->c.server, "cut", cut->client));
    expect_code(hl_lock_release(cut->lock, err), HL_OK);
}

/* A wait: busy, subscribed, woken by the message or by the link's return, never by the poll. */
static inline void cut_waiting(struct cut *cut)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    struct connection_call call;
    options.lease_ms = slow_ms(20000);
    expect_gone(cut->c.server, "cut");
    uint64_t waiters = connection_count(cut->client, connection_waiters);
    expect_code(hl_lock_acquire_with(cut->others_lock, &options, err), HL_OK);
    connection_call_start(&call, cut->lock, slow_ms(10000));
    check(connection_wait_for(cut->client, connection_waiters, waiters + 1, 5000));
    check(redis_wait_subscribers(cut->c.server, "redisson_lock__channel:{cut}", 1, 5000));
    expect_code(hl_lock_release(cut->others_lock, err), HL_OK);
    connection_join(&call);
    check_msg(call.code == HL_OK, "%s", call.err.text);
    check_msg(call.release_code == HL_OK, "%s", call.err.text);
    check(call.lasted_ms < slow_ms(8000));
}

/* The first connection of a client: it opens, or says why not; a lazy one comes up by itself. */
static inline void cut_greeting(struct cut *cut)
{
    hl_client_options options = connection_options();
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int code = hl_client_open(proxy_url(cut->c.proxy), &options, &client, &err);
    check_msg(code == HL_OK || (code == HL_ECONN && strstr(err.text, "127.0.0.1:")), "%s: %s",
              hl_err_name(code), err.text);
    if (code == HL_OK)
        check_int(hl_client_close(client), HL_OK);
}

static inline void cut_greeting_lazily(struct cut *cut)
{
    hl_client_options options = connection_options();
    options.flags = HL_CLIENT_LAZY;
    hl_client *client = connection_open(proxy_url(cut->c.proxy), &options);
    expect_code(hl_client_ping(client, slow_ms(3000), err), HL_OK);
    check_int(hl_client_close(client), HL_OK);
}

/* The same, with every script to be loaded first. */
static inline void cut_loading(struct cut *cut)
{
    redis_do(cut->c.server, "SCRIPT FLUSH");
    cut_plain(cut);
}

static inline uint64_t cut_length(struct cut *cut, cut_scenario *scenario, enum proxy_direction way)
{
    expect_gone(cut->c.server, "cut");
    uint64_t before = proxy_bytes(cut->c.proxy, PROXY_EVERY, way);
    scenario(cut);
    expect_gone(cut->c.server, "cut");
    return proxy_bytes(cut->c.proxy, PROXY_EVERY, way) - before;
}

/* Requests after every step-th byte, replies after each (or each 8th of a step), from before the
 * first byte to behind the last one of an uncut run. */
static inline void cut_sweep(cut_scenario *scenario, uint64_t step)
{
    struct cut cut;
    cut_start(&cut);
    scenario(&cut); /* the scripts are loaded */
    for (enum proxy_direction way = PROXY_UP; way <= PROXY_DOWN; way++) {
        uint64_t length = cut_length(&cut, scenario, way), cuts = 0;
        for (uint64_t k = 0; k <= length; k += way == PROXY_UP ? step : step / 8 + 1) {
            proxy_cut_once(cut.c.proxy, way, k, cuts++ % 2 ? PROXY_RST : PROXY_FIN);
            scenario(&cut);
            proxy_pass(cut.c.proxy);
            cut_check_aftermath(&cut);
        }
        check_msg(cuts > 1 && proxy_cuts(cut.c.proxy) > 0, "%d cuts", proxy_cuts(cut.c.proxy));
    }
    cut_stop(&cut);
}

#endif
