/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A thread that loses its core between its decision to send a request and the sending: the linker
 * puts a stop in front of hli_link_send() for it.
 */
#include "integration/two_links.h"
#include "lease/calls/client.h"
#include "stop_before_sending.h"
#include "support/actor.h"

#define WRITE(text)                                                                                \
    (&(hl_fenced_write){.size = sizeof(hl_fenced_write),                                           \
                        .key = "data",                                                             \
                        .value = (text),                                                           \
                        .value_length = strlen(text)})

static struct recorder got = RECORDER_INIT, next_got = RECORDER_INIT, wrote = RECORDER_INIT;
static struct actor *second;
static hl_client *next;
static hl_lock *next_lock;
static hl_owner *next_owner;

static void job_wait_too(void *arg)
{
    (void)arg;
    is_to_stop = true;
    expect_ok(hl_lock_acquire_for(lock, 60000, NULL));
    expect_ok(hl_lock_release(lock, NULL));
}

static void go_on(void)
{
    may_go_on = true;
    check(wait_until(is_set, &has_sent, 10000));
}

/* The waiter's first wait is granted, and the next process stands behind it in the queue. A second
 * thread of the waiter has decided to ask for that same field, and not sent it. */
static void begin(void)
{
    contention_begin(60000, 60000);
    expect_ok(hl_lock_set_and_release(held, NULL, WRITE("first"), NULL)); /* a script more */
    expect_ok(hl_lock_acquire(held, NULL));
    next = open_client(CLIENT(.poll_ms = 60000));
    next_lock = new_lock(next, "stock");
    next_owner = new_owner(next);
    wait_async(owner, &got, ACQUIRE());
    expect_settled();
    check(redis_wait_subscribers(server, mailbox_of(next), 1, 10000));
    expect_ok(hl_lock_acquire_async(next_lock,
                                    ACQUIRE(.owner = next_owner, .wait_ms = HL_WAIT_FOREVER),
                                    record_done, &next_got));
    expect_in_queue(2);
    second = actor_start();
    actor_begin(second, job_wait_too, NULL);
    check(wait_until(is_set, &has_stopped, 10000));
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&got, "done HL_OK");
}

TcpLaw(schedules_sending, a_request_of_a_tenure_that_is_over_is_not_sent)
{
    begin();
    char first[64];
    snprintf(first, sizeof first, "%s", field_of(lock));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_story(&next_got, "done HL_OK");
    expect_in_queue(1); /* the second thread's, under a field of its own */
    go_on();
    expect_ok(hl_client_ping(waiter.client, -1, NULL)); /* what was sent has run */
    expect_in_queue(1);
    check_str(redis_str(server, "ZSCORE hirelock_queue:{stock} %s", first), "(nil)");
    expect_ok(hl_lock_release_as(next_lock, next_owner, NULL));
    actor_await(second);
    expect_free(lock);
    contention_end();
}

/* The first one's release has run, and its answer is lost: it is repeated, behind another write. */
TcpLaw(schedules_sending, a_release_that_is_repeated_writes_nothing_over_what_came_behind_it)
{
    begin();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    expect_ok(hl_lock_set_and_release_async(lock, owner, WRITE("older"), record_done, &wrote));
    go_on();
    expect_story(&next_got, "done HL_OK");
    check_str(redis_str(server, "GET data"), "older");
    expect_ok(hl_lock_acquire_async(new_lock(waiter.client, "behind"), ACQUIRE(.owner = other),
                                    record_done, &got));
    check(redis_wait_int(server, 1, 10000, "EXISTS behind"));
    expect_ok(hl_lock_set_and_release(next_lock, next_owner, WRITE("newer"), NULL));
    check_str(redis_str(server, "GET data"), "newer");
    proxy_kill_all(waiter.proxy);
    proxy_pass(waiter.proxy);
    expect_story(&wrote, "done HL_EINDOUBT");
    actor_await(second);
    check_str(redis_str(server, "GET data"), "newer");
    expect_free(lock);
    contention_end();
}

static bool is_releasing(void *client)
{
    return atomic_load(&((hl_client *)client)->dying) == 1;
}

static void job_try(void *arg)
{
    is_to_stop = true;
    expect_outcome(hl_lock_try_acquire(arg, NULL), HL_ECONN);
}

/* The attempt to connect fails before the request is sent. The tenure is released all the same, and
 * the release finds no server; nothing of it can be in Redis. */
Law(schedules_sending, a_client_that_never_had_a_server_closes_without_waiting_for_answers)
{
    hl_client *client = NULL;
    expect_ok(hl_client_open("unix:///nowhere/redis.sock",
                             CLIENT(.flags = HL_CLIENT_LAZY, .request_timeout_ms = 60000,
                                    .watchdog_timeout_ms = 600000, .backoff_min_ms = 100,
                                    .backoff_max_ms = 100),
                             &client, ERR));
    actor_begin(actor_start(), job_try, new_lock(client, "stock"));
    check(wait_until(is_set, &has_stopped, 10000));
    check(wait_until(is_releasing, client, 10000));
    go_on();
    actors_stop();
    int64_t begun = now_ms();
    expect_ok(hl_client_close(client));
    check_msg(now_ms() - begun < 30000, "%lld ms", (long long)(now_ms() - begun));
}
