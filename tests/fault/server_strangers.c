/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Strangers with the right to write: they delete, persist, overwrite, evict and publish. Holders
 * are told, waiters get their turn, and nobody enters by mistake. */

#include "server_fault.h"
#include "support/proxy.h"

static struct redis_server *server;
static struct fault_events events;
static hl_client *client, *other;
static hl_lock *lock, *others;

static void strangers_start(void)
{
    server = redis_server_start(NULL);
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(1500);
    client = fault_open(redis_server_url(server), &options);
    other = fault_client(server, NULL);
    lock = fault_lock(client, "n");
    others = fault_lock(other, "n");
}

static void strangers_stop(void)
{
    hl_lock_free(lock);
    hl_lock_free(others);
    hl_client_close(client);
    hl_client_close(other);
    redis_server_stop(server);
}

#define StrangerTest(name)                                                                         \
    Test(server_strangers, name, .init = strangers_start, .fini = strangers_stop)

/* Somebody waits while it happens; the holder is told by its next renewal, and the waiter is in. */
static void strangers_take_away(const char *command)
{
    struct fault_call call;
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_acquire(lock, NULL), 0);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_do(server, command);
    check_int(fault_call_end(&call), 0);
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_acquire_for(lock, 0, &err), HL_ELOST);
    check_int(hl_lock_release(lock, &err), HL_ELOST);
    check_int(hl_lock_release(lock, &err), HL_ELOST);
    check_int(hl_lock_release(lock, &err), HL_ENOTOWNER);
    check(hl_lock_is_held(others, call.options.owner)); /* our late release freed nobody else's */
    check_int(redis_int(server, "HLEN n"), 1);
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    check_int(atomic_load(&events.seen[HL_EVENT_LOST]), 1);
    hl_owner_free(call.options.owner);
}

StrangerTest(delete_the_key_and_the_holder_is_told)
{
    strangers_take_away("DEL n");
}

StrangerTest(flush_everything_and_the_holder_is_told)
{
    strangers_take_away("FLUSHALL");
}

StrangerTest(delete_the_key_and_the_release_says_so_before_any_renewal)
{
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "DEL n");
    expect_released(hl_lock_release(lock, NULL), HL_ELOST);
    check_int(hl_lock_release(lock, NULL), HL_ENOTOWNER);
}

StrangerTest(shorten_the_lease_and_the_holder_is_told)
{
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "PEXPIRE n 1");
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
}

StrangerTest(persist_the_key_and_a_renewal_gives_it_its_expiry_back)
{
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "PERSIST n");
    struct deadline deadline = deadline_in(5000);
    while (redis_int(server, "PTTL n") < 0) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    check(hl_lock_is_held(lock, NULL));
    check_int(hl_lock_release(lock, NULL), 0);
}

/* A key without an expiry is no reason to sleep for ever. */
StrangerTest(persist_a_foreign_key_and_waiters_poll)
{
    struct fault_call call;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    redis_do(server, "HSET n stranger 1");
    check_int(hl_lock_inspect(others, &info, NULL), 0);
    check_int((int)info.lease_left_ms, -1);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_do(server, "DEL n");
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

StrangerTest(put_something_else_in_its_place_and_every_call_says_so)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_lock *innocent = fault_lock(client, "innocent");
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_acquire(innocent, NULL), 0);
    redis_do(server, "SET n something");
    check_int(hl_lock_acquire_for(others, HL_WAIT_FOREVER, &err), HL_ESERVER);
    fault_check_has(err.text, "WRONGTYPE");
    check_int(hl_lock_inspect(others, &info, &err), HL_ESERVER);
    fault_check_has(err.text, "WRONGTYPE");
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check_int(hl_lock_release(lock, &err), HL_ELOST);
    check_str(redis_str(server, "GET n"), "something");
    struct deadline deadline = deadline_in(2000); /* the other hold is renewed as before */
    while (!deadline_is_over(deadline)) {
        check(hl_lock_is_held(innocent, NULL));
        deadline_nap();
    }
    check_int(hl_lock_release(innocent, &err), 0);
    hl_lock_free(innocent);
}

StrangerTest(put_something_else_in_its_place_and_the_release_says_so)
{
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "SET n something");
    int code = hl_lock_release(lock, &err);
    expect_released(code, HL_ESERVER);
    if (code != HL_OK)
        fault_check_has(err.text, "WRONGTYPE");
    check(!hl_lock_is_held(lock, NULL));
    check_str(redis_str(server, "GET n"), "something");
}

StrangerTest(write_odd_values_into_a_hold_and_it_is_lost)
{
    char field[128];
    hl_lock_info info = HL_LOCK_INFO_INIT;
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_inspect(lock, &info, NULL), 0);
    snprintf(field, sizeof field, "%s", info.owner);
    redis_do(server, "HSET n %s %s", field, "odd");
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_int(hl_lock_release(lock, NULL), HL_ELOST);
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
}

StrangerTest(hold_it_with_odd_values_and_are_waited_for)
{
    struct fault_call call;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    redis_do(server, "HSET n %b %s b 99999999999999999999", "a\0b", (size_t)3, "odd");
    redis_do(server, "PEXPIRE n %d", (int)slow_ms(300));
    fault_call_begin(&call, others, fault_owner(other), slow_ms(10000));
    check_int(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    check_int(hl_lock_inspect(lock, &info, NULL), HL_ESERVER); /* no count that can be told */
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

StrangerTest(evict_the_key_and_the_holder_is_told)
{
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "CONFIG SET maxmemory-policy volatile-random");
    redis_do(server, "CONFIG SET maxmemory 1");
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    redis_do(server, "CONFIG SET maxmemory 0");
    check_int(hl_lock_release(lock, NULL), HL_ELOST);
    check_int(hl_lock_acquire_for(others, slow_ms(5000), NULL), 0);
    check_int(hl_lock_release(others, NULL), 0);
}

struct flood {
    atomic_bool stops;
    pthread_t thread;
    int64_t pause_us;
    uint64_t messages;
};

static void *flood_run(void *arg)
{
    struct flood *flood = arg;
    while (!atomic_load(&flood->stops)) {
        redis_do(server, "PUBLISH redisson_lock__channel:{n} 0");
        flood->messages++;
        int64_t until_ns = now_ns() + flood->pause_us * 1000;
        while (now_ns() < until_ns)
            sched_yield();
    }
    return NULL;
}

/* Messages are hints, whoever sends them: at most about a hundred questions a second. */
static void flood_with_messages(int64_t pause_us)
{
    enum { FLOOD_MS = 1000 };
    struct flood flood = {.pause_us = pause_us};
    struct fault_call call;
    check_int(hl_lock_acquire(lock, NULL), 0);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    uint64_t before = fault_stats(other).commands;
    int64_t started_ns = now_ns();
    check_int(pthread_create(&flood.thread, NULL, flood_run, &flood), 0);
    while (now_ns() - started_ns < FLOOD_MS * INT64_C(1000000)) {
        check(!atomic_load(&call.is_over));
        deadline_nap();
    }
    uint64_t asked = fault_stats(other).commands - before;
    int64_t took_ms = (now_ns() - started_ns) / 1000000;
    check_msg(asked <= (uint64_t)took_ms * 130 / 1000 + 10, "%d questions in %d ms", (int)asked,
              (int)took_ms);
    check(!atomic_load(&call.is_over));
    int64_t released_ns = now_ns();
    check_int(hl_lock_release(lock, NULL), 0);
    check_int(fault_call_end(&call), 0);
    check(call.returned_ns - released_ns < slow_ms(500) * 1000000);
    atomic_store(&flood.stops, true);
    pthread_join(flood.thread, NULL);
    check(flood.messages * (uint64_t)slow_ms(1) >= 300); /* more than what was asked */
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

StrangerTest(flood_the_channel_a_thousand_times_a_second)
{
    flood_with_messages(1000);
}

StrangerTest(flood_the_channel_as_fast_as_they_can)
{
    flood_with_messages(0);
}

/* The message of every release is lost, and of every grant: each wait ends within one poll. */
StrangerTest(lose_every_message_and_no_wait_is_longer_than_a_poll)
{
    enum { TIMES = 20, POLL_MS = 60 };
    struct redis_server *tcp = redis_server_start(&(struct redis_options){.tcp = true});
    struct proxy *proxy = proxy_start_before(tcp);
    hl_client_options options = fault_options(NULL);
    options.poll_ms = POLL_MS;
    hl_client *deaf = fault_open(proxy_url(proxy), &options);
    hl_client *holder = fault_client(tcp, NULL);
    hl_lock *held = fault_lock(holder, "n"), *waited = fault_lock(deaf, "n");
    hl_owner *owner = fault_owner(deaf);
    proxy_drop_messages(proxy, "", 1000000); /* grants, too */
    for (int i = 0; i < TIMES; i++) {
        struct fault_call call;
        check_int(hl_lock_acquire(held, NULL), 0);
        fault_call_begin(&call, waited, owner, HL_WAIT_FOREVER);
        check(redis_wait_subscribers(tcp, "redisson_lock__channel:{n}", 1, 5000));
        check(wait_until(fault_has_waiter, deaf, 5000));
        int64_t released_ns = now_ns();
        check_int(hl_lock_release(held, NULL), 0);
        check_int(fault_call_end(&call), 0);
        int64_t waited_ms = (call.returned_ns - released_ns) / 1000000;
        check_msg(waited_ms <= slow_ms(POLL_MS * 13 / 10 + 250), "waited %d ms", (int)waited_ms);
        check_int(hl_lock_release_as(waited, owner, NULL), 0);
        expect_gone(tcp, "n");
    }
    check_int((int)fault_stats(deaf).grants, 0);
    check(proxy_dropped(proxy) >= 2 * TIMES - 6); /* a few were not waited for any more */
    hl_owner_free(owner);
    hl_lock_free(held);
    hl_lock_free(waited);
    hl_client_close(deaf);
    hl_client_close(holder);
    proxy_stop(proxy);
    redis_server_stop(tcp);
}
