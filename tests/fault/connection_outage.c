/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* No server for a while: which call waits how long, and what it answers then. */

#include <inttypes.h>
#include <stdatomic.h>

#include "connection_fixture.h"

/* A server that is out of reach at once, or silent. */
static void outage_begin(struct connection *c)
{
    proxy_refuse(c->proxy, true);
    proxy_kill_all(c->proxy);
}

static void outage_end(struct connection *c)
{
    proxy_refuse(c->proxy, false);
}

struct outage {
    struct connection c;
    hl_client *client, *other;
    hl_lock *lock, *others_lock;
};

static void outage_start(struct outage *outage, const hl_client_options *options)
{
    hl_client_options direct = connection_options();
    outage->c = connection_start(NULL);
    outage->client = connection_open(proxy_url(outage->c.proxy), options);
    outage->other = connection_open(redis_server_url(outage->c.server), &direct);
    outage->lock = connection_lock(outage->client, "outage");
    outage->others_lock = connection_lock(outage->other, "outage");
}

static void outage_stop(struct outage *outage)
{
    hl_lock_free(outage->lock);
    hl_lock_free(outage->others_lock);
    check_int(hl_client_close(outage->client), HL_OK);
    check_int(hl_client_close(outage->other), HL_OK);
    connection_stop(&outage->c);
}

/* The code, the part of the text, and that it came neither before `least` nor long after. */
static void check_call(struct outage *outage, int64_t wait_ms, int expected, const char *text,
                       int64_t least_ms)
{
    hl_error err = HL_ERROR_INIT;
    int64_t begin_ms = now_ms();
    int code = hl_lock_acquire_for(outage->lock, wait_ms, &err);
    int64_t lasted_ms = now_ms() - begin_ms;
    check_msg(code == expected, "%s, expected %s: %s", hl_err_name(code), hl_err_name(expected),
              err.text);
    check_msg(strstr(err.text, "acquire 'outage': ") == err.text && strstr(err.text, text), "%s",
              err.text);
    check_msg(lasted_ms >= least_ms - 1 && lasted_ms <= least_ms + slow_ms(250),
              "%lld ms, expected %lld: %s", (long long)lasted_ms, (long long)least_ms, err.text);
    check(!hl_lock_is_held(outage->lock, NULL));
}

Test(connection_outage, a_wait_ends_with_its_wait_time_and_the_reason)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    outage_begin(&outage.c);
    check_call(&outage, slow_ms(200), HL_ECONN, "connection refused", slow_ms(200));
    outage_end(&outage.c);
    expect_code(hl_lock_acquire_for(outage.lock, slow_ms(3000), err), HL_OK);
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    outage_stop(&outage);
}

Test(connection_outage, a_wait_for_a_silent_server_ends_with_its_wait_time)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.request_timeout_ms = slow_ms(5000);
    outage_start(&outage, &options);
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    check_call(&outage, slow_ms(150), HL_ECONN, "no answer", slow_ms(150));
    proxy_pass(outage.c.proxy);
    check(redis_wait_int(outage.c.server, 0, 3000,
                         "EXISTS outage")); /* what came late is given back */
    outage_stop(&outage);
}

Test(connection_outage, a_wait_that_was_busy_last_has_timed_out)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.poll_ms = slow_ms(20000);
    options.request_timeout_ms = slow_ms(5000);
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.others_lock, err), HL_OK);
    check_call(&outage, slow_ms(150), HL_ETIMEDOUT, "held by", slow_ms(150));
    expect_code(hl_lock_release(outage.others_lock, err), HL_OK);
    outage_stop(&outage);
}

Test(connection_outage, a_call_without_an_end_ends_with_the_outage_timeout)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.outage_timeout_ms = slow_ms(200);
    outage_start(&outage, &options);
    outage_begin(&outage.c);
    check_call(&outage, HL_WAIT_FOREVER, HL_ECONN, "connection refused", slow_ms(200));
    check_call(&outage, HL_NO_WAIT, HL_ECONN, "connection refused", slow_ms(200));
    check_call(&outage, slow_ms(3000), HL_ECONN, "connection refused", slow_ms(200));
    check_call(&outage, slow_ms(100), HL_ECONN, "connection refused", slow_ms(100));
    outage_stop(&outage);
}

Test(connection_outage, a_call_waits_on_when_no_outage_is_too_long)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct connection_call call;
    options.outage_timeout_ms = -1;
    outage_start(&outage, &options);
    outage_begin(&outage.c);
    connection_call_start(&call, outage.lock, HL_WAIT_FOREVER);
    int before = proxy_accepted(outage.c.proxy);
    check(connection_wait_for(outage.client, connection_waiters, 1, 5000));
    check_call(&outage, slow_ms(300), HL_ECONN, "connection refused", slow_ms(300));
    check_int(connection_count(outage.client, connection_waiters), 1);
    check_int(proxy_accepted(outage.c.proxy), before);
    outage_end(&outage.c);
    connection_join(&call);
    check_msg(call.code == HL_OK, "%s", call.err.text);
    check_int(call.release_code, HL_OK);
    outage_stop(&outage);
}

Test(connection_outage, a_wait_goes_on_across_reconnects)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct connection_call call;
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.others_lock, err), HL_OK);
    connection_call_start(&call, outage.lock, slow_ms(15000));
    check(redis_wait_subscribers(outage.c.server, "redisson_lock__channel:{outage}", 1, 5000));
    for (uint64_t i = 1; i <= 3; i++) {
        outage_begin(&outage.c);
        outage_end(&outage.c);
        check(connection_wait_for(outage.client, connection_reconnects, i, 5000));
    }
    check(redis_wait_subscribers(outage.c.server, "redisson_lock__channel:{outage}", 1, 5000));
    check_int(connection_count(outage.client, connection_waiters), 1);
    expect_code(hl_lock_release(outage.others_lock, err), HL_OK);
    connection_join(&call);
    check_msg(call.code == HL_OK && call.lasted_ms < slow_ms(8000), "%s", call.err.text);
    outage_stop(&outage);
}

Test(connection_outage, a_try_during_a_short_one_succeeds_when_it_is_over)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct connection_call call;
    outage_start(&outage, &options);
    outage_begin(&outage.c);
    connection_call_start(&call, outage.lock, HL_NO_WAIT);
    check(connection_wait_for(outage.client, connection_waiters, 1, 5000));
    outage_end(&outage.c);
    connection_join(&call);
    check_msg(call.code == HL_OK, "%s", call.err.text);
    expect_code(hl_lock_acquire(outage.others_lock, err), HL_OK);
    outage_begin(&outage.c);
    connection_call_start(&call, outage.lock, HL_NO_WAIT);
    check(connection_wait_for(outage.client, connection_waiters, 1, 5000));
    outage_end(&outage.c);
    connection_join(&call);
    check_msg(call.code == HL_EBUSY, "%s: %s", hl_err_name(call.code), call.err.text);
    expect_code(hl_lock_release(outage.others_lock, err), HL_OK);
    outage_stop(&outage);
}

/* The release's one request timeout; then it goes on behind the call. */
static void check_release_behind(struct outage *outage)
{
    hl_error err = HL_ERROR_INIT;
    int64_t begin_ms = now_ms(), patience_ms = slow_ms(CONNECTION_PATIENCE_MS);
    int code = hl_lock_release(outage->lock, &err);
    int64_t lasted_ms = now_ms() - begin_ms;
    check_msg(code == HL_EUNKNOWN, "%s: %s", hl_err_name(code), err.text);
    check_msg(strstr(err.text, "release 'outage': ") == err.text, "%s", err.text);
    check_msg(lasted_ms >= patience_ms - 1 && lasted_ms < patience_ms + slow_ms(250), "%lld ms",
              (long long)lasted_ms);
    check(!hl_lock_is_held(outage->lock, NULL));
    check_int(hl_lock_hold_count(outage->lock, NULL), 0);
    check_int(hl_lock_release(outage->lock, NULL), HL_ENOTOWNER);
}

Test(connection_outage, an_unanswered_release_is_unknown_and_repeated_behind)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK);
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_UP); /* the request never arrives */
    check_release_behind(&outage);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 1);
    proxy_kill_all(outage.c.proxy); /* and what was kept is lost */
    proxy_pass(outage.c.proxy);
    check(redis_wait_int(outage.c.server, 0, 5000, "EXISTS outage"));
    outage_stop(&outage);
}

Test(connection_outage, a_release_without_a_server_is_unknown_and_repeated_behind)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK);
    outage_begin(&outage.c);
    check_release_behind(&outage);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 1);
    outage_end(&outage.c);
    check(redis_wait_int(outage.c.server, 0, 5000, "EXISTS outage"));
    outage_stop(&outage);
}

/* It ran; only its answer was lost. */
Test(connection_outage, a_release_whose_answer_was_lost_is_done)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK);
    proxy_cut_once(outage.c.proxy, PROXY_DOWN, 0, PROXY_RST);
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    check_int(proxy_cuts(outage.c.proxy), 1);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 0);
    outage_stop(&outage);
}

Test(connection_outage, an_acquire_whose_answer_was_lost_is_held_once)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK); /* the script is loaded */
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    proxy_cut_once(outage.c.proxy, PROXY_DOWN, 0, PROXY_RST);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK);
    check_int(proxy_cuts(outage.c.proxy), 1);
    check(connection_key_is_of(outage.c.server, "outage", outage.client));
    check_str(redis_str(outage.c.server, "HVALS outage"), "1");
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 0);
    outage_stop(&outage);
}

Test(connection_outage, a_force_release_whose_answer_was_lost_is_unknown)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    check_int(hl_lock_force_release(outage.lock, NULL), HL_ENOTOWNER); /* the script is loaded */
    expect_code(hl_lock_acquire(outage.others_lock, err), HL_OK);
    proxy_cut_once(outage.c.proxy, PROXY_DOWN, 0, PROXY_FIN);
    expect_code(hl_lock_force_release(outage.lock, err), HL_EUNKNOWN);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 0);
    check_int(hl_lock_release(outage.others_lock, NULL), HL_ELOST);
    outage_stop(&outage);
}

Test(connection_outage, a_ping_ends_with_its_own_time)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    outage_begin(&outage.c);
    int64_t begin_ms = now_ms();
    expect_code(hl_client_ping(outage.client, slow_ms(100), err), HL_ECONN);
    check(now_ms() - begin_ms < slow_ms(350));
    outage_end(&outage.c);
    expect_code(hl_client_ping(outage.client, slow_ms(3000), err), HL_OK);
    outage_stop(&outage);
}

/* A count on display: what an unanswered command wrote is put right, though nobody's count changed
 * between the connections. */
static bool count_is_one(void *arg)
{
    const struct outage *outage = arg;
    return strcmp(redis_str(outage->c.server, "HVALS outage"), "1") == 0;
}

static bool count_is_two(void *arg)
{
    const struct outage *outage = arg;
    return strcmp(redis_str(outage->c.server, "HVALS outage"), "2") == 0;
}

Test(connection_outage, an_unanswered_count_is_put_right)
{
    hl_client_options options = connection_options();
    hl_acquire_options leased = HL_ACQUIRE_OPTIONS_INIT;
    struct outage outage;
    leased.lease_ms = slow_ms(20000);
    options.request_timeout_ms = slow_ms(2000);
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire_with(outage.lock, &leased, err), HL_OK);
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    leased.lease_ms = slow_ms(10000); /* shorter: the level is granted here */
    expect_code(hl_lock_acquire_with(outage.lock, &leased, err), HL_OK);
    check(wait_until(count_is_two, &outage, 3000));
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    proxy_kill_all(outage.c.proxy);
    proxy_pass(outage.c.proxy);
    check(connection_wait_for(outage.client, connection_reconnects, 1, 5000));
    check_msg(wait_until(count_is_one, &outage, 2000), "%s",
              redis_str(outage.c.server, "HVALS outage"));
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 0);
    outage_stop(&outage);
}

/* The client's threads end although no server answers, and so do the calls of others. */
Test(connection_outage, a_client_is_closed_during_one)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct connection_call call;
    options.flags = HL_CLIENT_RELEASE_ON_CLOSE;
    outage_start(&outage, &options);
    hl_lock *held = connection_lock(outage.client, "held");
    expect_code(hl_lock_acquire(held, err), HL_OK);
    outage_begin(&outage.c);
    connection_call_start(&call, outage.lock, HL_WAIT_FOREVER);
    check(connection_wait_for(outage.client, connection_waiters, 1, 5000));
    int64_t begin_ms = now_ms();
    check_int(hl_client_close(outage.client), HL_OK);
    check(now_ms() - begin_ms < slow_ms(CONNECTION_PATIENCE_MS + 350));
    connection_join(&call);
    check_int(call.code, HL_ECANCELED);
    check_int(hl_lock_release(held, NULL), HL_ECLOSED);
    check(redis_int(outage.c.server, "PTTL held") > 0);
    hl_lock_free(held);
    hl_lock_free(outage.lock);
    hl_lock_free(outage.others_lock);
    check_int(hl_client_close(outage.other), HL_OK);
    connection_stop(&outage.c);
}

struct seen {
    atomic_int kinds[8];
    char reason[256];
};

static void seen_event(const hl_event *event, void *arg)
{
    struct seen *seen = arg;
    if (event->kind == HL_EVENT_DISCONNECTED)
        snprintf(seen->reason, sizeof seen->reason, "%s", event->reason);
    atomic_fetch_add(&seen->kinds[event->kind], 1);
}

static bool seen_connected(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_CONNECTED]) > 0;
}

static bool seen_disconnected(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_DISCONNECTED]) > 0;
}

static bool seen_lost(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_LOST]) > 0;
}

Test(connection_outage, is_told_by_one_event_and_its_end_by_another)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct seen seen = {0};
    options.on_event = seen_event;
    options.arg = &seen;
    outage_start(&outage, &options);
    outage_begin(&outage.c);
    check_call(&outage, slow_ms(100), HL_ECONN, "connection refused", slow_ms(100));
    check_int(atomic_load(&seen.kinds[HL_EVENT_CONNECTED]), 0);
    outage_end(&outage.c);
    check(wait_until(seen_connected, &seen, 5000));
    check_int(atomic_load(&seen.kinds[HL_EVENT_DISCONNECTED]), 1);
    check_int(atomic_load(&seen.kinds[HL_EVENT_CONNECTED]), 1);
    check_msg(strncmp(seen.reason, "127.0.0.1:", 10) == 0, "%s", seen.reason);
    check_int(connection_count(outage.client, connection_reconnects), 1);
    outage_stop(&outage);
}

/* A watched hold: through an outage that is shorter than its lease, and lost by one that is longer.
 */
Test(connection_outage, a_hold_survives_a_short_one_and_is_renewed_at_once)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct seen seen = {0};
    options.on_event = seen_event;
    options.arg = &seen;
    options.watchdog_timeout_ms = slow_ms(1000);
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK);
    outage_begin(&outage.c);
    check(wait_until(seen_disconnected, &seen, 5000));
    expect_code(hl_lock_try_acquire(outage.lock, err), HL_OK); /* nested: needs no server */
    check_int(hl_lock_hold_count(outage.lock, NULL), 2);
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    outage_end(&outage.c);
    check(connection_wait_for(outage.client, connection_renewals, 1, 900));
    check(hl_lock_is_held(outage.lock, NULL));
    check_int(atomic_load(&seen.kinds[HL_EVENT_LOST]), 0);
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    outage_stop(&outage);
}

Test(connection_outage, a_hold_is_lost_by_one_that_outlives_its_lease)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct seen seen = {0};
    options.on_event = seen_event;
    options.arg = &seen;
    options.watchdog_timeout_ms = slow_ms(400);
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK);
    outage_begin(&outage.c);
    check(wait_until(seen_lost, &seen, 2000));
    check(!hl_lock_is_held(outage.lock, NULL));
    check(atomic_load(&seen.kinds[HL_EVENT_JEOPARDY]) == 1);
    outage_end(&outage.c);
    check(redis_wait_int(outage.c.server, 0, 3000, "EXISTS outage"));
    check_int(hl_lock_release(outage.lock, NULL), HL_ELOST);
    check_int(hl_lock_release(outage.lock, NULL), HL_ENOTOWNER);
    outage_stop(&outage);
}

static bool seen_jeopardy(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_JEOPARDY]) > 0;
}

static bool seen_safe(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_SAFE]) > 0;
}

/* Neither sent nor answered late moves the validity: only the answer does, from when it was sent.
 */
Test(connection_outage, an_unanswered_renewal_moves_nothing)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct seen seen = {0};
    options.on_event = seen_event;
    options.arg = &seen;
    options.request_timeout_ms = slow_ms(5000);
    options.watchdog_timeout_ms = slow_ms(900);
    outage_start(&outage, &options);
    expect_code(hl_lock_acquire(outage.lock, err), HL_OK);
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    check(wait_until(seen_jeopardy, &seen, 3000));
    int64_t left_ms = hl_lock_validity_ms(outage.lock, NULL);
    check_msg(left_ms > 0 && left_ms <= slow_ms(300), "%lld ms", (long long)left_ms);
    check(redis_int(outage.c.server, "PTTL outage") > left_ms); /* it was renewed there */
    proxy_release(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    check(wait_until(seen_safe, &seen, 3000));
    check(hl_lock_is_held(outage.lock, NULL));
    check_int(atomic_load(&seen.kinds[HL_EVENT_LOST]), 0);
    expect_code(hl_lock_release(outage.lock, err), HL_OK);
    outage_stop(&outage);
}

Test(connection_outage, a_lazy_client_waits_for_its_first_server)
{
    struct redis_server *server = redis_server_start(NULL);
    struct proxy *proxy = proxy_start_before(server);
    hl_client_options options = connection_options();
    struct seen seen = {0};
    struct connection_call call;
    options.flags = HL_CLIENT_LAZY;
    options.on_event = seen_event;
    options.arg = &seen;
    proxy_refuse(proxy, true);
    hl_client *client = connection_open(proxy_url(proxy), &options);
    hl_lock *lock = connection_lock(client, "lazy");
    connection_call_start(&call, lock, slow_ms(5000));
    check(connection_wait_for(client, connection_waiters, 1, 5000));
    expect_code(hl_lock_acquire_for(lock, slow_ms(50), err), HL_ECONN);
    proxy_refuse(proxy, false);
    connection_join(&call);
    check_msg(call.code == HL_OK && call.release_code == HL_OK, "%s", call.err.text);
    check_int(atomic_load(&seen.kinds[HL_EVENT_CONNECTED]), 0); /* not for the first connection */
    check_int(atomic_load(&seen.kinds[HL_EVENT_DISCONNECTED]), 0);
    hl_lock_free(lock);
    check_int(hl_client_close(client), HL_OK);
    proxy_stop(proxy);
    redis_server_stop(server);
}
