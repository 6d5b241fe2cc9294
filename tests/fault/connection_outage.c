/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* No server for a while: which call waits how long, and what it answers then. */

#include "connection_outage.h"

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
