/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Events, statistics and log lines: a program's information beside the results of its calls. */

#include "support/actor.h"
#include "support/kit.h"
#include "support/proxy.h"
#include "support/recorder.h"

#include <semaphore.h>

static struct recorder told = RECORDER_INIT, own = RECORDER_INIT;

Law(events, of_a_hold_go_to_its_own_callback_first)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire_with(
        lock, ACQUIRE(.lease_ms = slow_ms(50), .on_event = record_event, .event_arg = &own), NULL));
    expect_story(&told, "LOST expired");
    expect_story(&own, "LOST expired");
    struct record record = recorder_entry(&told, 0);
    check_str(record.name, "stock");
    check_int(record.validity_ms, 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    close_client(client);
    expect_story(&told, "LOST expired");
}

Law(events, of_a_hold_need_no_callback_of_the_client)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire_with(
        lock, ACQUIRE(.lease_ms = slow_ms(50), .on_event = record_event, .event_arg = &own), NULL));
    expect_story(&own, "LOST expired");
}

Law(events, are_none_for_a_hold_that_is_released)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    for (int i = 0; i < 10; i++) {
        expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 10000), NULL));
        expect_ok(hl_lock_release(lock, NULL));
    }
    close_client(client);
    expect_story(&told, "");
}

TcpLaw(events, tell_of_jeopardy_and_of_the_renewal_that_came_after_all)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(
        proxy_url(proxy), CLIENT(.watchdog_timeout_ms = slow_ms(6000), .request_timeout_ms = 60000,
                                 .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    check(recorder_wait(&told, 1));
    check_int(recorder_entry(&told, 0).kind, HL_EVENT_JEOPARDY);
    int64_t left_ms = recorder_entry(&told, 0).validity_ms;
    check(left_ms > 0 && left_ms <= slow_ms(2000));
    check(hl_lock_is_held(lock, NULL));
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_story(&told, "JEOPARDY, SAFE");
    check(hl_lock_is_held(lock, NULL));
    close_client(client);
    expect_story(&told, "JEOPARDY, SAFE, LOST closed");
    proxy_stop(proxy);
}

TcpLaw(events, tell_of_a_loss_once_and_a_late_reply_takes_nothing_back)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(
        proxy_url(proxy), CLIENT(.watchdog_timeout_ms = slow_ms(6000), .request_timeout_ms = 60000,
                                 .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_story(&told, "JEOPARDY, LOST expired");
    check(!hl_lock_is_held(lock, NULL));
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_client_ping(client, -1, NULL)); /* behind the late replies */
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_story(&told, "JEOPARDY, LOST expired");
    check_int(stats_of(client).losses, 1);
    close_client(client);
    proxy_stop(proxy);
}

/* A hold whose warning runs, and does not end before it is let go on. */
struct warned {
    hl_client *client;
    hl_lock *lock;
    hl_owner *owner;
    sem_t begins, may_end;
};

static void take_long(const hl_event *event, void *arg)
{
    struct warned *warned = arg;
    sem_post(&warned->begins);
    while (sem_wait(&warned->may_end) != 0)
        ;
    record_event(event, &own);
}

static void warned_begin(struct warned *warned)
{
    sem_init(&warned->begins, 0, 0);
    sem_init(&warned->may_end, 0, 0);
    warned->client =
        open_client(CLIENT(.watchdog_timeout_ms = slow_ms(6000), .request_timeout_ms = 60000));
    warned->lock = new_lock(warned->client, "stock");
    warned->owner = new_owner(warned->client);
    expect_ok(hl_lock_acquire_with(
        warned->lock, ACQUIRE(.owner = warned->owner, .on_event = take_long, .event_arg = warned),
        NULL));
    redis_server_freeze(server);
    while (sem_wait(&warned->begins) != 0)
        ;
    redis_server_thaw(server);
}

Law(events, may_wait_for_the_release_of_their_hold)
{
    struct warned warned;
    warned_begin(&warned);
    expect_ok(hl_lock_release_as(warned.lock, warned.owner, NULL));
    check_int(recorder_count(&own), 0);
    sem_post(&warned.may_end);
    expect_story(&own, "JEOPARDY");
    close_client(warned.client);
}

Law(events, have_ended_when_the_completion_of_a_release_says_so)
{
    struct warned warned;
    warned_begin(&warned);
    expect_ok(hl_lock_release_async(warned.lock, warned.owner, record_done, &own));
    expect_free(warned.lock);
    expect_ok(hl_client_ping(warned.client, -1, NULL)); /* it was answered */
    check_int(recorder_count(&own), 0);
    sem_post(&warned.may_end);
    expect_story(&own, "JEOPARDY, done HL_OK");
    close_client(warned.client);
    expect_story(&own, "JEOPARDY, done HL_OK");
}

Law(events, tell_of_a_connection_that_is_lost_and_restored)
{
    hl_client *client =
        open_client(CLIENT(.backoff_min_ms = 1, .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    for (int i = 1; i <= 3; i++) {
        check(redis_kill_clients(server, REDIS_NORMAL) >= 1);
        check(recorder_wait(&told, 2 * i));
    }
    expect_story(&told, "DISCONNECTED, CONNECTED, DISCONNECTED, CONNECTED, DISCONNECTED, "
                        "CONNECTED");
    check(recorder_entry(&told, 0).said[0] != '\0');
    check_str(recorder_entry(&told, 0).name, "");
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check_int(stats_of(client).reconnects, 3);
}

static hl_histogram measured(hl_client *client, hl_measure measure)
{
    hl_histogram histogram = HL_HISTOGRAM_INIT;
    check_int(hl_client_histogram(client, measure, &histogram), HL_OK);
    return histogram;
}

Law(statistics, count_each_thing_once)
{
    hl_client *client =
        open_client(CLIENT(.watchdog_timeout_ms = slow_ms(3000), .backoff_min_ms = 1));
    hl_client *rival = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *its = new_lock(rival, "stock");
    hl_cancel *cancel = new_cancel();
    expect_ok(hl_lock_acquire(its, NULL));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(lock, 20, NULL), HL_ETIMEDOUT);
    hl_cancel_fire(cancel);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 5, .cancel = cancel), NULL),
                   HL_ECANCELED);
    expect_ok(hl_lock_release(its, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    check_int(stats_of(client).holds_now, 1);
    wait_stat(client, renewals, 2);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check_int(stats_of(client).holds_now, 0);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(20)), NULL));
    wait_stat(client, losses, 1);
    check_int(stats_of(client).holds_now, 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    redis_kill_clients(server, REDIS_NORMAL);
    wait_stat(client, reconnects, 1);
    hl_stats stats = stats_of(client);
    check_int(stats.size, sizeof stats);
    check_int(stats.acquires, 3);
    check_int(stats.busy, 1);
    check_int(stats.timeouts, 1);
    check_int(stats.cancels, 1);
    check_int(stats.releases, 2);
    check_int(stats.losses, 1);
    check_int(stats.in_doubt, 0);
    check_int(stats.reconnects, 1);
    check_int(stats.waiters_now, 0);
    check_int(measured(client, HL_MEASURE_WAIT).count, 2); /* outermost ones */
    check_int(measured(client, HL_MEASURE_RENEWAL).count, stats.renewals);
    check(stats.commands > 8 && stats.commands < 200);
    const hl_histogram hold = measured(client, HL_MEASURE_HOLD);
    check_int(hold.count, 2);
    check(hold.max_us >= 30000 && hold.sum_us >= hold.max_us);
    check_int(hl_client_histogram(client, (hl_measure)0, &(hl_histogram)HL_HISTOGRAM_INIT),
              HL_EINVAL);
    check_int(hl_client_histogram(client, HL_MEASURE_HOLD, NULL), HL_EINVAL);
    check_int(hl_client_histogram(NULL, HL_MEASURE_HOLD, &(hl_histogram)HL_HISTOGRAM_INIT),
              HL_EINVAL);
}

TcpLaw(statistics, count_a_release_that_is_not_answered)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(
        proxy_url(proxy), CLIENT(.request_timeout_ms = slow_ms(100), .backoff_min_ms = 1));
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    int64_t before_ms = now_ms();
    expect_outcome(hl_lock_release(lock, &err), HL_EINDOUBT);
    check(now_ms() - before_ms >= 99 && now_ms() - before_ms < slow_ms(8000));
    check(strstr(err.text, "release 'stock': ") != NULL);
    check(!hl_lock_is_held(lock, NULL));
    check_int(stats_of(client).in_doubt, 1);
    proxy_pass(proxy);
    expect_free(lock); /* repeated behind */
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    close_client(client);
    proxy_stop(proxy);
}

Law(log, tells_of_connections_up_to_its_level)
{
    static struct recorder quiet = RECORDER_INIT;
    hl_client *client = open_client(
        CLIENT(.log_level = HL_LOG_DEBUG, .backoff_min_ms = 1, .on_log = record_log, .arg = &told));
    hl_client *silent = open_client(CLIENT(.log_level = HL_LOG_ERROR, .backoff_min_ms = 1,
                                           .on_log = record_log, .arg = &quiet));
    check(recorder_wait_says(&told, "connected to "));
    check_int(recorder_entry(&told, 0).code, HL_LOG_INFO);
    redis_kill_clients(server, REDIS_NORMAL);
    check(recorder_wait_says(&told, "connection lost: "));
    wait_stat(client, reconnects, 1);
    wait_stat(silent, reconnects, 1);
    close_client(silent);
    check_int(recorder_count(&quiet), 0);
}

static void server_up_secret(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true, .password = "TopSecret"});
}

Test(log, never_shows_a_password, .init = server_up_secret, .fini = server_down)
{
    char url[128];
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    hl_client_options options =
        *CLIENT(.log_level = HL_LOG_DEBUG, .on_log = record_log, .on_event = record_event,
                .arg = &told, .backoff_min_ms = 1);
    snprintf(url, sizeof url, "redis://:TopSecretWrong@127.0.0.1:%d", redis_server_port(server));
    expect_outcome(hl_client_open(url, &options, &client, &err), HL_EDENIED);
    check(strstr(err.text, "TopSecret") == NULL && err.text[0] != '\0');
    expect_outcome(hl_client_open(redis_server_url(server), &options, &client, &err), HL_EDENIED);
    check(strstr(err.text, "NOAUTH") != NULL);
    options.username = "nobody";
    options.password = "TopSecret";
    expect_outcome(hl_client_open(redis_server_url(server), &options, &client, &err), HL_EDENIED);
    check(strstr(err.text, "TopSecret") == NULL);
    options.username = NULL;
    client = open_client_at(redis_server_url(server), &options);
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_kill_clients(server, REDIS_NORMAL);
    wait_stat(client, reconnects, 1);
    expect_ok(hl_lock_release(lock, NULL));
    close_client(client);
    check(recorder_count(&told) > 3);
    check(!recorder_says(&told, "TopSecret"));
}
