/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A server that is slow, paused, full, or whose clock was set: nobody believes longer than the
 * lease, and waits end when they can. */

#include "server_fault.h"

static struct events events;
static hl_client *client, *other;
static hl_lock *lock, *others;

/* The other client has a long lease. */
static void time_start_with(const struct redis_options *redis, int64_t watchdog_ms)
{
    hl_client_options options = fault_options(&events);
    server_up_with(redis);
    options.watchdog_timeout_ms = watchdog_ms;
    options.outage_timeout_ms = slow_ms(20000);
    client = open_client(&options);
    options.on_event = NULL;
    options.watchdog_timeout_ms = slow_ms(30000);
    other = open_client(&options);
    lock = new_lock(client, "n");
    others = new_lock(other, "n");
}

static void time_start(void)
{
    time_start_with(NULL, slow_ms(900));
}

static void time_start_calmly(void)
{
    time_start_with(NULL, slow_ms(900) + 5100);
}

#define TimeTest(name) Test(server_time, name, .init = time_start, .fini = server_down)

/* The lease, and a long time besides. */
static int time_silent_ms(void)
{
    return (int)slow_ms(4000) + 3000;
}

/* The loss is told while the server is silent, before another client can have the lock. */
static void time_check_lost_in_time(struct actor *rival)
{
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!actor_is_done(rival));
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
}

static void time_pause_longer_than_the_lease(const char *mode)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "CLIENT PAUSE %d %s", time_silent_ms(), mode);
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    time_check_lost_in_time(call);
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, others, NULL));
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
}

TimeTest(is_paused_for_writes_longer_than_the_lease)
{
    time_pause_longer_than_the_lease("WRITE");
}

TimeTest(is_paused_for_all_longer_than_the_lease)
{
    time_pause_longer_than_the_lease("ALL");
}

/* The pause is over in the middle between two renewals. */
Test(server_time, is_paused_shorter_than_the_lease_and_nothing_is_lost, .init = time_start_calmly,
     .fini = server_down)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "CLIENT PAUSE %d WRITE", (int)(slow_ms(900) + 5100) / 2);
    while (stats_of(client).renewals < 2) {
        check(hl_lock_is_held(lock, NULL));
        deadline_nap();
    }
    expect_ok(hl_lock_release(lock, NULL));
}

TimeTest(sleeps_longer_than_the_lease)
{
    char line[64];
    expect_ok(hl_lock_acquire(lock, NULL));
    snprintf(line, sizeof line, "DEBUG SLEEP %.1f", (double)time_silent_ms() / 1000);
    close(redis_post(server, line));
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    time_check_lost_in_time(call);
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, others, NULL));
}

Test(server_time, sleeps_longer_than_the_request_timeout_only_and_a_release_is_repeated,
     .init = time_start_calmly, .fini = server_down)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_server_freeze(server);
    expect_released(hl_lock_release(lock, NULL), HL_EINDOUBT);
    redis_server_thaw(server);
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
    expect_ok(hl_lock_acquire_for(others, slow_ms(20000), NULL));
    expect_ok(hl_lock_release(others, NULL));
}

TimeTest(is_frozen_past_the_lease_and_thawed)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_server_freeze(server);
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    time_check_lost_in_time(call);
    redis_server_thaw(server);
    expect_ok(actor_end(call));
    check(actor_holds(call, others, NULL));
    expect_ok(actor_release(call, others, NULL));
}

static void time_start_with_shim(void)
{
    if (redis_server_has_clock_shim())
        time_start_with(&(struct redis_options){.clock_shim = true}, slow_ms(1500) + 4500);
}

static void server_down_with_shim(void)
{
    if (server)
        server_down();
}

#define ClockTest(name)                                                                            \
    Test(server_clock, name, .init = time_start_with_shim, .fini = server_down_with_shim)

/* This is the fault that no lease survives: the key is gone at once. The holder learns of it with
 * its next renewal, and until then two believe: documented, and so it is. */
ClockTest(is_set_forward_and_the_holder_is_told_by_its_next_renewal)
{
    if (!server)
        skip("this build has no clock shim");
    expect_ok(hl_lock_acquire(lock, NULL));
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_server_step_clock(server, 60000);
    expect_ok(actor_end(call));
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone"); /* it did not wait until its lease was over */
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    check(actor_holds(call, others, NULL));
    expect_ok(actor_release(call, others, NULL));
}

ClockTest(is_set_back_and_neither_holder_nor_waiter_is_harmed)
{
    if (!server)
        skip("this build has no clock shim");
    expect_ok(hl_lock_acquire(lock, NULL));
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_server_step_clock(server, -60000);
    check(redis_int(server, "PTTL n") > 30000);
    uint64_t enough = stats_of(client).renewals + 2;
    struct deadline deadline = deadline_in(2000);
    while (!deadline_is_over(deadline) || stats_of(client).renewals < enough) {
        check(hl_lock_is_held(lock, NULL));
        check(!actor_is_done(call));
        deadline_nap();
    }
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_end(call));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(actor_release(call, others, NULL));
}

/* A holder that died before the clock was set back stands for as much longer; a waiter that sleeps
 * until its expiry has to poll all the same. */
ClockTest(is_set_back_and_forward_and_a_waiter_does_not_sleep_on_what_it_heard)
{
    if (!server)
        skip("this build has no clock shim");
    redis_do(server, "HSET n dead:1 1");
    redis_server_step_clock(server, -60000);
    redis_do(server, "PEXPIRE n 50000");
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_server_step_clock(server, 60000);
    expect_ok(actor_end(call)); /* not after the 50 s that it heard of */
    expect_ok(actor_release(call, others, NULL));
}

/* The tests' own link takes one place; the server keeps 32 descriptors for itself. */
Law(server_clients, are_too_many_for_open_and_it_says_so)
{
    hl_client_options options = fault_options(NULL);
    hl_client *client_one = NULL;
    hl_error err = HL_ERROR_INIT;
    redis_do(server, "CONFIG SET maxclients 1");
    int rc = hl_client_open(redis_server_url(server), &options, &client_one, &err);
    check(rc == HL_ESERVER || rc == HL_ECONN);
    check_has(err.text, "max number of clients");
}

Law(server_clients, are_too_many_for_a_reconnect_and_it_is_waited_for)
{
    static struct events seen;
    hl_client *one = open_impatient(&seen);
    hl_lock *held = new_lock(one, "held"), *wanted = new_lock(one, "n");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(held, NULL));
    redis_do(server, "CONFIG SET maxclients 1");
    redis_kill_clients(server, REDIS_NORMAL);
    check(events_wait(&seen, HL_EVENT_DISCONNECTED, 1, 5000));
    int rc = hl_lock_acquire_for(wanted, HL_WAIT_FOREVER, &err);
    check(rc == HL_ESERVER || rc == HL_ECONN);
    check_has(err.text, "max number of clients");
    struct actor *call = actor_start_acquire(wanted, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(one, 1);
    redis_do(server, "CONFIG SET maxclients 100");
    expect_ok(actor_end(call));
    check(hl_lock_is_held(held, NULL));
    check_int(events_told(&seen, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_release(call, wanted, NULL));
}
