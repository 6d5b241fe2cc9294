/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Waiting for permits: in which order, what wakes, and what a wait that is over leaves behind. */

#include "settled.h"
#include "support/proxy.h"
#include "support/recorder.h"
#include "support/semaphore_support.h"

enum { WAITERS = 8 };

/* One client gives, another waits, and polls too seldom for it to matter. */
static hl_client *giver, *waiter;
static hl_semaphore *given, *wanted;
static struct actor *actor[WAITERS];
static struct wait_call call[WAITERS];
static atomic_int served;

static void begin_at(const char *url, int64_t poll_ms)
{
    giver = open_client(NULL);
    waiter = open_client_at(
        url, CLIENT(.poll_ms = poll_ms, .backoff_min_ms = 5, .request_timeout_ms = 60000));
    given = new_semaphore(giver, "pool");
    wanted = new_semaphore(waiter, "pool");
    expect_ok(hl_semaphore_try_set_permits(given, 0, 0, NULL));
    expect_ok(hl_semaphore_release(given, 1, NULL)); /* from now on the server knows the scripts */
    expect_ok(hl_semaphore_acquire(given, 1, NULL));
}

static void begin(void)
{
    begin_at(redis_server_url(server), slow_ms(90000));
}

/* The next one waits for so many, behind those before it, and was answered that it has to. */
static void wait_for(int i, hl_semaphore *semaphore, int64_t permits)
{
    actor[i] = actor_start();
    call[i].served = &served;
    begin_take(actor[i], &call[i], semaphore, permits);
    expect_waiters(waiter, i + 1);
}

static void wait_subscribed(void)
{
    check(redis_wait_subscribers(server, SEMAPHORE_CHANNEL("pool"), 1, 5000));
}

Law(semaphore, serves_the_waiters_of_a_process_in_the_order_of_their_arrival)
{
    begin();
    for (int i = 0; i < WAITERS; i++)
        wait_for(i, wanted, 1);
    for (int i = 0; i < WAITERS; i++) {
        expect_ok(hl_semaphore_release(given, 1, NULL));
        expect_ok(end_call(actor[i], &call[i]));
        check_int(call[i].place, i + 1);
    }
    check_int(available_of(given), 0);
}

Law(semaphore, lets_no_small_need_overtake_a_big_one_that_came_before)
{
    begin();
    wait_for(0, wanted, 5);
    for (int i = 1; i < 4; i++)
        wait_for(i, wanted, 1);
    expect_ok(hl_semaphore_release(given, 4, NULL));
    expect_outcome(hl_semaphore_try_acquire(wanted, 1, NULL), HL_EBUSY); /* nor a try */
    check_int(atomic_load(&served), 0);
    check_int(available_of(given), 4);
    expect_ok(hl_semaphore_release(given, 2, NULL)); /* for it and the next one */
    expect_ok(end_call(actor[0], &call[0]));
    expect_ok(end_call(actor[1], &call[1]));
    check(!actor_is_done(actor[2]));
    expect_ok(hl_semaphore_release(given, 2, NULL));
    expect_ok(end_call(actor[2], &call[2]));
    expect_ok(end_call(actor[3], &call[3]));
    check_int(available_of(given), 0);
}

Law(semaphore, serves_all_fitting_waiters_by_one_request_after_a_release)
{
    begin();
    for (int i = 0; i < WAITERS; i++)
        wait_for(i, wanted, i + 1);
    expect_settled_wait(wanted);
    int64_t before = redis_evalsha_calls(server);
    expect_ok(hl_semaphore_release(given, WAITERS * (WAITERS + 1) / 2, NULL));
    for (int i = 0; i < WAITERS; i++)
        expect_ok(end_call(actor[i], &call[i]));
    check_int(redis_evalsha_calls(server) - before, 2); /* and the release */
    check_int(available_of(given), 0);
}

/* The answer that serves the first says of the next that it has to wait. */
Law(semaphore, asks_once_after_each_release_however_many_wait)
{
    begin();
    for (int i = 0; i < WAITERS; i++)
        wait_for(i, wanted, 1);
    expect_settled_wait(wanted);
    int64_t before = redis_evalsha_calls(server);
    for (int i = 0; i < WAITERS; i++) {
        expect_ok(hl_semaphore_release(given, 1, NULL));
        expect_ok(end_call(actor[i], &call[i]));
        expect_ok(hl_client_ping(waiter, -1, NULL));
    }
    check_int(redis_evalsha_calls(server) - before, 2 * WAITERS);
}

/* Two fit and the third does not, nor a try: that is over with the same answer. */
Law(semaphore, ends_a_try_by_the_answer_that_serves_the_waiters_before_it)
{
    begin();
    static struct recorder told = RECORDER_INIT;
    wait_for(0, wanted, 2);
    wait_for(1, wanted, 2);
    wait_subscribed();
    redis_do(server, "SET pool 3"); /* without a message */
    expect_ok(
        hl_semaphore_acquire_async(wanted, 2, WAIT(.wait_ms = HL_NO_WAIT), record_done, &told));
    expect_story(&told, "done HL_EBUSY");
    expect_ok(end_call(actor[0], &call[0]));
    check(!actor_is_done(actor[1]));
    expect_ok(hl_semaphore_release(given, 1, NULL));
    expect_ok(end_call(actor[1], &call[1]));
    check_int(available_of(given), 0);
}

Law(semaphore, wakes_waiters_of_several_clients_by_one_release)
{
    begin();
    hl_client *other = open_client(CLIENT(.poll_ms = slow_ms(90000)));
    hl_semaphore *also = new_semaphore(other, "pool");
    struct actor *elsewhere = actor_start();
    struct wait_call there = {.permits = 0};
    wait_for(0, wanted, 2);
    wait_for(1, wanted, 1);
    begin_take(elsewhere, &there, also, 3);
    expect_waiters(other, 1);
    check(redis_wait_subscribers(server, SEMAPHORE_CHANNEL("pool"), 2, 5000));
    expect_ok(hl_semaphore_release(given, 6, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    expect_ok(end_call(actor[1], &call[1]));
    expect_ok(end_call(elsewhere, &there));
    check_int(available_of(given), 0);
}

/* All calls that make permits: a release, a bigger semaphore, a new one; and Java's, which are as
 * ours. */
Law(semaphore, wakes_its_waiters_whatever_makes_permits)
{
    begin();
    wait_for(0, wanted, 2);
    wait_subscribed();
    expect_ok(hl_semaphore_release_if_exists(given, 2, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    begin_take(actor[0], &call[0], wanted, 2);
    expect_waiters(waiter, 1);
    expect_ok(hl_semaphore_add_permits(given, 2, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    begin_take(actor[0], &call[0], wanted, 2);
    expect_waiters(waiter, 1);
    redis_do(server, "DEL pool");
    expect_ok(hl_semaphore_try_set_permits(given, 2, 0, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    begin_take(actor[0], &call[0], wanted, 2);
    expect_waiters(waiter, 1);
    redis_do(server, "INCRBY pool 2");
    redis_do(server, "PUBLISH " SEMAPHORE_CHANNEL("pool") " 2");
    expect_ok(end_call(actor[0], &call[0]));
    check_int(available_of(given), 0);
}

Law(semaphore, ends_a_wait_with_its_time_and_never_earlier)
{
    begin();
    static const int64_t times_ms[] = {30, 200};
    for (int i = 0; i < 2; i++) {
        int64_t before_ns = now_ns();
        expect_outcome(hl_semaphore_acquire_for(wanted, 1, times_ms[i], NULL), HL_ETIMEDOUT);
        check(now_ns() - before_ns >= times_ms[i] * 1000000);
    }
    check_int(stats_of(waiter).timeouts, 2);
    check_int(stats_of(waiter).waiters_now, 0);
    check_int(available_of(given), 0);
    check_int(notes_of(waiter), 0);
}

/* The one in front is gone: what was too little for it is enough for those behind. */
Law(semaphore, asks_for_the_waiters_behind_when_the_first_has_left)
{
    begin();
    call[0].options = *WAIT(.wait_ms = slow_ms(2000));
    wait_for(0, wanted, 5);
    wait_for(1, wanted, 2);
    expect_ok(hl_semaphore_release(given, 2, NULL));
    expect_outcome(end_call(actor[0], &call[0]), HL_ETIMEDOUT);
    expect_ok(end_call(actor[1], &call[1]));
    check(call[1].took_ms < slow_ms(20000)); /* the poll would take 90 s */
    check_int(available_of(given), 0);
}

Law(semaphore, ends_a_wait_that_is_cancelled_and_leaves_nothing_behind)
{
    begin();
    hl_cancel *cancel = new_cancel();
    call[0].options = *WAIT(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel);
    wait_for(0, wanted, 1);
    wait_for(1, wanted, 1);
    hl_cancel_fire(cancel);
    expect_outcome(end_call(actor[0], &call[0]), HL_ECANCELED);
    expect_ok(hl_semaphore_release(given, 1, NULL));
    expect_ok(end_call(actor[1], &call[1]));
    check_int(available_of(given), 0);
    check_int(stats_of(waiter).cancels, 1);
}

Law(semaphore, ends_its_waits_when_the_client_is_closed)
{
    begin();
    static struct recorder told = RECORDER_INIT;
    wait_for(0, wanted, 1);
    expect_ok(hl_semaphore_acquire_async(wanted, 1, WAIT(.wait_ms = HL_WAIT_FOREVER), record_done,
                                         &told));
    expect_waiters(waiter, 2);
    close_client(waiter);
    expect_outcome(end_call(actor[0], &call[0]), HL_ECANCELED);
    expect_story(&told, "done HL_ECANCELED");
    expect_ok(hl_semaphore_release(given, 1, NULL));
    check_int(available_of(given), 1);
}

Law(semaphore, polls_when_no_message_tells_of_permits)
{
    begin_at(redis_server_url(server), 100);
    wait_for(0, wanted, 3);
    wait_subscribed();
    redis_do(server, "SET pool 3"); /* nothing is published */
    expect_ok(end_call(actor[0], &call[0]));
    check_int(available_of(given), 0);
}

/* The poll may be answered before the proxy has read the message. */
static bool has_dropped_one(void *proxy)
{
    return proxy_dropped(proxy) == 1;
}

TcpLaw(semaphore, polls_after_a_message_was_lost)
{
    if (redis_server_has_tls(server))
        skip("a proxy cannot tell one message of TLS from another");
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), 100);
    wait_for(0, wanted, 1);
    wait_subscribed();
    proxy_drop_messages(proxy, "redisson_sc", 1);
    expect_ok(hl_semaphore_release(given, 1, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    check(wait_until(has_dropped_one, proxy, 5000));
    proxy_stop(proxy);
}

/* Given between the busy answer and the subscription: only the try behind the confirmation can find
 * it, for no message comes and the poll is far. */
TcpLaw(semaphore, asks_again_when_its_subscription_is_confirmed)
{
    enum { PUBSUB_LINK = 1 };
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), slow_ms(60000));
    proxy_hold(proxy, PUBSUB_LINK, PROXY_UP);
    wait_for(0, wanted, 1);
    check(redis_wait_int(server, 1, 5000, "EXISTS pool"));
    while (proxy_kept(proxy, PUBSUB_LINK, PROXY_UP) == 0)
        deadline_nap();
    expect_ok(hl_semaphore_release(given, 1, NULL));
    proxy_release(proxy, PUBSUB_LINK, PROXY_UP);
    expect_ok(end_call(actor[0], &call[0]));
    check(call[0].took_ms < slow_ms(30000));
    proxy_stop(proxy);
}

/* Permits that were released while the link was down are found after the reconnect, without any
 * message. */
TcpLaw(semaphore, asks_again_after_a_reconnect)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), slow_ms(60000));
    wait_for(0, wanted, 2);
    wait_for(1, wanted, 1);
    wait_subscribed();
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    check(redis_wait_subscribers(server, SEMAPHORE_CHANNEL("pool"), 0, 5000));
    expect_ok(hl_semaphore_release(given, 3, NULL));
    proxy_refuse(proxy, false);
    expect_ok(end_call(actor[0], &call[0]));
    expect_ok(end_call(actor[1], &call[1]));
    check_int(available_of(given), 0);
    proxy_stop(proxy);
}

Law(semaphore, serves_many_async_calls_of_one_thread)
{
    begin();
    static struct recorder told = RECORDER_INIT;
    for (int i = 0; i < WAITERS; i++)
        expect_ok(hl_semaphore_acquire_async(wanted, 1, WAIT(.wait_ms = HL_WAIT_FOREVER),
                                             record_done, &told));
    expect_waiters(waiter, WAITERS);
    expect_ok(hl_semaphore_release(given, WAITERS - 1, NULL));
    check(recorder_wait(&told, WAITERS - 1));
    expect_waiters(waiter, 1);
    expect_ok(hl_semaphore_release(given, 1, NULL));
    check(recorder_wait(&told, WAITERS));
    for (int i = 0; i < WAITERS; i++)
        expect_outcome(recorder_entry(&told, i).code, HL_OK);
}

/* More than one command asks for: those behind come with the next one. */
Law(semaphore, serves_more_waiters_than_one_command_asks_for)
{
    enum { MANY = 150 };
    begin();
    static struct recorder told = RECORDER_INIT;
    for (int i = 0; i < MANY; i++)
        expect_ok(hl_semaphore_acquire_async(wanted, 2, WAIT(.wait_ms = HL_WAIT_FOREVER),
                                             record_done, &told));
    expect_waiters(waiter, MANY);
    expect_settled_wait(wanted);
    int64_t before = redis_evalsha_calls(server);
    expect_ok(hl_semaphore_release(given, 2 * MANY + 1, NULL));
    check(recorder_wait(&told, MANY));
    check_int(redis_evalsha_calls(server) - before, 4); /* and the release */
    check_int(available_of(given), 1);
    check_int(stats_of(waiter).waiters_now, 0);
}

/* The needs of all are counted in 32 bits: a waiter that does not fit comes with the next command.
 */
Law(semaphore, serves_needs_that_together_are_more_than_32_bits_hold)
{
    begin();
    static struct recorder told = RECORDER_INIT;
    for (int i = 0; i < 5; i++)
        expect_ok(hl_semaphore_acquire_async(wanted, 2147483647, WAIT(.wait_ms = HL_WAIT_FOREVER),
                                             record_done, &told));
    expect_waiters(waiter, 5);
    redis_do(server, "SET pool 10737418236"); /* for all five, and one */
    redis_do(server, "PUBLISH " SEMAPHORE_CHANNEL("pool") " 1");
    check(recorder_wait(&told, 5));
    check_int(available_of(given), 1);
}

/* Those in front need more than there is and leave; the try behind them leaves with its answer;
 * and who is behind both is asked for, and does not wait for the next poll. */
SingleLaw(semaphore, with_enough_for_the_rest_is_asked_when_a_try_has_gone)
{
    hl_cancel *cancel = new_cancel();
    begin();
    expect_ok(hl_semaphore_release(given, 1, NULL));
    call[0].options = call[1].options = *WAIT(.wait_ms = -1, .cancel = cancel);
    wait_for(0, wanted, 9);
    expect_settled_wait(wanted);
    redis_server_freeze(server);
    wait_for(1, wanted, 9); /* its request is under way when the next two come */
    call[2].options = *WAIT(.wait_ms = HL_NO_WAIT);
    wait_for(2, wanted, 5);
    call[3].options = *WAIT(.wait_ms = -1);
    wait_for(3, wanted, 1);
    hl_cancel_fire(cancel);
    expect_outcome(end_call(actor[0], &call[0]), HL_ECANCELED);
    expect_outcome(end_call(actor[1], &call[1]), HL_ECANCELED);
    redis_server_thaw(server);
    expect_outcome(end_call(actor[2], &call[2]), HL_EBUSY);
    expect_ok(end_call(actor[3], &call[3]));
}
