/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A connection that breaks after byte k of a call's requests or answers, for every k of a step.
 * Whatever the byte, the call succeeds or returns a documented code in its time, nothing stays
 * behind in Redis, and no other client's hold is changed.
 */
#ifndef HL_TEST_CONNECTION_CUT_H
#define HL_TEST_CONNECTION_CUT_H

#include "connection_fixture.h"

#include "redis/script.h"

/* In known bytes a sweep goes by longer steps, and cuts once at their end. */
enum { CUT_KNOWN_STEPS = 32 };

struct cut_span {
    uint64_t from, to;
};

struct cut {
    struct connection c;
    hl_client *client, *other; /* through the proxy, and past it */
    hl_lock *lock, *others_lock;
    bool is_measured;            /* this run tells what follows */
    uint64_t begin[2];           /* by direction: the proxy's bytes before the run */
    struct cut_span known[2][2]; /* by direction: bytes that another sweep cuts one by one, or that
                                    are the inside of one text */
};

static inline uint64_t cut_bytes(const struct cut *cut, enum proxy_direction way)
{
    return proxy_bytes(cut->c.proxy, PROXY_EVERY, way) - cut->begin[way];
}

/* The requests so far are those of another sweep. */
static inline void cut_knows_until_here(struct cut *cut)
{
    for (int way = PROXY_UP; cut->is_measured && way <= PROXY_DOWN; way++)
        cut->known[way][0] = (struct cut_span){0, cut_bytes(cut, way)};
}

/* And so are those from now on. */
static inline void cut_knows_from_here(struct cut *cut)
{
    for (int way = PROXY_UP; cut->is_measured && way <= PROXY_DOWN; way++)
        cut->known[way][1] = (struct cut_span){cut_bytes(cut, way), UINT64_MAX};
}

/* One run of the calls that are cut, from a free lock to a free lock. */
typedef void cut_scenario(struct cut *cut);

/* A link that is cut lives shorter than any longer pause, and would wait for the longest. */
static inline hl_client_options cut_options(void)
{
    hl_client_options options = connection_options();
    options.backoff_min_ms = options.backoff_max_ms = 1;
    return options;
}

static inline void cut_start(struct cut *cut, uint64_t step)
{
    hl_client_options options = cut_options();
    options.request_timeout_ms = slow_ms(5000);  /* a cut is noticed at once */
    options.watchdog_timeout_ms = slow_ms(1800); /* renewed at a third of it */
    if (step > 1)
        options.watchdog_timeout_ms += 1200;
    cut->c = connection_start(NULL);
    cut->client = open_client_at(proxy_url(cut->c.proxy), &options);
    cut->other = open_client_at(redis_server_url(cut->c.server), &options);
    cut->lock = new_lock(cut->client, "cut");
    cut->others_lock = new_lock(cut->other, "cut");
}

static inline void cut_stop(struct cut *cut)
{
    free_lock(cut->lock);
    free_lock(cut->others_lock);
    close_client(cut->client);
    close_client(cut->other);
    connection_stop(&cut->c);
}

/* The lock is free at once, another client gets it, and no late or repeated command of the one that
 * was cut takes it away. */
static inline void cut_check_aftermath(struct cut *cut)
{
    check_int(hl_lock_hold_count(cut->lock, NULL), 0);
    expect_gone(cut->c.server, "cut");
    expect_ok(hl_lock_acquire_for(cut->others_lock, slow_ms(10000), ERR));
    expect_ok(hl_client_ping(cut->client, slow_ms(10000), ERR));
    check(connection_key_is_of(cut->c.server, "cut", cut->other));
    check_str(redis_str(cut->c.server, "HVALS cut"), "1");
    expect_ok(hl_lock_release(cut->others_lock, ERR));
    expect_gone(cut->c.server, "cut");
}

/* The cut may lose the release's answer, and then its copy finds nothing. */
static inline void cut_expect_released(int code)
{
    check_msg(code == HL_OK || code == HL_EINDOUBT, "release: %s", hl_err_name(code));
}

/* Acquire and release. */
static inline void cut_plain(struct cut *cut)
{
    expect_ok(hl_lock_acquire_for(cut->lock, slow_ms(10000), ERR));
    check(hl_lock_is_held(cut->lock, NULL));
    cut_expect_released(hl_lock_release(cut->lock, NULL));
}

/* A nested acquire that makes the lease longer, and the counts on display on the way back. */
static inline void cut_nested(struct cut *cut)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = slow_ms(10000);
    options.lease_ms = slow_ms(20000);
    expect_ok(hl_lock_acquire_with(cut->lock, &options, ERR));
    cut_knows_until_here(cut);
    options.lease_ms = slow_ms(60000);
    expect_ok(hl_lock_acquire_with(cut->lock, &options, ERR));
    check_int(hl_lock_hold_count(cut->lock, NULL), 2);
    check(hl_lock_validity_ms(cut->lock, NULL) > slow_ms(20000));
    expect_ok(hl_lock_release(cut->lock, ERR));
    check_int(hl_lock_hold_count(cut->lock, NULL), 1);
    check(connection_key_is_of(cut->c.server, "cut", cut->client));
    cut_expect_released(hl_lock_release(cut->lock, NULL));
}

/* A watched hold lives on: its renewal is repeated. */
static inline void cut_renewed(struct cut *cut)
{
    uint64_t renewals = stats_of(cut->client).renewals;
    expect_ok(hl_lock_acquire_for(cut->lock, slow_ms(10000), ERR));
    cut_knows_until_here(cut);
    check_msg(connection_wait_for(cut->client, connection_renewals, renewals + 1, 3000),
              "not renewed: %lld ms left, %llu lost, %llu reconnects",
              (long long)hl_lock_validity_ms(cut->lock, NULL),
              (unsigned long long)stats_of(cut->client).losses,
              (unsigned long long)stats_of(cut->client).reconnects);
    cut_knows_from_here(cut);
    check(hl_lock_is_held(cut->lock, NULL));
    check(connection_key_is_of(cut->c.server, "cut", cut->client));
    cut_expect_released(hl_lock_release(cut->lock, NULL));
}

/* Redis keeps the key for at least as long as the hold is reported: the first look is at the hold,
 * and no moment between the two looks makes the key's end seem earlier. */
static inline void cut_check_belief(const struct cut *cut, hl_owner *owner)
{
    int64_t here_until_ms = now_ms();
    here_until_ms += hl_lock_validity_ms(cut->lock, owner);
    int64_t there_until_ms = redis_int(cut->c.server, "PTTL cut");
    there_until_ms += now_ms();
    check_msg(here_until_ms <= there_until_ms, "reported for %lld ms longer than Redis keeps it",
              (long long)(here_until_ms - there_until_ms));
}

static inline void cut_told(int code, const hl_error *err, void *arg)
{
    (void)err;
    atomic_store((atomic_int *)arg, code);
}

/* A longer lease, which counts when the server has said so. */
static inline void cut_updated(struct cut *cut)
{
    enum { NOT_YET = 1 }; /* no code */
    static atomic_int told;
    hl_owner *owner = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    expect_ok(hl_owner_new(cut->client, &owner));
    options.wait_ms = slow_ms(10000);
    options.lease_ms = slow_ms(20000);
    options.owner = owner;
    expect_ok(hl_lock_acquire_with(cut->lock, &options, ERR));
    cut_knows_until_here(cut);
    atomic_store(&told, NOT_YET);
    expect_ok(hl_lock_update_lease_async(cut->lock, owner, slow_ms(60000), cut_told, &told));
    while (atomic_load(&told) == NOT_YET)
        cut_check_belief(cut, owner);
    check_int(atomic_load(&told), HL_OK);
    cut_knows_from_here(cut);
    check(hl_lock_validity_ms(cut->lock, owner) > slow_ms(30000));
    cut_check_belief(cut, owner);
    cut_expect_released(hl_lock_release_as(cut->lock, owner, NULL));
    free_owner(owner);
}

/* A wait: busy, subscribed, woken by the message or by the link's return, never by the poll. */
static inline void cut_waiting(struct cut *cut)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    struct connection_call call;
    options.lease_ms = slow_ms(20000);
    expect_gone(cut->c.server, "cut");
    uint64_t waiters = stats_of(cut->client).waiters_now;
    expect_ok(hl_lock_acquire_with(cut->others_lock, &options, ERR));
    connection_call_start(&call, cut->lock, slow_ms(15000));
    wait_stat(cut->client, waiters_now, waiters + 1);
    check(redis_wait_subscribers(cut->c.server, "redisson_lock__channel:{cut}", 1, 5000));
    expect_ok(hl_lock_release(cut->others_lock, ERR));
    connection_join(&call);
    check_msg(call.code == HL_OK, "%s", call.err.text);
    cut_expect_released(call.release_code);
    check(call.lasted_ms < slow_ms(14000));
}

/* The first connection of a client: it opens, or says why not; a lazy one comes up by itself. */
static inline void cut_handshake(struct cut *cut)
{
    hl_client_options options = cut_options();
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int code = hl_client_open(proxy_url(cut->c.proxy), &options, &client, &err);
    check_msg(code == HL_OK || (code == HL_ECONN && strstr(err.text, "127.0.0.1:")), "%s: %s",
              hl_err_name(code), err.text);
    if (code == HL_OK)
        close_client(client);
}

static inline void cut_handshake_lazily(struct cut *cut)
{
    hl_client_options options = cut_options();
    options.flags = HL_CLIENT_LAZY;
    hl_client *client = open_client_at(proxy_url(cut->c.proxy), &options);
    expect_ok(hl_client_ping(client, slow_ms(15000), ERR));
    close_client(client);
}

/* Where most of the script's text stands among the bytes of a request that was refused and repeated
 * behind its script. */
static inline struct cut_span cut_text(struct cut_span bytes, hli_script_id id)
{
    enum { HEADER = 36, MARGIN = 16 }; /* "*3 $6 SCRIPT $4 LOAD $1234", a line each */
    uint64_t text = hli_script_get(id)->length;
    uint64_t request = (bytes.to - bytes.from - HEADER - text) / 2;
    uint64_t begin = bytes.from + request + HEADER;
    return (struct cut_span){begin + MARGIN, begin + text - MARGIN};
}

/* Acquire and release, with every script to be loaded first. */
static inline void cut_loading(struct cut *cut)
{
    redis_do(cut->c.server, "SCRIPT FLUSH");
    expect_ok(hl_lock_acquire_for(cut->lock, slow_ms(10000), ERR));
    uint64_t acquired = cut_bytes(cut, PROXY_UP);
    cut_expect_released(hl_lock_release(cut->lock, NULL));
    if (!cut->is_measured)
        return;
    expect_gone(cut->c.server, "cut");
    struct cut_span acquire = {0, acquired}, release = {acquired, cut_bytes(cut, PROXY_UP)};
    cut->known[PROXY_UP][0] = cut_text(acquire, HLI_SCRIPT_LOCK_ACQUIRE);
    cut->known[PROXY_UP][1] = cut_text(release, HLI_SCRIPT_LOCK_RELEASE);
}

static inline uint64_t cut_length(struct cut *cut, cut_scenario *scenario, enum proxy_direction way)
{
    expect_gone(cut->c.server, "cut");
    for (int i = PROXY_UP; i <= PROXY_DOWN; i++)
        cut->begin[i] = proxy_bytes(cut->c.proxy, PROXY_EVERY, i);
    cut->is_measured = true;
    scenario(cut);
    cut->is_measured = false;
    expect_gone(cut->c.server, "cut");
    return cut_bytes(cut, way);
}

/* The byte after k at which the next cut is due. */
static inline uint64_t cut_next(const struct cut *cut, enum proxy_direction way, uint64_t k,
                                uint64_t step)
{
    for (int i = 0; i < 2; i++) {
        struct cut_span known = cut->known[way][i];
        uint64_t next = k + step * CUT_KNOWN_STEPS;
        if (k >= known.from && k < known.to)
            return next < known.to ? next : known.to;
    }
    return k + step;
}

/* Requests after every step-th byte, replies after each (or each 8th of a step), from before the
 * first byte to behind the last one of an uncut run. */
static inline void cut_sweep(cut_scenario *scenario, uint64_t step)
{
    struct cut cut = {.is_measured = false};
    cut_start(&cut, step);
    scenario(&cut); /* the scripts are loaded */
    for (enum proxy_direction way = PROXY_UP; way <= PROXY_DOWN; way++) {
        uint64_t length = cut_length(&cut, scenario, way), cuts = 0;
        uint64_t stride = way == PROXY_UP ? step : step / 8 + 1;
        for (uint64_t k = 0; k <= length; k = cut_next(&cut, way, k, stride)) {
            proxy_cut_once(cut.c.proxy, PROXY_EVERY, way, k, cuts++ % 2 ? PROXY_RST : PROXY_FIN);
            scenario(&cut);
            proxy_pass(cut.c.proxy);
            cut_check_aftermath(&cut);
        }
        check_msg(cuts > 1 && proxy_cuts(cut.c.proxy) > 0, "%d cuts", proxy_cuts(cut.c.proxy));
    }
    cut_stop(&cut);
}

#endif
