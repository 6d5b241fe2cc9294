/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Permits while the network and the server fail: late permits are given back, held permits are kept
 * or reported as lost, and waiters are served. */

#include "permits.h"

#include "support/proxy.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

static struct proxy *proxy;
static hl_client *client; /* behind it */
static hl_permits *gate, *direct;
static int commands; /* the number of its connection at the proxy */

static void begin(int permits, const hl_client_options *options)
{
    proxy = new_proxy();
    direct = set_gate(open_client(NULL), permits);
    client = open_client_at(proxy_url(proxy), options);
    gate = new_gate(client);
    expect_ok(give_back(gate, take_one(gate))); /* the server knows the scripts */
    commands = proxy_find(proxy, "EVALSHA");
    check(commands >= 0);
}

TcpLaw(permit_links, a_permit_that_comes_after_its_wait_is_over_is_given_back)
{
    struct taking taking;
    begin(3, CLIENT(.request_timeout_ms = 60000));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    taking_begin(&taking, gate, 2, ACQUIRE(.wait_ms = slow_ms(3000)));
    check(redis_wait_int(server, 1, 5000, "GET gate"));
    expect_outcome(taking_end(&taking), HL_ETIMEDOUT);
    check(redis_wait_int(server, 3, 5000, "GET gate")); /* both, though no answer comes */
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_client_ping(client, -1, NULL));
    expect_counts(direct, 3, 0);
    check_int(stats_of(client).holds_now, 0);
}

TcpLaw(permit_links, a_permit_that_comes_after_its_cancel_is_given_back)
{
    hl_cancel *cancel = new_cancel();
    struct taking taking;
    begin(1, CLIENT(.request_timeout_ms = 60000));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    taking_begin(&taking, gate, 1, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    check(redis_wait_int(server, 0, 5000, "GET gate"));
    hl_cancel_fire(cancel);
    expect_outcome(taking_end(&taking), HL_ECANCELED);
    check(redis_wait_int(server, 1, 5000, "GET gate"));
}

/* The first answer comes when the lease is over: the call goes on, until it gets a permit that is
 * there. */
TcpLaw(permit_links, a_permit_whose_answer_comes_after_its_lease_is_not_told)
{
    struct taking taking;
    begin(1, CLIENT(.request_timeout_ms = 60000, .poll_ms = 100));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    taking_begin(&taking, gate, 1, ACQUIRE(.wait_ms = slow_ms(30000), .lease_ms = slow_ms(2000)));
    check(redis_wait_int(server, 1, 5000, "ZCARD " IDS));
    hl_permit others = {""};
    expect_ok(hl_permits_acquire_for(direct, slow_ms(20000), &others, NULL));
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN); /* by now it is another client's */
    expect_waiters(client, 1);
    expect_listening(1);
    check(!actor_is_done(taking.actor) && is_held(direct, others));
    expect_ok(give_back(direct, others));
    expect_outcome(taking_end(&taking), HL_OK);
    check(is_held(gate, taking.permits[0]));
    expect_counts(direct, 0, 1);
}

/* The poll may be answered before the proxy has read the message. */
static bool has_dropped_one(void *arg)
{
    (void)arg;
    return proxy_dropped(proxy) == 1;
}

TcpLaw(permit_links, a_message_that_is_lost_costs_a_poll)
{
    struct taking taking;
    begin(1, CLIENT(.poll_ms = 200));
    hl_permit permit = take_one(direct);
    taking_begin(&taking, gate, 1, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_waiters(client, 1);
    expect_listening(1);
    proxy_drop_messages(proxy, CHANNEL, 1);
    expect_ok(give_back(direct, permit));
    expect_outcome(taking_end(&taking), HL_OK);
    check(wait_until(has_dropped_one, NULL, 5000));
}

TcpLaw(permit_links, permits_are_kept_and_waited_for_across_a_reconnect)
{
    struct taking taking;
    begin(2, CLIENT(.backoff_min_ms = 1, .poll_ms = 20000, .on_event = record_event, .arg = &told));
    hl_permit mine = take_one(gate), other = take_one(direct);
    taking_begin(&taking, gate, 1, ACQUIRE(.wait_ms = slow_ms(20000)));
    expect_waiters(client, 1);
    expect_listening(1);
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    check(recorder_wait_says(&told, "DISCONNECTED"));
    expect_ok(give_back(direct, other)); /* no client hears it */
    check(is_held(gate, mine));
    proxy_refuse(proxy, false);
    expect_outcome(taking_end(&taking), HL_OK);
    check(is_held(gate, mine) && stats_of(client).losses == 0);
    expect_counts(direct, 0, 2);
}

TcpLaw(permit_links, a_release_that_was_not_answered_is_repeated_until_it_is)
{
    begin(1, CLIENT(.backoff_min_ms = 1, .request_timeout_ms = slow_ms(1500)));
    hl_permit permit = take_one(gate);
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    expect_outcome(give_back(gate, permit), HL_EINDOUBT);
    check(!is_held(gate, permit));
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    check(redis_wait_int(server, 1, 5000, "GET gate"));
    expect_counts(direct, 1, 0);
}

/* A foreign permit's: its first copy was done, and the second finds nothing. */
TcpLaw(permit_links, a_release_by_id_whose_answer_is_lost_is_in_doubt)
{
    begin(1, CLIENT(.backoff_min_ms = 1));
    hl_permit permit = take_one(direct);
    struct recorder done = RECORDER_INIT;
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_permits_release_async(gate, &permit, record_done, &done));
    check(redis_wait_int(server, 1, 5000, "GET gate"));
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    expect_story(&done, "done HL_EINDOUBT");
    expect_counts(direct, 1, 0);
}

/* Its first copy never arrived. */
TcpLaw(permit_links, a_release_by_id_whose_request_is_lost_is_done_by_its_copy)
{
    begin(1, CLIENT(.backoff_min_ms = 1));
    hl_permit permit = take_one(direct);
    proxy_cut_once(proxy, commands, PROXY_UP, 0, PROXY_RST);
    expect_ok(give_back(gate, permit));
    check_int(proxy_cuts(proxy), 1);
    expect_counts(direct, 1, 0);
}

TcpLaw(permit_links, permits_of_a_server_that_has_lost_its_data_are_lost)
{
    begin(2, CLIENT(.backoff_min_ms = 1, .on_event = record_event, .arg = &told));
    hl_permit permit[2];
    expect_ok(hl_permits_acquire_many(gate, 2, NULL, permit, NULL));
    redis_server_kill(server);
    redis_server_wipe(server);
    redis_server_restart(server);
    check(recorder_wait_says(&told, "LOST gone, LOST gone"));
    check(!is_held(gate, permit[0]) && !is_held(gate, permit[1]));
    expect_ok(hl_permits_try_set_total(gate, 2, 0, NULL));
    take_one(gate);
    expect_counts(gate, 1, 1);
}

/* A second copy would delete what others have set meanwhile. */
TcpLaw(permit_links, a_delete_whose_answer_is_lost_is_not_repeated)
{
    begin(3, CLIENT(.backoff_min_ms = 5));
    expect_ok(hl_permits_delete(gate, NULL));
    expect_ok(hl_permits_set_total(direct, 3, 0, NULL));
    int64_t calls = redis_evalsha_calls(server);
    proxy_cut_once(proxy, commands, PROXY_DOWN, 1, PROXY_RST);
    expect_outcome(hl_permits_delete(gate, NULL), HL_EINDOUBT);
    check_int(redis_evalsha_calls(server), calls + 1);
    expect_ok(hl_permits_set_total(direct, 1, 0, NULL));
    expect_ok(hl_client_ping(client, -1, NULL));
    expect_counts(direct, 1, 0);
}
