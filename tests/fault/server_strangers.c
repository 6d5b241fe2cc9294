/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Foreign clients that write to the lock's keys: they delete, persist, overwrite, evict and
 * publish. Holders are told, waiters get their turn, and no client acquires by mistake. */

#include "server_fault.h"
#include "support/proxy.h"

static struct events events;
static hl_client *client, *other;
static hl_lock *lock, *others;

static void strangers_start(void)
{
    server_up_tcp();
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(1500) + 4500;
    client = open_client(&options);
    other = open_impatient(NULL);
    lock = new_lock(client, "n");
    others = new_lock(other, "n");
}

#define StrangerTest(name)                                                                         \
    Test(server_strangers, name, .init = strangers_start, .fini = server_down)

/* A client waits while it happens; the holder is told by its next renewal, and the waiter is in. */
static void strangers_take_away(const char *command)
{
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_do(server, command);
    expect_ok(actor_end(call));
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_acquire_for(lock, 0, &err), HL_ELOST);
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    expect_outcome(hl_lock_release(lock, &err), HL_ENOTOWNER);
    check(actor_holds(call, others, NULL)); /* our late release freed no other hold */
    check_int(redis_int(server, "HLEN n"), 1);
    expect_ok(actor_release(call, others, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 1);
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
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "DEL n");
    expect_released(hl_lock_release(lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
}

StrangerTest(shorten_the_lease_and_the_holder_is_told)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "PEXPIRE n 1");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
}

StrangerTest(persist_the_key_and_a_renewal_gives_it_its_expiry_back)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "PERSIST n");
    struct deadline deadline = deadline_of_wait(5000);
    while (redis_int(server, "PTTL n") < 0) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
}

/* A key without an expiry is no reason to sleep for ever. */
StrangerTest(persist_a_foreign_key_and_waiters_poll)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    redis_do(server, "HSET n stranger:1 1");
    expect_ok(hl_lock_inspect(others, &info, NULL));
    check_int((int)info.lease_left_ms, -1);
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_do(server, "DEL n");
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, others, NULL));
}

StrangerTest(put_something_else_in_its_place_and_every_call_says_so)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_lock *innocent = new_lock(client, "innocent");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(innocent, NULL));
    redis_do(server, "SET n something");
    expect_outcome(hl_lock_acquire_for(others, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check_has(err.text, "WRONGTYPE");
    expect_outcome(hl_lock_inspect(others, &info, &err), HL_ESERVER);
    check_has(err.text, "WRONGTYPE");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    check_str(redis_str(server, "GET n"), "something");
    uint64_t enough = stats_of(client).renewals + 2; /* the other hold is renewed as before */
    struct deadline deadline = deadline_in(2000);
    while (!deadline_is_over(deadline) || stats_of(client).renewals < enough) {
        check(hl_lock_is_held(innocent, NULL));
        deadline_nap();
    }
    expect_ok(hl_lock_release(innocent, &err));
    free_lock(innocent);
}

/* An oversized answer would drop the connection, and the other hold with it. */
StrangerTest(keep_big_data_under_a_locks_name_and_no_other_hold_suffers)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock *innocent = new_lock(client, "innocent");
    expect_ok(hl_lock_acquire(innocent, NULL));
    redis_do(server, "EVAL %s 1 n", "redis.call('HSET', KEYS[1], 'profile', string.rep('x', 1e5))");
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check_has(err.text, "acquire 'n': WRONGTYPE the key holds no lock");
    check_has(err.text, "'profile'");
    expect_outcome(hl_lock_force_release(lock, &err), HL_ESERVER);
    check_has(err.text, "'profile'");
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    expect_ok(hl_lock_release(innocent, &err));
    check_int(redis_int(server, "EXISTS n"), 1);
    free_lock(innocent);
}

StrangerTest(put_something_else_in_its_place_and_the_release_says_so)
{
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "SET n something");
    int code = hl_lock_release(lock, &err);
    expect_released(code, HL_ESERVER);
    if (code != HL_OK)
        check_has(err.text, "WRONGTYPE");
    check(!hl_lock_is_held(lock, NULL));
    check_str(redis_str(server, "GET n"), "something");
}

StrangerTest(write_odd_values_into_a_hold_and_it_is_lost)
{
    char field[128];
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    snprintf(field, sizeof field, "%s", info.owner);
    redis_do(server, "HSET n %s %s", field, "odd");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
}

StrangerTest(hold_it_with_an_odd_count_and_are_waited_for)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    redis_do(server, "HSET n %b 99999999999999999999 odd odd", "a\0b:1", (size_t)5);
    redis_do(server, "PEXPIRE n %d", (int)slow_ms(300) + 3000);
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = slow_ms(30000)));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    check(info.hold_count == UINT32_MAX);
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, others, NULL));
}

StrangerTest(evict_the_key_and_the_holder_is_told)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "CONFIG SET maxmemory-policy volatile-random");
    redis_do(server, "CONFIG SET maxmemory 1");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    redis_do(server, "CONFIG SET maxmemory 0");
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_ok(hl_lock_acquire_for(others, slow_ms(5000), NULL));
    expect_ok(hl_lock_release(others, NULL));
}

struct flood {
    atomic_bool stops;
    pthread_t thread;
    int64_t pause_us;
    atomic_uint messages;
};

static void *flood_run(void *arg)
{
    struct flood *flood = arg;
    while (!atomic_load(&flood->stops)) {
        redis_do(server, "PUBLISH redisson_lock__channel:{n} 0");
        atomic_fetch_add(&flood->messages, 1);
        int64_t until_ns = now_ns() + flood->pause_us * 1000;
        while (now_ns() < until_ns)
            sched_yield();
    }
    return NULL;
}

/* Messages of any sender are hints: they cause at most about a hundred requests a second. */
static void flood_with_messages(int64_t pause_us)
{
    enum { FLOOD_MS = 1000, ENOUGH = 300 /* more than what may be asked */ };
    struct flood flood = {.pause_us = pause_us};
    expect_ok(hl_lock_acquire(lock, NULL));
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    uint64_t before = stats_of(other).commands;
    int64_t started_ns = now_ns();
    check_int(pthread_create(&flood.thread, NULL, flood_run, &flood), 0);
    while (now_ns() - started_ns < FLOOD_MS * INT64_C(1000000) ||
           atomic_load(&flood.messages) < ENOUGH) {
        check(!actor_is_done(call));
        deadline_nap();
    }
    uint64_t asked = stats_of(other).commands - before;
    int64_t took_ms = (now_ns() - started_ns) / 1000000;
    check_msg(asked <= (uint64_t)took_ms * 130 / 1000 + 10, "%d questions in %d ms", (int)asked,
              (int)took_ms);
    check(!actor_is_done(call));
    int64_t released_ns = now_ns();
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_end(call));
    check(actor_ended_ns(call) - released_ns < slow_ms(5000) * 1000000);
    atomic_store(&flood.stops, true);
    pthread_join(flood.thread, NULL);
    expect_ok(actor_release(call, others, NULL));
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
    enum { TIMES = 20, POLL_MS = 60, MOST_LATE = TIMES / 4 /* for want of a processor */ };
    int late = 0;
    struct proxy *proxy = new_proxy();
    hl_client_options options = fault_options(NULL);
    options.poll_ms = POLL_MS;
    hl_client *deaf = open_client_at(proxy_url(proxy), &options);
    hl_lock *held = new_lock(open_impatient(NULL), "n"), *waited = new_lock(deaf, "n");
    proxy_drop_messages(proxy, "", 1000000); /* grants, too */
    for (int i = 0; i < TIMES; i++) {
        expect_ok(hl_lock_acquire(held, NULL));
        struct actor *call = actor_start_acquire(waited, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
        check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
        expect_waiters(deaf, 1);
        int64_t released_ns = now_ns();
        expect_ok(hl_lock_release(held, NULL));
        expect_ok(actor_end(call));
        int64_t waited_ms = (actor_ended_ns(call) - released_ns) / 1000000;
        check_msg(waited_ms <= slow_ms(10000), "waited %d ms", (int)waited_ms);
        late += waited_ms > slow_ms(POLL_MS * 13 / 10 + 250);
        expect_ok(actor_release(call, waited, NULL));
        actor_stop(call);
        expect_gone(server, "n");
    }
    check_msg(late <= MOST_LATE, "%d waits were longer", late);
    check_int((int)stats_of(deaf).grants, 0);
    check(proxy_dropped(proxy) >= 2 * TIMES - 6); /* a few were not waited for any more */
}
