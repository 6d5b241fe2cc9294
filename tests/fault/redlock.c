/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Masters of a Redlock that are dead, stopped, slow, out of reach or wrong about the time: a
 * minority of them costs nothing, and a majority is told of. */
#include "support/actor.h"
#include "support/events.h"
#include "support/masters.h"
#include "support/recorder.h"

/* No longer than a vote may wait, a quarter of the lease of 30 s. */
static int64_t few_ms(void)
{
    const int64_t most_ms = 5000;
    return slow_ms(1000) < most_ms ? slow_ms(1000) : most_ms;
}

static struct recorder told = RECORDER_INIT;

static void masters_up_tcp(void)
{
    masters_up_with(5, &(struct redis_options){.tcp = true});
    masters_use_proxies();
}

#define ProxiedLaw(name) Test(redlock, name, .init = masters_up_tcp, .fini = server_down)

/* A master is waited for so shortly that a test can wait for it, too. */
static hl_lock *new_hasty_redlock(hl_client *const *clients)
{
    return new_redlock_of(
        clients, 5, "stock",
        REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY, .vote_timeout_ms = few_ms()));
}

static void kill_masters(int from, int end)
{
    for (int i = from; i < end; i++)
        redis_server_kill(masters.server[i]);
}

static void restart_masters(int from, int end)
{
    for (int i = from; i < end; i++)
        redis_server_restart(masters.server[i]);
}

/* With the first client's master among the dead. */
MastersLaw(redlock, goes_on_with_any_minority_dead)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(clients[0], votes, 5);
    kill_masters(0, 2);
    wait_stat(clients[4], renewals, 4);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    expect_masters_with("stock", 0);
    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_try_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
    }
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, is_refused_with_a_majority_dead_and_says_so_and_comes_back)
{
    hl_client **clients = open_masters(CLIENT(.poll_ms = 100));
    hl_lock *lock = new_redlock(clients, "stock");
    hl_error err = HL_ERROR_INIT;
    kill_masters(2, 5);
    for (int i = 2; i < 5; i++)
        expect_cut_off(clients[i]);
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ECONN);
    check_has(err.text, "acquire 'stock': only 2 of 5 masters voted (connect ");
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(300), &err), HL_ECONN);
    check_has(err.text, "only 2 of 5 masters voted");
    expect_masters_with("stock", 0); /* the living ones gave it back */
    struct actor *thread = actor_start_acquire(lock, ACQUIRE(.wait_ms = slow_ms(60000)));
    expect_waiters(clients[0], 1);
    restart_masters(2, 5);
    expect_ok(actor_end(thread));
    expect_ok(actor_release(thread, lock, NULL));
}

MastersLaw(redlock, is_in_jeopardy_and_then_lost_when_a_majority_dies)
{
    static struct events events, first;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    hl_acquire_options options = {
        .size = sizeof options, .on_event = count_event, .event_arg = &first};
    expect_ok(hl_lock_acquire_with(lock, &options, ERR));
    wait_stat(clients[0], votes, 5);
    kill_masters(0, 3);
    check(events_wait(&first, HL_EVENT_JEOPARDY, 1, 20000));
    check(events_wait(&first, HL_EVENT_LOST, 1, 20000));
    check_str(first.reason[HL_EVENT_LOST], "expired");
    check(!hl_lock_is_held(lock, NULL));
    check_int(events_told(&first, HL_EVENT_LOST), 1);
    check(events_wait(&events, HL_EVENT_LOST, 1, 20000));
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    restart_masters(0, 3);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(60000), ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

MastersLaw(redlock, is_safe_again_when_the_majority_comes_back_in_time)
{
    static struct events events;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = slow_ms(6000), .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(clients[0], votes, 5);
    for (int i = 0; i < 3; i++)
        redis_server_freeze(masters.server[i]);
    check(events_wait(&events, HL_EVENT_JEOPARDY, 1, 60000));
    for (int i = 0; i < 3; i++)
        redis_server_thaw(masters.server[i]);
    check(events_wait(&events, HL_EVENT_SAFE, 1, 60000));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    expect_masters_with("stock", 0);
}

/* The SETs that they run when they go on are undone behind them. */
MastersLaw(redlock, does_not_wait_for_masters_that_stand_still_and_leaves_nothing_there)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_hasty_redlock(clients);
    redis_server_freeze(masters.server[1]);
    redis_server_freeze(masters.server[3]);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(10000), ERR));
    wait_stat(clients[0], narrow, 1); /* their time is over */
    check_int(stats_of(clients[0]).votes_missing, 2);
    expect_ok(hl_lock_release(lock, ERR));
    redis_server_thaw(masters.server[1]);
    redis_server_thaw(masters.server[3]);
    check(redis_wait_int(masters.server[1], 0, 10000, "EXISTS stock"));
    check(redis_wait_int(masters.server[3], 0, 10000, "EXISTS stock"));
    check(redis_evalsha_calls(masters.server[1]) >= 2); /* it ran, and was undone */
}

/* The hold was at three masters, and the release has the answers of two: the lock is free for all,
 * and so for the owners of this process. */
/* Two masters have not answered yet, and one has lost its key: what they are asked for is no part
 * of the hold, and so of its release. */
MastersLaw(redlock, is_told_as_lost_by_its_release_while_other_masters_are_still_asked)
{
    hl_client **clients = open_masters(CLIENT(.request_timeout_ms = 600000));
    hl_lock *lock =
        new_redlock_of(clients, masters.count, "stock",
                       REDLOCK(.vote_timeout_ms = 7000, .flags = HL_REDLOCK_NO_RESTART_DELAY));
    redis_server_freeze(masters.server[3]);
    redis_server_freeze(masters.server[4]);
    expect_ok(hl_lock_try_acquire(lock, ERR));
    redis_do(masters.server[2], "DEL stock");
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    redis_server_thaw(masters.server[3]);
    redis_server_thaw(masters.server[4]);
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, is_handed_over_while_a_master_that_had_it_stands_still)
{
    hl_client **clients = open_masters(CLIENT(.request_timeout_ms = 600000));
    hl_lock *lock = new_hasty_redlock(clients);
    hl_owner *owner = new_owner(clients[0]), *next = new_owner(clients[0]);
    for (int i = 0; i < 2; i++)
        redis_do(masters.server[i], "SET stock another PX 600000");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .owner = owner), ERR));
    for (int i = 0; i < 2; i++)
        redis_do(masters.server[i], "DEL stock");
    redis_server_freeze(masters.server[4]);
    expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(20000), .owner = next), ERR));
    redis_server_thaw(masters.server[4]);
    expect_story(&told, "done HL_OK");
    expect_ok(hl_lock_release_as(lock, next, ERR));
}

MastersLaw(redlock, tells_which_master_did_not_answer_in_time)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_hasty_redlock(clients);
    hl_error err = HL_ERROR_INIT;
    char expected[128];
    for (int i = 1; i < 4; i++)
        redis_server_freeze(masters.server[i]);
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ECONN);
    snprintf(expected, sizeof expected,
             "only 2 of 5 masters voted (no answer from %s within %d ms)",
             redis_server_socket(masters.server[1]), (int)few_ms());
    check_has(err.text, expected);
    for (int i = 1; i < 4; i++)
        redis_server_thaw(masters.server[i]);
    expect_masters_with("stock", 0);
}

/* Each answer comes later than a master is waited for. */
ProxiedLaw(goes_on_with_a_minority_that_is_too_slow)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_hasty_redlock(clients);
    proxy_delay(masters.proxy[0], PROXY_EVERY, PROXY_DOWN, 2 * few_ms());
    proxy_delay(masters.proxy[4], PROXY_EVERY, PROXY_DOWN, 2 * few_ms());
    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_acquire_for(lock, slow_ms(10000), ERR));
        check(hl_lock_is_held(lock, NULL));
        expect_ok(hl_lock_release(lock, ERR));
    }
    expect_masters_with("stock", 0);
}

/* The request may have run, and its answer is lost with the connection. The undo goes out on the
 * next one, and the server has ended the old one before. */
ProxiedLaw(is_undone_where_the_answer_was_lost_with_its_connection)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_hasty_redlock(clients);
    for (int i = 0; i < 3; i++)
        redis_do(masters.server[i], "SET stock another PX 600000");
    proxy_hold(masters.proxy[4], PROXY_EVERY, PROXY_DOWN);
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_EBUSY);
    proxy_kill_all(masters.proxy[4]);
    proxy_pass(masters.proxy[4]);
    expect_masters_with("stock", 3);
    check_int(masters_with_value("stock", "another"), 3);
}

/* The request itself is late: it reaches the server when its connection has been replaced. */
ProxiedLaw(leaves_nothing_by_a_request_that_comes_late)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_hasty_redlock(clients);
    for (int i = 0; i < 3; i++)
        redis_do(masters.server[i], "SET stock another PX 600000");
    int first = proxy_accepted(masters.proxy[4]);
    proxy_hold(masters.proxy[4], PROXY_EVERY, PROXY_UP);
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_EBUSY);
    int64_t reconnects = (int64_t)stats_of(clients[4]).reconnects;
    redis_kill_clients(masters.server[4], REDIS_NORMAL);
    proxy_release(masters.proxy[4], PROXY_EVERY, PROXY_UP);
    proxy_pass(masters.proxy[4]);
    wait_stat(clients[4], reconnects, reconnects + 1);
    check(proxy_accepted(masters.proxy[4]) > first);
    expect_masters_with("stock", 3);
}

static void masters_up_shim(void)
{
    if (!redis_server_has_clock_shim())
        skip("this build has no clock shim");
    masters_up_with(5, &(struct redis_options){.clock_shim = true});
}

/* Their keys are over at once, and they are asked for new ones. */
Test(redlock, goes_on_with_a_minority_whose_clock_leaps, .init = masters_up_shim,
     .fini = server_down)
{
    static struct events events;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    hl_lock *other = new_redlock(open_masters(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(clients[0], votes, 5);
    redis_server_step_clock(masters.server[0], 3600000);
    redis_server_step_clock(masters.server[2], 3600000);
    expect_outcome(hl_lock_try_acquire(other, ERR), HL_EBUSY);
    wait_stat(clients[0], votes, 7);
    expect_masters_with("stock", 5);
    check(hl_lock_is_held(lock, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    redis_server_step_clock(masters.server[1], -3600000);
    wait_stat(clients[1], renewals, stats_of(clients[1]).renewals + 2);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    expect_masters_with("stock", 0);
}

/* One after the other, each for longer than the lease: never more than one is missing. */
MastersLaw(redlock, is_held_while_all_masters_restart_empty_one_by_one)
{
    static struct events events;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_masters_with("stock", 5);
    for (int i = 0; i < 5; i++) {
        redis_server_kill(masters.server[i]);
        redis_server_wipe(masters.server[i]);
        redis_server_restart(masters.server[i]);
        expect_masters_with("stock", 5);
    }
    check(hl_lock_is_held(lock, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(lock, ERR));
}

MastersLaw(redlock, says_that_two_clients_lead_to_one_server)
{
    hl_client **clients = open_masters(NULL);
    hl_client *again[3] = {clients[0], clients[1], NULL};
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = NULL;
    char url[256], socket[128];
    snprintf(socket, sizeof socket, "%s", redis_server_socket(masters.server[0]));
    snprintf(url, sizeof url, "%s.link", socket);
    check_int(symlink(socket, url), 0);
    snprintf(url, sizeof url, "unix://%s.link", socket);
    again[2] = open_client_at(url, NULL);
    lock = new_redlock_of(again, 3, "stock", NULL);
    redis_server_kill(masters.server[1]);
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ECONN);
    check_has(err.text, "only 1 of 3 masters voted (");
    check_has(err.text, "; two masters are the same server: "); /* the other reason */
    redis_server_restart(masters.server[1]);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), ERR));
    wait_stat(again[0], narrow, 1);
    expect_ok(hl_lock_release(lock, ERR));
}

/* The second address comes to lead to the first server while the lock is held, and the third one
 * to nobody: one key of three is no majority, however often its server is asked for it. The lease
 * is one that no stall of the machine outlasts: then the lock would be lost for that. */
static void three_up(void)
{
    masters_up_with(3, &(struct redis_options){.tcp = true});
    masters_use_proxies();
}

Test(redlock, counts_no_server_twice_whose_address_has_moved, .init = three_up, .fini = server_down)
{
    static struct events events;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = slow_ms(12000), .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(clients[0], votes, 3);
    proxy_refuse(masters.proxy[2], true);
    proxy_kill_all(masters.proxy[2]);
    proxy_lead_to(masters.proxy[1], masters.server[0]);
    proxy_kill_all(masters.proxy[1]);
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
}

/* The same while the third master is there: the hold goes on with two, and the first server is not
 * asked for a second key. */
Test(redlock, is_held_by_those_whose_addresses_stay, .init = three_up, .fini = server_down)
{
    static struct events events;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = slow_ms(6000), .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(clients[0], votes, 3);
    proxy_lead_to(masters.proxy[1], masters.server[0]);
    proxy_kill_all(masters.proxy[1]);
    check(events_wait(&events, HL_EVENT_NARROW, 1, 60000));
    expect_ok(hl_lock_inspect(lock, &info, ERR));
    check(info.locked && info.mine);
    check(hl_lock_is_held(lock, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(lock, ERR));
    check(redis_wait_int(masters.server[0], 0, 10000, "EXISTS stock"));
    check(redis_wait_int(masters.server[2], 0, 10000, "EXISTS stock"));
}

/* Nothing is known of a server when it is asked first: both requests go to one, and set one key. */
MastersLaw(redlock, counts_one_vote_of_a_server_that_it_reaches_by_two_addresses)
{
    hl_client *clients[3];
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = NULL;
    char url[256];
    const char *socket = redis_server_socket(masters.server[0]);
    snprintf(url, sizeof url, "%s.link", socket);
    check_int(symlink(socket, url), 0);
    snprintf(url, sizeof url, "unix://%s.link", socket);
    redis_server_kill(masters.server[1]);
    clients[0] =
        open_client_at(redis_server_url(masters.server[0]), CLIENT(.flags = HL_CLIENT_LAZY));
    clients[1] =
        open_client_at(redis_server_url(masters.server[1]), CLIENT(.flags = HL_CLIENT_LAZY));
    clients[2] = open_client_at(url, CLIENT(.flags = HL_CLIENT_LAZY));
    lock = new_redlock_of(clients, 3, "stock", NULL);
    for (int i = 0; i < 3; i++) { /* also the first time, when no connection is made yet */
        check(hl_lock_try_acquire(lock, &err) < 0);
        check_has(err.text, "only 1 of 3 masters voted (");
        check_has(err.text, "two masters are the same server");
    }
    expect_masters_with("stock", 0);
}

ProxiedLaw(counts_one_vote_of_a_server_whose_later_address_is_there_first)
{
    hl_client *clients[3];
    redis_server_kill(masters.server[1]);
    proxy_hold(masters.proxy[0], PROXY_EVERY, PROXY_UP);
    clients[0] = open_client_at(proxy_url(masters.proxy[0]), CLIENT(.flags = HL_CLIENT_LAZY));
    clients[1] =
        open_client_at(redis_server_url(masters.server[1]), CLIENT(.flags = HL_CLIENT_LAZY));
    clients[2] = open_client_at(redis_server_url(masters.server[0]), NULL);
    hl_lock *lock = new_redlock_of(clients, 3, "stock", NULL);
    struct actor *thread = actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_NO_WAIT));
    check(redis_wait_int(masters.server[0], 1, 10000, "EXISTS stock"));
    proxy_pass(masters.proxy[0]);
    check(actor_end(thread) < 0);
    check_has(actor_error(thread), "only 1 of 3 masters voted (");
    expect_masters_with("stock", 0);
}
