/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Requests that were sent and not answered: the call's code, and the fate of the request. */

#include "connection_outage.h"

/* The release's one request timeout, and not the outage timeout; then it goes on behind the call.
 */
static void check_release_behind(struct outage *outage)
{
    hl_error err = HL_ERROR_INIT;
    int64_t begin_ms = now_ms(), patience_ms = slow_ms(CONNECTION_PATIENCE_MS);
    int code = hl_lock_release(outage->lock, &err);
    int64_t lasted_ms = now_ms() - begin_ms;
    expect_released(code, HL_EINDOUBT);
    check_msg(code == HL_OK || strstr(err.text, "release 'outage': ") == err.text, "%s", err.text);
    check_msg((code == HL_OK || lasted_ms >= patience_ms - 1) && lasted_ms < slow_ms(30000),
              "%lld ms", (long long)lasted_ms);
    check(!hl_lock_is_held(outage->lock, NULL));
    check_int(hl_lock_hold_count(outage->lock, NULL), 0);
    expect_outcome(hl_lock_release(outage->lock, NULL), HL_ENOTOWNER);
}

Test(connection_unanswered, an_unanswered_release_is_in_doubt_and_repeated_behind)
{
    hl_client_options options = connection_impatient_options();
    struct outage outage;
    options.outage_timeout_ms = slow_ms(60000);
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_UP); /* the request never arrives */
    check_release_behind(&outage);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 1);
    proxy_kill_all(outage.c.proxy); /* and what was kept is lost */
    proxy_pass(outage.c.proxy);
    check(redis_wait_int(outage.c.server, 0, 5000, "EXISTS outage"));
    outage_stop(&outage);
}

Test(connection_unanswered, a_release_without_a_server_is_in_doubt_and_repeated_behind)
{
    hl_client_options options = connection_impatient_options();
    struct outage outage;
    options.outage_timeout_ms = slow_ms(60000);
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    outage_begin(&outage.c);
    check_release_behind(&outage);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 1);
    outage_end(&outage.c);
    check(redis_wait_int(outage.c.server, 0, 5000, "EXISTS outage"));
    outage_stop(&outage);
}

/* From then on the server knows the script. */
static void outage_warm(struct outage *outage)
{
    expect_ok(hl_lock_acquire(outage->lock, ERR));
    expect_ok(hl_lock_release(outage->lock, ERR));
    expect_gone(outage->c.server, "outage");
}

static bool link_is_cut(void *arg)
{
    return proxy_cuts(arg) == 1;
}

/* The answer of the first copy is lost, and the second copy finds nothing. */
static void check_release_is_unsure(struct outage *outage)
{
    hl_error err = HL_ERROR_INIT;
    proxy_cut_once(outage->c.proxy, connection_of_commands(&outage->c), PROXY_DOWN, 0, PROXY_RST);
    int code = hl_lock_release(outage->lock, &err);
    expect_released(code, HL_EINDOUBT);
    check_str(err.text, code == HL_OK ? "" : "release 'outage': an earlier copy was not answered");
    check(wait_until(link_is_cut, outage->c.proxy, 5000));
    check_int(hl_lock_hold_count(outage->lock, NULL), 0);
    expect_outcome(hl_lock_release(outage->lock, NULL), HL_ENOTOWNER);
}

/* It ran; only its answer was lost. */
Test(connection_unanswered, a_release_whose_answer_was_lost_is_in_doubt)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    outage_warm(&outage);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    check_release_is_unsure(&outage);
    expect_gone(outage.c.server, "outage");
    outage_stop(&outage);
}

Test(connection_unanswered, a_release_of_a_lost_hold_is_in_doubt_when_an_answer_was_lost)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    outage_warm(&outage);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    redis_do(outage.c.server, "DEL outage");
    expect_ok(hl_lock_acquire(outage.others_lock, ERR)); /* both are inside */
    check_release_is_unsure(&outage);
    check(hl_lock_is_held(outage.others_lock, NULL));
    expect_ok(hl_lock_release(outage.others_lock, ERR));
    outage_stop(&outage);
}

/* It never arrived: the second copy is the first that runs. */
Test(connection_unanswered, a_release_that_was_lost_on_its_way_is_done_by_its_copy)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    proxy_cut_once(outage.c.proxy, connection_of_commands(&outage.c), PROXY_UP, 0, PROXY_RST);
    expect_ok(hl_lock_release(outage.lock, ERR));
    expect_gone(outage.c.server, "outage");
    check(wait_until(link_is_cut, outage.c.proxy, 5000));
    outage_stop(&outage);
}

Test(connection_unanswered, an_acquire_whose_answer_was_lost_is_held_once)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    outage_warm(&outage);
    proxy_cut_once(outage.c.proxy, connection_of_commands(&outage.c), PROXY_DOWN, 0, PROXY_RST);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    check_int(proxy_cuts(outage.c.proxy), 1);
    check(connection_key_is_of(outage.c.server, "outage", outage.client));
    check_str(redis_str(outage.c.server, "HVALS outage"), "1");
    expect_ok(hl_lock_release(outage.lock, ERR));
    expect_gone(outage.c.server, "outage");
    outage_stop(&outage);
}

static bool is_not_held(void *lock)
{
    return !hl_lock_is_held(lock, NULL);
}

/* Its holder is told by the server. */
Test(connection_unanswered, a_force_release_whose_answer_was_lost_is_in_doubt)
{
    hl_client_options options = connection_options();
    struct outage outage;
    outage_start(&outage, &options);
    check_int(hl_lock_force_release(outage.lock, NULL), HL_ENOENT); /* the script is loaded */
    expect_ok(hl_lock_acquire(outage.others_lock, ERR));
    proxy_cut_once(outage.c.proxy, connection_of_commands(&outage.c), PROXY_DOWN, 0, PROXY_FIN);
    expect_outcome(hl_lock_force_release(outage.lock, ERR), HL_EINDOUBT);
    check_int(redis_int(outage.c.server, "EXISTS outage"), 0);
    check(wait_until(is_not_held, outage.others_lock, 10000));
    expect_outcome(hl_lock_release(outage.others_lock, NULL), HL_ELOST);
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

Test(connection_unanswered, an_unanswered_count_is_put_right)
{
    hl_client_options options = connection_options();
    hl_acquire_options leased = HL_ACQUIRE_OPTIONS_INIT;
    leased.wait_ms = HL_NO_WAIT;
    struct outage outage;
    leased.lease_ms = slow_ms(60000);
    options.request_timeout_ms = slow_ms(20000);
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire_with(outage.lock, &leased, ERR));
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    leased.lease_ms = slow_ms(30000); /* shorter: the level is granted here */
    expect_ok(hl_lock_acquire_with(outage.lock, &leased, ERR));
    check(wait_until(count_is_two, &outage, 3000));
    expect_ok(hl_lock_release(outage.lock, ERR));
    proxy_kill_all(outage.c.proxy);
    proxy_pass(outage.c.proxy);
    wait_stat(outage.client, reconnects, 1);
    check_msg(wait_until(count_is_one, &outage, 2000), "%s",
              redis_str(outage.c.server, "HVALS outage"));
    expect_ok(hl_lock_release(outage.lock, ERR));
    expect_gone(outage.c.server, "outage");
    outage_stop(&outage);
}

/* Neither sent nor answered late moves the validity: only the answer does, from when it was sent.
 */
Test(connection_unanswered, an_unanswered_renewal_moves_nothing)
{
    hl_client_options options = connection_options();
    struct outage outage;
    static struct events seen;
    const int64_t lease_ms = slow_ms(3000) + 6000;
    options.on_event = count_event;
    options.arg = &seen;
    options.request_timeout_ms = slow_ms(20000);
    options.watchdog_timeout_ms = lease_ms;
    outage_start(&outage, &options);
    expect_ok(hl_lock_acquire(outage.lock, ERR));
    proxy_hold(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    check(events_wait(&seen, HL_EVENT_JEOPARDY, 1, 5000));
    int64_t left_ms = hl_lock_validity_ms(outage.lock, NULL);
    check_msg(left_ms > 0 && left_ms <= lease_ms / 3, "%lld ms", (long long)left_ms);
    check(redis_int(outage.c.server, "PTTL outage") > left_ms); /* it was renewed there */
    proxy_release(outage.c.proxy, PROXY_EVERY, PROXY_DOWN);
    check(events_wait(&seen, HL_EVENT_SAFE, 1, 3000));
    check(hl_lock_is_held(outage.lock, NULL));
    check_int(events_told(&seen, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(outage.lock, ERR));
    outage_stop(&outage);
}
