/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Giving way: a client keeps a lock for its own next owner only on fresh word that no other client
 * waits, and only while the lock is surely its own. Now and then it yields to Redisson's waiters.
 */

#include "lease/acquire/shortcut.h"
#include "lease/calls/client.h"
#include "support/kinds.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"
#include "two_links.h"

enum { OLD_MS = 30, RETAIN_MS = 1000 };

static hl_client *client;
static hl_lock *stock;
static struct recorder told = RECORDER_INIT, released = RECORDER_INIT, events = RECORDER_INIT;
static void pass_time(int64_t ms)
{
    int64_t since_ms = now_ms();
    while (now_ms() < since_ms + ms)
        deadline_nap();
}

static void begin_at(const char *url, unsigned flags, int64_t retain_ms)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.flags = flags;
    options.retain_ms = retain_ms;
    client = open_client_at(
        url, CLIENT(.poll_ms = 10000, .watchdog_timeout_ms = 60000, .backoff_min_ms = 1));
    expect_ok(lock_new_with(client, "stock", &options, &stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    pass_time(OLD_MS);                       /* it is not retained */
    expect_ok(hl_lock_release(stock, NULL)); /* from now on the server knows the scripts */
}

static void begin(unsigned flags, int64_t retain_ms)
{
    begin_at(redis_server_url(server), flags, retain_ms);
}

static void end(void)
{
    hl_lock_free(stock);
}

static struct hli_tenure *current(void)
{
    return stock->handle.name->current;
}

/* Changes something of the tenure, as time would. */
#define tamper(what)                                                                               \
    do {                                                                                           \
        pthread_mutex_lock(&stock->handle.name->mutex);                                            \
        what;                                                                                      \
        pthread_mutex_unlock(&stock->handle.name->mutex);                                          \
    } while (0)

/* Until the lock is retained, which on a busy machine may take more than one try. */
static void retain(void)
{
    struct deadline deadline = deadline_in(20000);
    do {
        check(!deadline_is_over(deadline));
        expect_ok(hl_lock_acquire(stock, NULL));
        expect_ok(hl_lock_release(stock, NULL));
    } while (redis_int(server, "EXISTS stock") == 0);
}

/* ---- Word that no client waits ---- */

TcpLaw(retained, needs_fresh_word_that_no_client_waits)
{
    begin(0, RETAIN_MS);
    retain();
    expect_free(stock);
    expect_ok(hl_lock_acquire(stock, NULL));
    pass_time(OLD_MS);
    expect_ok(hl_lock_release(stock, NULL));
    check_int(redis_int(server, "EXISTS stock"), 0);
    end();
}

TcpLaw(retained, counts_its_word_from_the_request)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), 0, RETAIN_MS);
    proxy_delay(proxy, PROXY_EVERY, PROXY_DOWN, OLD_MS);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_release(stock, NULL));
    check_int(redis_int(server, "EXISTS stock"), 0);
    end();
    close_client(client);
    proxy_stop(proxy);
}

/* ---- Another client asks ---- */

static bool is_wanted(void *arg)
{
    bool *answer = arg;
    tamper(*answer = current() && current()->has_waiters);
    return *answer;
}

TcpLaw(a_want, ends_passing_at_once)
{
    begin(0, 0);
    hl_client *rival = open_client(CLIENT(.poll_ms = 10000));
    hl_owner *rivals = new_owner(rival), *first = new_owner(client), *second = new_owner(client);
    hl_lock *rivals_stock = new_lock(rival, "stock");
    struct recorder others = RECORDER_INIT;
    bool answer = false;
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.owner = first), NULL));
    expect_ok(hl_lock_acquire_async(rivals_stock, ACQUIRE(.owner = rivals, .wait_ms = -1),
                                    record_done, &others));
    check(wait_until(is_wanted, &answer, 10000));
    tamper(current()->no_waiters_at = hli_now()); /* as fresh as can be */
    expect_ok(
        hl_lock_acquire_async(stock, ACQUIRE(.owner = second, .wait_ms = -1), record_done, &told));
    expect_ok(hl_lock_release_as(stock, first, NULL));
    expect_story(&others, "done HL_OK");
    check_int(stats_of(client).passes, 0);
    expect_ok(hl_lock_release_as(rivals_stock, rivals, NULL));
    expect_story(&told, "done HL_OK");
    expect_ok(hl_lock_release_as(stock, second, NULL));
    end();
}

static bool is_wanted_already(void *arg)
{
    struct hli_name *name = arg;
    pthread_mutex_lock(&name->mutex);
    bool answer = name->current && name->current->has_waiters;
    pthread_mutex_unlock(&name->mutex);
    return answer;
}

/* The want comes by the one link while "yours" is still on its way by the other. */
TcpLaw(a_want, counts_that_comes_before_the_answer)
{
    struct recorder others = RECORDER_INIT;
    contention_begin(60000, 10000); /* who asks once */
    hl_owner *holders = new_owner(holder);
    expect_ok(hl_lock_release(held, NULL));
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_held_by(waiter.client, lock, 1);
    expect_ok(hl_lock_acquire_async(held, ACQUIRE(.owner = holders, .wait_ms = -1), record_done,
                                    &others));
    check(wait_until(is_wanted_already, lock->handle.name, 10000));
    proxy_release(waiter.proxy, waiter.commands, PROXY_DOWN);
    check(recorder_wait(&told, 1));
    stock = lock;
    tamper(current()->no_waiters_at = hli_now());
    wait_async(other, &told, ACQUIRE(.lease_ms = 0));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_story(&others, "done HL_OK");
    check_int(stats_of(waiter.client).passes, 0);
    expect_ok(hl_lock_release_as(held, holders, NULL));
    expect_story(&told, "done HL_OK, done HL_OK");
    contention_end();
}

/* ---- A lost lock is not kept ---- */

/* The second owner gets it by a pass, while the word is old enough to ask for a new one; the answer
 * is kept until its caller has it. */
static bool passes_what_is_gone(struct proxy *proxy, hl_owner *first, hl_owner *second)
{
    int turn = recorder_count(&told) + 1;
    uint64_t before = stats_of(client).passes;
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.owner = first, .wait_ms = -1), NULL));
    expect_ok(hl_lock_acquire_async(
        stock,
        ACQUIRE(.owner = second, .wait_ms = -1, .on_event = record_event, .event_arg = &events),
        record_done, &told));
    redis_do(server, "DEL stock");
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    tamper(current()->no_waiters_at = hli_now() - HLI_MS(12));
    expect_ok(hl_lock_release_async(stock, first, record_done, &released));
    bool was_passed = stats_of(client).passes > before;
    if (was_passed)
        check(recorder_wait(&told, turn));
    proxy_pass(proxy);
    check(recorder_wait(&told, turn));
    return was_passed;
}

static bool is_lost(void *arg)
{
    return recorder_says(arg, "LOST gone");
}

/* Not the first time: the server has to learn the script. */
TcpLaw(a_keep, that_finds_nothing_is_a_loss)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), 0, 0);
    hl_owner *first = new_owner(client), *second = new_owner(client);
    struct deadline deadline = deadline_in(15000); /* its renewal would be due in 20 s */
    while (!passes_what_is_gone(proxy, first, second) || !wait_until(is_lost, &events, 100)) {
        check(!deadline_is_over(deadline));
        (void)hl_lock_release_as(stock, second, NULL);
    }
    expect_outcome(hl_lock_release_as(stock, second, NULL), HL_ELOST);
    end();
    close_client(client);
    proxy_stop(proxy);
}

/* Taken deeper, and the count on display is still to follow: then the next call needs no request.
 */
static void hold_twice(void)
{
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    tamper(current()->shows_at = hli_after_ms(hli_now(), 60000));
}

TcpLaw(a_nested_call, into_a_hold_that_is_over_is_refused)
{
    begin(0, 0);
    hold_twice();
    tamper(current()->valid_until = 1); /* no other thread has looked at the clock yet */
    expect_outcome(hl_lock_acquire(stock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(stock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(stock, NULL), HL_ELOST);
    end();
}

TcpLaw(a_nested_release, from_a_hold_that_is_over_says_so)
{
    begin(0, 0);
    hold_twice();
    tamper(current()->valid_until = 1);
    expect_outcome(hl_lock_release(stock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(stock, NULL), HL_ELOST);
    end();
}

TcpLaw(a_hold_that_is_over, does_not_come_back_by_a_late_answer)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), 0, 0);
    hl_owner *ours = new_owner(client);
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.owner = ours, .lease_ms = 5000), NULL));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_lock_acquire_async(stock, ACQUIRE(.owner = ours, .lease_ms = 50000), record_done,
                                    &told));
    tamper(current()->valid_until = 1);
    proxy_pass(proxy); /* it has a lease of 50 s, it says */
    expect_story(&told, "done HL_ELOST");
    check(!hl_lock_is_held(stock, ours));
    expect_outcome(hl_lock_release_as(stock, ours, NULL), HL_ELOST);
    end();
    close_client(client);
    proxy_stop(proxy);
}

TcpLaw(a_retained_lock, is_not_taken_up_when_it_may_be_over)
{
    char field[128];
    begin(0, RETAIN_MS);
    retain();
    snprintf(field, sizeof field, "%s", field_of(stock));
    tamper(if (current()) current()->valid_until = 1);
    expect_ok(hl_lock_acquire_for(stock, slow_ms(10000), NULL));
    check(strcmp(field_of(stock), field) != 0);
    expect_held_by(client, stock, 1);
    end();
}

/* The call has found the client open, and then a close began that has not come to this name yet. */
TcpLaw(a_closed_client, has_no_shortcut)
{
    begin(0, RETAIN_MS);
    hold_twice();
    const struct hli_acquire_mode way = hli_lock_acquire_mode(stock);
    tamper(atomic_store(&client->is_closed, true));
    bool is_taken = hli_shortcut_acquire(stock->handle.name, &way);
    atomic_store(&client->is_closed, false);
    check(!is_taken);
    expect_ok(hl_lock_release(stock, NULL));
    expect_ok(hl_lock_release(stock, NULL));
    retain();
    tamper(atomic_store(&client->is_closed, true));
    is_taken = hli_shortcut_acquire(stock->handle.name, &way);
    atomic_store(&client->is_closed, false);
    check(!is_taken);
    end();
}

/* ---- A grant that comes too late ---- */

TcpLaw(a_grant, that_comes_when_its_claim_is_over_is_not_entered)
{
    contention_begin(50, 600000); /* a claim of 200 ms, and no poll */
    hl_client *rival = open_client(CLIENT(.watchdog_timeout_ms = 300000)); /* renews nothing here */
    hl_lock *rivals = new_lock(rival, "stock");
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_for(rivals, slow_ms(10000), NULL)); /* when the claim is over */
    int64_t calls = redis_evalsha_calls(server);
    proxy_release(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_calls(calls + 1); /* it asks */
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    check(!hl_lock_is_held(lock, owner) && hl_lock_is_held(rivals, NULL));
    check_int(stats_of(waiter.client).grants, 0);
    expect_ok(hl_lock_release(rivals, NULL));
    expect_story(&told, "done HL_OK");
    contention_end();
}
