/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Several permits given back by one call: all or none. */

#include "permits.h"

#include "support/proxy.h"
#include "support/recorder.h"

enum { SEVERAL = 3 };

static struct recorder told = RECORDER_INIT;

static void take_several(hl_permits *gate, hl_permit permits[SEVERAL])
{
    expect_ok(hl_permits_acquire_many(gate, SEVERAL, NULL, permits, NULL));
}

static int give_several(hl_permits *gate, const hl_permit permits[SEVERAL], hl_error *err)
{
    return hl_permits_release_many(gate, permits, SEVERAL, err);
}

static int held_of(hl_permits *gate, const hl_permit permits[SEVERAL])
{
    int held = 0;
    for (int i = 0; i < SEVERAL; i++)
        held += is_held(gate, permits[i]);
    return held;
}

/* "release 'gate': none: permit ID: why"; `none` is empty for a release of one. */
static void expect_names(const hl_error *err, const char *none, hl_permit permit, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "release 'gate': %spermit %s: %s", none, permit.id, why);
    check_msg(strncmp(err->text, text, strlen(text)) == 0, "%s", err->text);
}

Law(permit_returns, give_all_back_and_wake_a_waiter_for_several)
{
    hl_client *client = open_client(NULL), *waiting = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = set_gate(client, SEVERAL);
    hl_permit permits[SEVERAL];
    struct taking taking;
    take_several(gate, permits);
    taking_begin(&taking, new_gate(waiting), SEVERAL, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_waiters(waiting, 1);
    expect_listening(1);
    expect_ok(give_several(gate, permits, NULL));
    check_int(held_of(gate, permits), 0);
    expect_outcome(taking_end(&taking), HL_OK);
    expect_counts(gate, 0, SEVERAL);
    check_int(stats_of(client).releases, SEVERAL);
    check_int(stats_of(client).holds_now, 0);
    hl_error err = HL_ERROR_INIT;
    expect_outcome(give_several(gate, permits, &err), HL_ENOENT);
    check(strstr(err.text, ": it is not out") != NULL);
    expect_outcome(hl_permits_release(gate, &permits[0], &err), HL_ENOENT);
    expect_names(&err, "", permits[0], "it is not out");
}

/* Nothing renews them, and no loss is reported. */
Law(permit_returns, end_the_watch)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(1500), .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, SEVERAL + 1);
    hl_permit permits[SEVERAL], other = take_one(gate);
    take_several(gate, permits);
    wait_stat(client, renewals, SEVERAL + 1);
    expect_ok(give_several(gate, permits, NULL));
    uint64_t renewals = stats_of(client).renewals;
    wait_stat(client, renewals, renewals + 4); /* of the other: more than a lease */
    check(is_held(gate, other));
    check_int(stats_of(client).losses, 0);
    check_int(stats_of(client).holds_now, 1);
    expect_counts(gate, SEVERAL, 1);
}

Law(permit_returns, give_none_back_when_one_is_not_out)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(2000), .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, SEVERAL), *theirs = new_gate(open_client(NULL));
    hl_permit permits[SEVERAL];
    hl_error err = HL_ERROR_INIT;
    take_several(gate, permits);
    expect_ok(give_back(theirs, permits[1]));
    expect_outcome(give_several(theirs, permits, &err), HL_ENOENT);
    expect_names(&err, "none: ", permits[1], "it is not out");
    expect_counts(theirs, 1, 2);
    int rc = give_several(gate, permits, &err); /* a renewal may have told it by now */
    check(rc == HL_ENOENT || rc == HL_ELOST);
    expect_names(&err, "none: ", permits[1],
                 rc == HL_ELOST ? "the hold ended before" : "it is not out");
    expect_story(&told, "LOST gone");
    uint64_t renewals = stats_of(client).renewals;
    wait_stat(client, renewals, renewals + 8); /* the other two, longer than a lease */
    check(is_held(gate, permits[0]) && !is_held(gate, permits[1]) && is_held(gate, permits[2]));
    expect_counts(gate, 1, 2);
    permits[1] = permits[2];
    expect_ok(hl_permits_release_many(gate, permits, 2, NULL));
    expect_counts(gate, 3, 0);
}

/* The server has not taken it back yet, for no client has asked. */
Law(permit_returns, give_none_back_when_one_has_expired)
{
    hl_permits *gate = set_gate(open_client(NULL), SEVERAL);
    hl_permits *theirs = new_gate(open_client(NULL));
    hl_permit permits[SEVERAL];
    hl_error err = HL_ERROR_INIT;
    permits[0] = take_one(gate);
    permits[1] = take_one(gate);
    permits[2] = take_with(theirs, ACQUIRE(.lease_ms = slow_ms(20)));
    check(redis_wait_int(server, 1, 5000, "EVAL %s 1 gate",
                         "local time = redis.call('TIME') return redis.call('ZCOUNT', '" IDS
                         "', 0, time[1] * 1000 + math.floor(time[2] / 1000))"));
    expect_outcome(give_several(gate, permits, &err), HL_ELOST);
    expect_names(&err, "none: ", permits[2], "it had expired");
    check(is_held(gate, permits[0]) && is_held(gate, permits[1]));
    expect_counts(gate, 1, 2);
}

Law(permit_returns, give_none_back_when_one_is_known_to_be_lost)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, SEVERAL);
    hl_permit permits[SEVERAL] = {take_one(gate), take_one(gate),
                                  take_with(gate, ACQUIRE(.lease_ms = 2000))};
    hl_error err = HL_ERROR_INIT;
    expect_story(&told, "LOST expired");
    expect_outcome(give_several(gate, permits, &err), HL_ELOST);
    expect_names(&err, "none: ", permits[2],
                 "the hold ended before its release (its lease ran out ");
    check(is_held(gate, permits[0]) && is_held(gate, permits[1]));
}

/* One's own, another thread's, another client's. */
Law(permit_returns, give_back_permits_of_any_holder)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(3000), .on_event = record_event, .arg = &told));
    hl_permits *gate = new_gate(client), *mine = set_gate(open_client(NULL), SEVERAL);
    struct taking taking;
    taking_begin(&taking, mine, 1, ACQUIRE(.wait_ms = 0));
    expect_outcome(taking_end(&taking), HL_OK);
    hl_permit permits[SEVERAL] = {take_one(mine), taking.permits[0], take_one(gate)};
    expect_ok(give_several(mine, permits, NULL));
    check(!is_held(mine, permits[0]) && !is_held(mine, permits[1]));
    check(recorder_wait_says(&told, "LOST gone"));
    expect_counts(mine, SEVERAL, 0);
}

Law(permit_returns, refuse_what_makes_no_sense)
{
    static hl_permit many[HL_PERMITS_MAX_PER_CALL + 1];
    hl_permits *gate = set_gate(open_client(NULL), SEVERAL);
    hl_permit permits[SEVERAL], odd[SEVERAL];
    hl_error err = HL_ERROR_INIT;
    take_several(gate, permits);
    memcpy(odd, permits, sizeof odd);
    odd[2] = odd[0];
    expect_outcome(give_several(gate, odd, &err), HL_EINVAL);
    expect_names(&err, "none: ", odd[0], "it is there twice");
    odd[2] = (hl_permit){"no id"};
    expect_outcome(give_several(gate, odd, &err), HL_EINVAL);
    check_str(err.text, "release 'gate': a permit's id has 32 lower-case hex digits");
    expect_outcome(give_several(gate, NULL, NULL), HL_EINVAL);
    expect_outcome(give_several(NULL, permits, NULL), HL_EINVAL);
    expect_outcome(hl_permits_release_many(gate, permits, 0, NULL), HL_EINVAL);
    expect_outcome(hl_permits_release_many(gate, many, HL_PERMITS_MAX_PER_CALL + 1, NULL),
                   HL_EINVAL);
    expect_outcome(hl_permits_release_many_async(gate, permits, SEVERAL, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_permits_release_many_async(gate, odd, SEVERAL, record_done, &told),
                   HL_EINVAL);
    check_str(hl_err_last()->text, "release 'gate': a permit's id has 32 lower-case hex digits");
    check_int(held_of(gate, permits), SEVERAL);
    check_int(recorder_count(&told), 0);
    expect_counts(gate, 0, SEVERAL);
}

Law(permit_returns, give_a_thousand_back_at_once)
{
    static hl_permit many[HL_PERMITS_MAX_PER_CALL];
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, HL_PERMITS_MAX_PER_CALL);
    expect_ok(hl_permits_acquire_many(gate, HL_PERMITS_MAX_PER_CALL, NULL, many, NULL));
    expect_ok(
        hl_permits_release_many_async(gate, many, HL_PERMITS_MAX_PER_CALL, record_done, &told));
    memset(many, 0, sizeof many); /* they are copied */
    expect_story(&told, "done HL_OK");
    expect_counts(gate, HL_PERMITS_MAX_PER_CALL, 0);
    check_int(stats_of(client).holds_now, 0);
}

/* Neither held nor another call's, until it is known. */
SingleLaw(permit_returns, are_not_held_while_the_call_is_under_way)
{
    hl_client *client =
        open_client(CLIENT(.request_timeout_ms = 60000, .watchdog_timeout_ms = slow_ms(20000),
                           .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, SEVERAL);
    hl_permit permits[SEVERAL];
    hl_error err = HL_ERROR_INIT;
    take_several(gate, permits);
    redis_server_freeze(server);
    expect_ok(hl_permits_release_many_async(gate, permits, SEVERAL, record_done, &told));
    check_int(held_of(gate, permits), 0);
    check_int(hl_permits_validity_ms(gate, &permits[0]), 0);
    expect_outcome(hl_permits_release(gate, &permits[0], NULL), HL_EINVAL);
    expect_outcome(hl_permits_update_lease(gate, &permits[0], 1000, NULL), HL_EINVAL);
    expect_outcome(hl_permits_release_many(gate, &permits[1], 1, &err), HL_EINVAL);
    expect_names(&err, "", permits[1], "another call for it is under way");
    redis_server_thaw(server);
    expect_story(&told, "done HL_OK");
    expect_counts(gate, SEVERAL, 0);
}

/* The permits of a refused call are held as before, and are renewed again. */
Law(permit_returns, that_are_refused_are_held_as_before)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_permits *gate = set_gate(client, SEVERAL);
    hl_permit permits[SEVERAL];
    take_several(gate, permits);
    int64_t ends_ms = hl_permits_validity_ms(gate, &permits[0]);
    redis_do(server, "RENAME gate {gate}:gone");
    redis_do(server, "SET gate stranger");
    expect_outcome(give_several(gate, permits, NULL), HL_ESERVER);
    redis_do(server, "RENAME {gate}:gone gate");
    check(ends_ms > 0);
    check_int(held_of(gate, permits), SEVERAL);
    uint64_t renewals = stats_of(client).renewals;
    wait_stat(client, renewals, renewals + 12); /* longer than a lease */
    check_int(held_of(gate, permits), SEVERAL);
    expect_ok(give_several(gate, permits, NULL));
    expect_counts(gate, SEVERAL, 0);
}

/* The lease time of one ends meanwhile: the server says whether that was before or behind. */
SingleLaw(permit_returns, that_end_meanwhile_are_told_by_the_answer)
{
    hl_client *client =
        open_client(CLIENT(.request_timeout_ms = 60000, .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 2);
    hl_permit permits[2] = {take_with(gate, ACQUIRE(.lease_ms = slow_ms(2000))), take_one(gate)};
    redis_server_freeze(server);
    int64_t over_ms = now_ms() + slow_ms(2100);
    expect_ok(hl_permits_release_many_async(gate, permits, 2, record_done, &told));
    while (now_ms() < over_ms)
        deadline_nap();
    check_int(recorder_count(&told), 0); /* no completion runs before */
    redis_server_thaw(server);
    expect_story(&told, "LOST gone, done HL_ELOST");
    check(!is_held(gate, permits[0]) && is_held(gate, permits[1]));
}

static struct proxy *proxy;
static hl_client *client; /* behind it */
static hl_permits *gate, *direct;

/* SEVERAL of them, and the release of several that is about to go out. */
static void begin(hl_permit permits[SEVERAL], const hl_client_options *options)
{
    proxy = new_proxy();
    direct = set_gate(open_client(NULL), SEVERAL);
    client = open_client_at(proxy_url(proxy), options);
    gate = new_gate(client);
    take_several(gate, permits);
    expect_ok(give_several(gate, permits, NULL)); /* the server knows the scripts */
    take_several(gate, permits);
}

/* The script never ran, and the second copy does what was asked. */
TcpLaw(permit_returns, whose_request_is_lost_is_repeated)
{
    hl_permit permits[SEVERAL];
    begin(permits, CLIENT(.backoff_min_ms = 1, .on_event = record_event, .arg = &told));
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    expect_ok(hl_permits_release_many_async(gate, permits, SEVERAL, record_done, &told));
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    check(recorder_wait_says(&told, "done HL_OK"));
    check(!recorder_says(&told, "LOST"));
    check_int(held_of(gate, permits), 0);
    expect_counts(direct, SEVERAL, 0);
}

/* The first copy ran, and the second finds none: released, or lost before. */
TcpLaw(permit_returns, whose_answer_is_lost_is_in_doubt)
{
    hl_permit permits[SEVERAL];
    begin(permits, CLIENT(.backoff_min_ms = 1, .on_event = record_event, .arg = &told));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_permits_release_many_async(gate, permits, SEVERAL, record_done, &told));
    check(redis_wait_int(server, SEVERAL, 5000, "GET gate"));
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    check(recorder_wait_says(&told, "done HL_EINDOUBT"));
    check(!recorder_says(&told, "LOST"));
    check_int(held_of(gate, permits), 0);
    expect_counts(direct, SEVERAL, 0);
    check_int(stats_of(client).in_doubt, 1);
    check_int(stats_of(client).holds_now, 0);
}

/* One that is there tells that no copy ran, whatever became of the others. */
TcpLaw(permit_returns, whose_request_is_lost_and_one_of_them_too_are_not_in_doubt)
{
    hl_permit permits[SEVERAL];
    begin(permits, CLIENT(.backoff_min_ms = 1));
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    expect_ok(hl_permits_release_many_async(gate, permits, SEVERAL, record_done, &told));
    expect_ok(give_back(direct, permits[0]));
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    expect_story(&told, "done HL_ENOENT");
    check(is_held(gate, permits[1]) && is_held(gate, permits[2]) && !is_held(gate, permits[0]));
    expect_counts(direct, 1, 2);
}

/* No answer comes: they are not held, and are released when the link is up. */
TcpLaw(permit_returns, without_any_answer_are_released_behind)
{
    hl_permit permits[SEVERAL];
    begin(permits,
          CLIENT(.backoff_min_ms = 1, .request_timeout_ms = 60000,
                 .outage_timeout_ms = slow_ms(1500), .on_event = record_event, .arg = &told));
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    expect_outcome(give_several(gate, permits, NULL), HL_EINDOUBT);
    check_int(held_of(gate, permits), 0);
    check_int(stats_of(client).holds_now, 0);
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    check(redis_wait_int(server, SEVERAL, 10000, "GET gate"));
    expect_counts(direct, SEVERAL, 0);
    check(!recorder_says(&told, "LOST"));
}

/* Nothing was sent. */
TcpLaw(permit_returns, without_a_server_are_held_as_before)
{
    hl_permit permits[SEVERAL];
    begin(permits, CLIENT(.backoff_min_ms = 1, .outage_timeout_ms = slow_ms(1500),
                          .on_event = record_event, .arg = &told));
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    check(recorder_wait_says(&told, "DISCONNECTED"));
    expect_outcome(give_several(gate, permits, NULL), HL_ECONN);
    check_int(held_of(gate, permits), SEVERAL);
    proxy_refuse(proxy, false);
    check(recorder_wait_says(&told, ", CONNECTED"));
    expect_ok(give_several(gate, permits, NULL));
    expect_counts(direct, SEVERAL, 0);
}

TcpLaw(permit_returns, of_a_client_that_is_closed_meanwhile_end_with_it)
{
    hl_permit permits[SEVERAL];
    begin(permits, CLIENT(.request_timeout_ms = slow_ms(1500)));
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    expect_ok(hl_permits_release_many_async(gate, permits, SEVERAL, record_done, &told));
    close_client(client);
    expect_story(&told, "done HL_EINDOUBT");
    check_int(held_of(gate, permits), 0);
}
