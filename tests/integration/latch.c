/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The latch: closing, counting down, opening; its key in Redis and its messages to Java; its
 * waiters and their wake-ups. */

#include "support/ear.h"
#include "support/proxy.h"
#include "support/recorder.h"
#include "support/semaphore_support.h"

enum { WAITERS = 5 };

/* One client counts, another waits, and polls too seldom for it to matter. */
static hl_client *counter, *waiter;
static hl_latch *counted, *awaited;
static struct actor *actor[WAITERS];
static struct wait_call call[WAITERS];
static struct recorder told = RECORDER_INIT;

static void begin_at(const char *url, int64_t poll_ms)
{
    counter = open_client(NULL);
    waiter = open_client_at(
        url, CLIENT(.poll_ms = poll_ms, .backoff_min_ms = 5, .request_timeout_ms = 60000));
    counted = new_latch(counter, "gate");
    awaited = new_latch(waiter, "gate");
}

static void begin(void)
{
    begin_at(redis_server_url(server), slow_ms(90000));
}

/* One more waits, and has subscribed. */
static void await_as(int i)
{
    actor[i] = actor_start();
    begin_await(actor[i], &call[i], awaited);
    expect_waiters(waiter, i + 1);
    check(redis_wait_subscribers(server, LATCH_CHANNEL("gate"), 1, 5000));
}

Law(latch, opens_when_it_has_been_counted_down)
{
    begin();
    check_int(count_of(counted), 0);
    expect_ok(hl_latch_await(awaited, NULL)); /* an open latch needs no wait */
    expect_ok(hl_latch_try_set_count(counted, 3, NULL));
    check_str(redis_str(server, "GET gate"), "3");
    check_int(redis_int(server, "PTTL gate"), -1);
    expect_outcome(hl_latch_try_set_count(counted, 5, NULL), HL_EEXIST);
    for (int left = 2; left >= 0; left--) {
        expect_outcome(hl_latch_await_for(awaited, HL_NO_WAIT, NULL), HL_EBUSY);
        expect_ok(hl_latch_count_down(left % 2 ? counted : awaited, NULL));
        check_int(count_of(awaited), left);
    }
    expect_ok(hl_latch_await(awaited, NULL));
    check_int(redis_int(server, "EXISTS gate"), 0);
}

Law(latch, wakes_all_its_waiters_in_all_clients_by_the_last_count)
{
    begin();
    hl_client *other = open_client(CLIENT(.poll_ms = slow_ms(90000)));
    hl_latch *also = new_latch(other, "gate");
    struct actor *elsewhere = actor_start();
    struct wait_call there = {.permits = 0};
    expect_ok(hl_latch_try_set_count(counted, 2, NULL));
    for (int i = 0; i < WAITERS; i++)
        await_as(i);
    begin_await(elsewhere, &there, also);
    check(redis_wait_subscribers(server, LATCH_CHANNEL("gate"), 2, 5000));
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(hl_client_ping(waiter, -1, NULL));
    check_int(stats_of(waiter).waiters_now, WAITERS);
    expect_ok(hl_latch_count_down(counted, NULL));
    for (int i = 0; i < WAITERS; i++)
        expect_ok(end_call(actor[i], &call[i]));
    expect_ok(end_call(elsewhere, &there));
}

Law(latch, lets_late_callers_through)
{
    begin();
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    await_as(0);
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    expect_ok(hl_latch_await(awaited, NULL));
    expect_ok(hl_latch_await_for(counted, HL_NO_WAIT, NULL));
    expect_ok(hl_latch_await(new_latch(open_client(NULL), "gate"), NULL));
}

Law(latch, stays_open_when_it_is_counted_below_zero_and_may_be_closed_again)
{
    begin();
    expect_ok(hl_latch_count_down(counted, NULL));
    check_int(redis_int(server, "EXISTS gate"), 0);
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(hl_latch_count_down(counted, NULL));
    check_int(count_of(counted), 0);
    check_int(redis_int(server, "EXISTS gate"), 0);
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    await_as(0);
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(end_call(actor[0], &call[0]));
}

Law(latch, wakes_its_waiters_when_it_is_deleted)
{
    begin();
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_latch_delete(counted, &err), HL_ENOENT);
    check_str(err.text, "delete 'gate': the latch is open");
    expect_ok(hl_latch_try_set_count(counted, 9, NULL));
    await_as(0);
    await_as(1);
    expect_ok(hl_latch_delete(counted, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    expect_ok(end_call(actor[1], &call[1]));
    check_int(redis_int(server, "EXISTS gate"), 0);
}

/* Redisson's own delete publishes `1`, by which its waiters stay asleep; ours look, and are awake.
 */
Law(latch, wakes_its_waiters_when_redisson_deletes_it)
{
    begin();
    expect_ok(hl_latch_try_set_count(counted, 2, NULL));
    await_as(0);
    redis_do(server, "DEL gate");
    redis_do(server, "PUBLISH " LATCH_CHANNEL("gate") " 1");
    expect_ok(end_call(actor[0], &call[0]));
}

Law(latch, tells_java_zero_when_it_opens_and_one_when_it_closes)
{
    begin();
    redisContext *java = ear_open(LATCH_CHANNEL("gate"));
    expect_ok(hl_latch_try_set_count(counted, 2, NULL));
    expect_outcome(hl_latch_try_set_count(counted, 2, NULL), HL_EEXIST);
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(hl_latch_try_set_count(counted, 2, NULL));
    expect_ok(hl_latch_delete(counted, NULL));
    redis_do(server, "PUBLISH " LATCH_CHANNEL("gate") " end");
    static const char *const says[] = {"1", "0", "1", "0", "end"};
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++)
        ear_check(java, LATCH_CHANNEL("gate"), says[i]);
    redisFree(java);
}

Law(latch, ends_a_wait_with_its_time_or_its_cancel)
{
    begin();
    hl_error err = HL_ERROR_INIT;
    hl_cancel *cancel = new_cancel();
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    expect_outcome(hl_latch_await_with(awaited, WAIT(.wait_ms = HL_NO_WAIT), &err), HL_EBUSY);
    check_str(err.text, "await 'gate': the latch is closed");
    int64_t before_ns = now_ns();
    expect_outcome(hl_latch_await_for(awaited, slow_ms(2000), &err), HL_ETIMEDOUT);
    check(now_ns() - before_ns >= slow_ms(2000) * 1000000);
    check_str(err.text, "await 'gate': the wait time is over; the latch is closed");
    check(err.busy.locked && err.busy.available == 1);
    call[0].options = *WAIT(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel);
    await_as(0);
    await_as(1);
    hl_cancel_fire(cancel);
    expect_outcome(end_call(actor[0], &call[0]), HL_ECANCELED);
    check(!actor_is_done(actor[1]));
    close_client(waiter);
    expect_outcome(end_call(actor[1], &call[1]), HL_ECANCELED);
    check_int(count_of(counted), 1);
    check_int(redis_int(server, "DBSIZE"), 2); /* the latch, and the note of who closed it */
}

Law(latch, refuses_options_of_a_wait_that_are_bad)
{
    begin();
    expect_ok(hl_latch_try_set_count(counted, 3, NULL));
    const hl_wait_options *bad[] = {WAIT(.wait_ms = -2), WAIT(.wait_ms = INT64_MAX)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_outcome(hl_latch_await_with(awaited, bad[i], NULL), HL_EINVAL);
        expect_outcome(hl_latch_await_async(awaited, bad[i], record_done, &told), HL_EINVAL);
    }
    check_int(count_of(counted), 3);
}

Law(latch, has_an_async_twin_of_every_call)
{
    begin();
    expect_ok(hl_latch_try_set_count_async(awaited, 2, record_done, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_latch_await_async(awaited, WAIT(.wait_ms = 0), record_done, &told));
    check(recorder_wait(&told, 2));
    expect_ok(hl_latch_await_async(awaited, WAIT(.wait_ms = HL_WAIT_FOREVER), record_done, &told));
    expect_ok(hl_latch_count_down_async(awaited, record_done, &told));
    check(recorder_wait(&told, 3));
    expect_ok(hl_latch_count_async(awaited, record_count, &told));
    check(recorder_wait_says(&told, "count 1"));
    expect_ok(hl_latch_delete_async(awaited, record_done, &told));
    check(recorder_wait(&told, 6));
    expect_ok(hl_latch_delete_async(awaited, record_done, &told));
    check(recorder_wait(&told, 7));
    expect_story(&told, "done HL_OK, done HL_EBUSY, done HL_OK, count 1, done HL_OK, done HL_OK, "
                        "done HL_ENOENT");
}

Law(latch, refuses_what_makes_no_sense)
{
    begin();
    hl_latch *none = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_latch_new(counter, "a{b}", &none, &err), HL_EINVAL);
    check_str(err.text, "a latch's name has no \"{\"");
    expect_outcome(hl_latch_new(counter, "a}b", &none, NULL), HL_EINVAL);
    expect_outcome(hl_latch_new(counter, "", &none, NULL), HL_EINVAL);
    expect_outcome(hl_latch_new(counter, NULL, &none, NULL), HL_EINVAL);
    expect_outcome(hl_latch_new(NULL, "gate", &none, NULL), HL_EINVAL);
    expect_outcome(hl_latch_new(counter, "gate", NULL, NULL), HL_EINVAL);
    check(none == NULL);
    static const int64_t bad[] = {0, -1, INT64_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_outcome(hl_latch_try_set_count(counted, bad[i], NULL), HL_EINVAL);
        expect_outcome(hl_latch_try_set_count_async(counted, bad[i], record_done, &told),
                       HL_EINVAL);
    }
    expect_outcome(hl_latch_count(counted, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_latch_count_async(counted, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_latch_await_async(counted, NULL, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_latch_count_down(NULL, NULL), HL_EINVAL);
    hl_latch_free(NULL);
    check(hl_latch_name(NULL, NULL) == NULL);
    check_str(hl_latch_name(counted, NULL), "gate");
    check_int(redis_int(server, "DBSIZE"), 0);
    close_client(counter);
    expect_outcome(hl_latch_await(counted, NULL), HL_ECLOSED);
    expect_outcome(hl_latch_count_down(counted, NULL), HL_ECLOSED);
}

Law(latch, refuses_a_key_of_another_type)
{
    begin();
    int64_t count;
    expect_ok(hl_lock_acquire(new_lock(counter, "gate"), NULL));
    expect_outcome(hl_latch_await(awaited, NULL), HL_ESERVER);
    expect_outcome(hl_latch_count_down(awaited, NULL), HL_ESERVER);
    expect_outcome(hl_latch_count(awaited, &count, NULL), HL_ESERVER);
    expect_outcome(hl_latch_delete(awaited, NULL), HL_ESERVER); /* a lock is not opened by this */
    expect_outcome(hl_latch_try_set_count(awaited, 1, NULL), HL_EEXIST);
    check_int(redis_int(server, "HLEN gate"), 1);
}

Law(latch, may_count_from_as_much_as_java_does)
{
    begin();
    expect_ok(hl_latch_try_set_count(counted, INT64_MAX, NULL));
    check_str(redis_str(server, "GET gate"), "9223372036854775807");
    expect_ok(hl_latch_count_down(counted, NULL));
    check_int(count_of(counted), INT64_MAX - 1);
}

Law(latch, is_polled_when_no_message_tells_of_its_opening)
{
    begin_at(redis_server_url(server), 100);
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    await_as(0);
    redis_do(server, "DEL gate"); /* nothing is published */
    expect_ok(end_call(actor[0], &call[0]));
}

/* The poll may be answered before the proxy has read the message. */
static bool has_dropped_one(void *proxy)
{
    return proxy_dropped(proxy) == 1;
}

TcpLaw(latch, is_polled_after_a_message_was_lost)
{
    if (redis_server_has_tls(server))
        skip("a proxy cannot tell one message of TLS from another");
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), 100);
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    await_as(0);
    proxy_drop_messages(proxy, "redisson_countdownlatch", 1);
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(end_call(actor[0], &call[0]));
    check(wait_until(has_dropped_one, proxy, 5000));
    proxy_stop(proxy);
}

TcpLaw(latch, is_looked_at_again_when_the_subscription_is_confirmed)
{
    enum { PUBSUB_LINK = 1 };
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), slow_ms(60000));
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    proxy_hold(proxy, PUBSUB_LINK, PROXY_UP);
    actor[0] = actor_start();
    begin_await(actor[0], &call[0], awaited);
    while (proxy_kept(proxy, PUBSUB_LINK, PROXY_UP) == 0)
        deadline_nap();
    expect_ok(hl_latch_count_down(counted, NULL));
    proxy_release(proxy, PUBSUB_LINK, PROXY_UP);
    expect_ok(end_call(actor[0], &call[0]));
    check(call[0].took_ms < slow_ms(30000));
    proxy_stop(proxy);
}

TcpLaw(latch, is_looked_at_again_after_a_reconnect)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), slow_ms(60000));
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    await_as(0);
    await_as(1);
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    check(redis_wait_subscribers(server, LATCH_CHANNEL("gate"), 0, 5000));
    expect_ok(hl_latch_count_down(counted, NULL));
    proxy_refuse(proxy, false);
    expect_ok(end_call(actor[0], &call[0]));
    expect_ok(end_call(actor[1], &call[1]));
    proxy_stop(proxy);
}

/* The answer on its way says that the latch was open; a caller that comes now finds it closed. */
TcpLaw(latch, lets_no_caller_through_by_an_answer_from_before_its_call)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), slow_ms(60000));
    expect_ok(hl_latch_await(awaited, NULL)); /* the script is loaded */
    proxy_hold(proxy, 0, PROXY_DOWN);
    actor[0] = actor_start();
    begin_await(actor[0], &call[0], awaited);
    while (proxy_kept(proxy, 0, PROXY_DOWN) == 0)
        deadline_nap();
    expect_ok(hl_latch_try_set_count(counted, 1, NULL));
    actor[1] = actor_start();
    begin_await(actor[1], &call[1], awaited);
    expect_waiters(waiter, 2);
    proxy_release(proxy, 0, PROXY_DOWN);
    expect_ok(end_call(actor[0], &call[0]));
    check(redis_wait_subscribers(server, LATCH_CHANNEL("gate"), 1, 5000));
    check(!actor_is_done(actor[1]));
    expect_ok(hl_latch_count_down(counted, NULL));
    expect_ok(end_call(actor[1], &call[1]));
    proxy_stop(proxy);
}
