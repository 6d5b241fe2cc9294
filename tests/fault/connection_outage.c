/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* No server for a while: how long each call waits, and which code it returns then. */

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
    check_msg(lasted_ms >= least_ms - 1 && lasted_ms <= least_ms + slow_ms(20000),
              "%lld ms, expected %lld: %s", (long long)lasted_ms, (long long)least_ms, err.text);
    check(!hl_lock_is_held(outage->lock, NULL));
}

Test(connection_outage, a_wait_ends_with_its_wait_time_and_the_reason)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.outage_timeout_ms = slow_ms(60000);
    outage_start(&outage, &options);
    outage_begin_refused(&outage);
    check_call(&outage, slow_ms(1000), HL_ECONN, "connection refused", slow_ms(1000));
    outage_end(&outage.c);
    expect_ok(hl_lock_acquire_for(outage.lock, slow_ms(10000), ERR));
    expect_ok(hl_lock_release(outage.lock, ERR));
    outage_stop(&outage);
}

Test(connection_outage, a_wait_for_a_silent_server_ends_with_its_wait_time)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.request_timeout_ms = options.outage_timeout_ms = slow_ms(60000);
    outage_start(&outage, &options);
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    check_call(&outage, slow_ms(150), HL_ETIMEDOUT, "no answer came by then", slow_ms(150));
    proxy_pass(outage.c.proxy);
    check(redis_wait_int(outage.c.server, 0, 3000,
                         "EXISTS outage")); /* what came late is given back */
    outage_stop(&outage);
}

Test(connection_outage, a_wait_that_was_busy_last_has_timed_out)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.poll_ms = slow_ms(60000);
    options.request_timeout_ms = options.outage_timeout_ms = slow_ms(60000);
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire(outage.others_lock, ERR));
    check_call(&outage, slow_ms(2000), HL_ETIMEDOUT, "held by", slow_ms(2000));
    expect_ok(hl_lock_release(outage.others_lock, ERR));
    outage_stop(&outage);
}

Test(connection_outage, a_call_without_an_end_ends_with_the_outage_timeout)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.outage_timeout_ms = slow_ms(1000);
    outage_start(&outage, &options);
    outage_begin_refused(&outage);
    check_call(&outage, HL_WAIT_FOREVER, HL_ECONN, "connection refused", slow_ms(1000));
    check_call(&outage, slow_ms(60000), HL_ECONN, "connection refused", slow_ms(1000));
    check_call(&outage, slow_ms(500), HL_ECONN, "connection refused", slow_ms(500));
    outage_stop(&outage);
}

/* The outage timeout, the pause before the next attempt and the time to connect are minutes: so it
 * is the last attempt's failure that ends the call. */
Test(connection_outage, a_call_without_waiting_fails_at_once_while_the_server_is_out_of_reach)
{
    hl_client_options options = connection_options();
    struct outage outage;
    hl_error err = HL_ERROR_INIT;
    options.outage_timeout_ms = options.backoff_min_ms = options.backoff_max_ms = 60000;
    options.connect_timeout_ms = 60000;
    options.flags = HL_CLIENT_LAZY;
    outage.c = connection_start(NULL);
    proxy_refuse(outage.c.proxy, true);
    outage.client = open_client_at(proxy_url(outage.c.proxy), &options);
    outage.lock = new_lock(outage.client, "outage");
    for (int i = 0; i < 3; i++) {
        int64_t begin_ms = now_ms();
        expect_outcome(hl_lock_try_acquire(outage.lock, &err), HL_ECONN);
        check_msg(strstr(err.text, "acquire 'outage': ") == err.text &&
                      strstr(err.text, "connection refused"),
                  "%s", err.text);
        check_msg(now_ms() - begin_ms < slow_ms(30000), "%lld ms",
                  (long long)(now_ms() - begin_ms));
    }
    free_lock(outage.lock);
    close_client(outage.client);
    connection_stop(&outage.c);
}

/* The first attempt to connect fails at about the time of the call. */
Test(connection_outage, the_reason_is_told_whenever_the_attempt_fails)
{
    hl_client_options options = connection_impatient_options();
    struct outage outage;
    hl_error err = HL_ERROR_INIT;
    options.backoff_min_ms = options.backoff_max_ms = 60000;
    options.flags = HL_CLIENT_LAZY;
    outage.c = connection_start(NULL);
    proxy_refuse(outage.c.proxy, true);
    for (int i = 0; i < 500; i++) {
        outage.client = open_client_at(proxy_url(outage.c.proxy), &options);
        outage.lock = new_lock(outage.client, "outage");
        usleep((useconds_t)i % 250);
        expect_outcome(hl_lock_try_acquire(outage.lock, &err), HL_ECONN);
        check_msg(strstr(err.text, "connection refused"), "%d: %s", i, err.text);
        free_lock(outage.lock);
        close_client(outage.client);
    }
    connection_stop(&outage.c);
}

Test(connection_outage, a_call_waits_on_when_no_outage_is_too_long)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct connection_call call;
    options.outage_timeout_ms = -1;
    outage_start(&outage, &options);
    outage_begin_refused(&outage);
    connection_call_start(&call, outage.lock, HL_WAIT_FOREVER);
    int before = proxy_accepted(outage.c.proxy);
    wait_stat(outage.client, waiters_now, 1);
    check_call(&outage, slow_ms(300), HL_ECONN, "connection refused", slow_ms(300));
    check_int(stats_of(outage.client).waiters_now, 1);
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
    expect_ok(hl_lock_acquire(outage.others_lock, ERR));
    connection_call_start(&call, outage.lock, slow_ms(15000));
    check(redis_wait_subscribers(outage.c.server, "redisson_lock__channel:{outage}", 1, 5000));
    for (uint64_t i = 1; i <= 3; i++) {
        outage_begin(&outage.c);
        outage_end(&outage.c);
        wait_stat(outage.client, reconnects, i);
    }
    check(redis_wait_subscribers(outage.c.server, "redisson_lock__channel:{outage}", 1, 5000));
    check_int(stats_of(outage.client).waiters_now, 1);
    expect_ok(hl_lock_release(outage.others_lock, ERR));
    connection_join(&call);
    check_msg(call.code == HL_OK && call.lasted_ms < slow_ms(14000), "%s", call.err.text);
    outage_stop(&outage);
}

/* The pause before the first attempt to reconnect, which succeeds, is long enough to begin in it.
 */
Test(connection_outage, a_try_that_begins_before_the_first_reconnect_waits_for_it)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct connection_call call;
    options.backoff_min_ms = options.backoff_max_ms = 500;
    options.outage_timeout_ms = slow_ms(20000);
    outage_start(&outage, &options);
    proxy_kill_all(outage.c.proxy);
    connection_call_start(&call, outage.lock, HL_NO_WAIT);
    connection_join(&call);
    check_msg(call.code == HL_OK, "%s", call.err.text);
    expect_ok(hl_lock_acquire(outage.others_lock, ERR));
    proxy_kill_all(outage.c.proxy);
    connection_call_start(&call, outage.lock, HL_NO_WAIT);
    connection_join(&call);
    check_msg(call.code == HL_EBUSY, "%s: %s", hl_err_name(call.code), call.err.text);
    expect_ok(hl_lock_release(outage.others_lock, ERR));
    outage_stop(&outage);
}

Test(connection_outage, a_ping_ends_with_its_own_time)
{
    hl_client_options options = connection_options();
    struct outage outage;
    options.outage_timeout_ms = slow_ms(60000);
    outage_start(&outage, &options);
    outage_begin(&outage.c);
    int64_t begin_ms = now_ms();
    expect_outcome(hl_client_ping(outage.client, slow_ms(1000), ERR), HL_ECONN);
    check(now_ms() - begin_ms < slow_ms(30000));
    outage_end(&outage.c);
    expect_ok(hl_client_ping(outage.client, slow_ms(10000), ERR));
    outage_stop(&outage);
}

/* The client's threads end although no server answers, and so do the calls of others. */
Test(connection_outage, a_client_closes_during_an_outage)
{
    hl_client_options options = connection_impatient_options();
    struct outage outage;
    struct connection_call call;
    options.flags = HL_CLIENT_RELEASE_ON_CLOSE;
    outage_start(&outage, &options);
    hl_lock *held = new_lock(outage.client, "held");
    expect_ok(hl_lock_acquire(held, ERR));
    outage_begin(&outage.c);
    connection_call_start(&call, outage.lock, HL_WAIT_FOREVER);
    wait_stat(outage.client, waiters_now, 1);
    int64_t begin_ms = now_ms();
    close_client(outage.client);
    check(now_ms() - begin_ms < slow_ms(20000));
    connection_join(&call);
    check_int(call.code, HL_ECANCELED);
    expect_outcome(hl_lock_release(held, NULL), HL_ECLOSED);
    check(redis_int(outage.c.server, "PTTL held") > 0);
    free_lock(held);
    free_lock(outage.lock);
    free_lock(outage.others_lock);
    close_client(outage.other);
    connection_stop(&outage.c);
}

Test(connection_outage, is_told_by_one_event_and_its_end_by_another)
{
    hl_client_options options = connection_options();
    struct outage outage;
    static struct events seen;
    options.on_event = count_event;
    options.arg = &seen;
    outage_start(&outage, &options);
    outage_begin_refused(&outage);
    check_call(&outage, slow_ms(1000), HL_ECONN, "connection refused", slow_ms(1000));
    check_int(events_told(&seen, HL_EVENT_CONNECTED), 0);
    outage_end(&outage.c);
    check(events_wait(&seen, HL_EVENT_CONNECTED, 1, 5000));
    check_int(events_told(&seen, HL_EVENT_DISCONNECTED), 1);
    check_int(events_told(&seen, HL_EVENT_CONNECTED), 1);
    check_msg(strncmp(seen.reason[HL_EVENT_DISCONNECTED], "127.0.0.1:", 10) == 0, "%s",
              seen.reason[HL_EVENT_DISCONNECTED]);
    check_int(stats_of(outage.client).reconnects, 1);
    outage_stop(&outage);
}

/* A watched hold: through an outage that is shorter than its lease, and lost by one that is longer.
 */
Test(connection_outage, a_hold_survives_a_short_outage_and_is_renewed_at_once)
{
    hl_client_options options = connection_options();
    struct outage outage;
    static struct events seen;
    options.on_event = count_event;
    options.arg = &seen;
    options.watchdog_timeout_ms = slow_ms(9000);
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    outage_begin(&outage.c);
    check(events_wait(&seen, HL_EVENT_DISCONNECTED, 1, 5000));
    expect_ok(hl_lock_try_acquire(outage.lock, ERR)); /* nested: needs no server */
    check_int(hl_lock_hold_count(outage.lock, NULL), 2);
    expect_ok(hl_lock_release(outage.lock, ERR));
    outage_end(&outage.c);
    wait_stat(outage.client, renewals, 1);
    check(hl_lock_is_held(outage.lock, NULL));
    check_int(events_told(&seen, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(outage.lock, ERR));
    outage_stop(&outage);
}

Test(connection_outage, a_hold_is_lost_by_an_outage_longer_than_its_lease)
{
    hl_client_options options = connection_options();
    struct outage outage;
    static struct events seen;
    options.on_event = count_event;
    options.arg = &seen;
    options.watchdog_timeout_ms = slow_ms(1500) + 3000; /* in jeopardy for a third of it */
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    outage_begin(&outage.c);
    check(events_wait(&seen, HL_EVENT_LOST, 1, 5000));
    check(!hl_lock_is_held(outage.lock, NULL));
    check(events_told(&seen, HL_EVENT_JEOPARDY) == 1);
    outage_end(&outage.c);
    check(redis_wait_int(outage.c.server, 0, 3000, "EXISTS outage"));
    expect_outcome(hl_lock_release(outage.lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(outage.lock, NULL), HL_ENOTOWNER);
    outage_stop(&outage);
}

Test(connection_outage, a_lazy_client_waits_for_its_first_server)
{
    server = redis_server_start(NULL);
    struct proxy *proxy = proxy_start_before(server);
    hl_client_options options = connection_options();
    static struct events seen;
    struct connection_call call;
    options.flags = HL_CLIENT_LAZY;
    options.outage_timeout_ms = slow_ms(60000);
    options.on_event = count_event;
    options.arg = &seen;
    proxy_refuse(proxy, true);
    hl_client *client = open_client_at(proxy_url(proxy), &options);
    hl_lock *lock = new_lock(client, "lazy");
    connection_call_start(&call, lock, slow_ms(30000));
    wait_stat(client, waiters_now, 1);
    check(wait_until(outage_is_refused, client, 5000));
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(50), ERR), HL_ECONN);
    proxy_refuse(proxy, false);
    connection_join(&call);
    check_msg(call.code == HL_OK && call.release_code == HL_OK, "%s", call.err.text);
    check_int(events_told(&seen, HL_EVENT_CONNECTED), 0); /* not for the first connection */
    check_int(events_told(&seen, HL_EVENT_DISCONNECTED), 0);
    free_lock(lock);
    close_client(client);
    proxy_stop(proxy);
    redis_server_stop(server);
}

struct outage_log {
    atomic_int lines, failures, again;
};

static void outage_log_line(hl_log_level level, const char *text, void *arg)
{
    struct outage_log *log = arg;
    check(level <= HL_LOG_WARN);
    atomic_fetch_add(&log->lines, 1);
    if (strstr(text, "no connection: "))
        atomic_fetch_add(&log->failures, 1);
    if (strstr(text, "connected again to ") && strstr(text, " s, attempts: "))
        atomic_fetch_add(&log->again, 1);
}

static bool outage_log_is_over(void *log)
{
    return atomic_load(&((struct outage_log *)log)->again) > 0;
}

Test(connection_outage, fills_no_log_and_its_end_stands_there_too)
{
    hl_client_options options = connection_options();
    struct outage outage;
    struct outage_log log = {0};
    options.on_log = outage_log_line;
    options.arg = &log;
    outage_start(&outage, &options);
    outage_begin_refused(&outage);
    check_call(&outage, slow_ms(500), HL_ECONN, "connection refused", slow_ms(500));
    outage_end(&outage.c);
    check(wait_until(outage_log_is_over, &log, 5000));
    check_int(atomic_load(&log.failures), 1);
    check_int(atomic_load(&log.lines), 3); /* lost, the first attempt, connected again */
    outage_stop(&outage);
}
