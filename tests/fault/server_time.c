/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A server that is slow, paused, full, or whose clock was set: nobody believes longer than the
 * lease, and waits end when they can. */

#include "server_fault.h"

static struct redis_server *server;
static struct fault_events events;
static hl_client *client, *other;
static hl_lock *lock, *others;

static void time_start_with(const struct redis_options *redis, int64_t watchdog_ms)
{
    hl_client_options options = fault_options(&events);
    server = redis_server_start(redis);
    options.watchdog_timeout_ms = slow_ms(watchdog_ms);
    options.outage_timeout_ms = slow_ms(20000);
    client = fault_open(redis_server_url(server), &options);
    options.on_event = NULL;
    other = fault_open(redis_server_url(server), &options);
    lock = fault_lock(client, "n");
    others = fault_lock(other, "n");
}

static void time_start(void)
{
    time_start_with(NULL, 900);
}

static void time_stop(void)
{
    hl_lock_free(lock);
    hl_lock_free(others);
    hl_client_close(client);
    hl_client_close(other);
    redis_server_stop(server);
}

#define TimeTest(name) Test(server_time, name, .init = time_start, .fini = time_stop)

/* The loss is told before the lease is over on the server: while that is silent, nobody can have
 * the lock, so the first moment of disbelief is compared with the lease's end. */
static void time_check_lost_in_time(int64_t acquired_ns)
{
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!hl_lock_is_held(lock, NULL));
    check(now_ns() - acquired_ns < slow_ms(900 + 600) * 1000000);
    check_int(hl_lock_release(lock, NULL), HL_ELOST);
}

static void time_pause_longer_than_the_lease(const char *mode)
{
    struct fault_call call;
    check_int(hl_lock_acquire(lock, NULL), 0);
    int64_t acquired_ns = now_ns();
    redis_do(server, "CLIENT PAUSE %d %s", (int)slow_ms(1600), mode);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    time_check_lost_in_time(acquired_ns);
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
    hl_owner_free(call.options.owner);
}

TimeTest(is_paused_for_writes_longer_than_the_lease)
{
    time_pause_longer_than_the_lease("WRITE");
}

TimeTest(is_paused_for_all_longer_than_the_lease)
{
    time_pause_longer_than_the_lease("ALL");
}

TimeTest(is_paused_shorter_than_the_lease_and_nothing_is_lost)
{
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "CLIENT PAUSE %d WRITE", (int)slow_ms(350));
    uint64_t renewals = fault_stats(client).renewals;
    struct deadline deadline = deadline_in(1500);
    while (!deadline_is_over(deadline)) {
        check(hl_lock_is_held(lock, NULL));
        deadline_nap();
    }
    check(fault_stats(client).renewals > renewals);
    check_int(hl_lock_release(lock, NULL), 0);
}

TimeTest(sleeps_longer_than_the_lease)
{
    struct fault_call call;
    char line[64];
    check_int(hl_lock_acquire(lock, NULL), 0);
    int64_t acquired_ns = now_ns();
    snprintf(line, sizeof line, "DEBUG SLEEP %.1f", (double)slow_ms(1600) / 1000);
    close(redis_post(server, line));
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    time_check_lost_in_time(acquired_ns);
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

TimeTest(sleeps_longer_than_the_request_timeout_only_and_a_release_is_repeated)
{
    char line[64];
    check_int(hl_lock_acquire(lock, NULL), 0);
    snprintf(line, sizeof line, "DEBUG SLEEP %.2f", (double)slow_ms(700) / 1000);
    close(redis_post(server, line));
    expect_released(hl_lock_release(lock, NULL), HL_EUNKNOWN);
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
    check_int(hl_lock_acquire_for(others, slow_ms(5000), NULL), 0);
    check_int(hl_lock_release(others, NULL), 0);
}

TimeTest(is_frozen_past_the_lease_and_thawed)
{
    struct fault_call call;
    check_int(hl_lock_acquire(lock, NULL), 0);
    int64_t acquired_ns = now_ns();
    redis_server_freeze(server);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    time_check_lost_in_time(acquired_ns);
    redis_server_thaw(server);
    check_int(fault_call_end(&call), 0);
    check(hl_lock_is_held(others, call.options.owner));
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

static void time_start_with_shim(void)
{
    if (redis_server_has_clock_shim())
        time_start_with(&(struct redis_options){.clock_shim = true}, 1500);
}

static void time_stop_with_shim(void)
{
    if (server)
        time_stop();
}

#define ClockTest(name)                                                                            \
    Test(server_clock, name, .init = time_start_with_shim, .fini = time_stop_with_shim)

/* This is the fault that no lease survives: the key is gone at once. The holder learns of it with
 * its next renewal, and until then two believe: documented, and so it is. */
ClockTest(is_set_forward_and_the_holder_is_told_by_its_next_renewal)
{
    if (!server)
        skip("this build has no clock shim");
    struct fault_call call;
    check_int(hl_lock_acquire(lock, NULL), 0);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    int64_t stepped_ns = now_ns();
    redis_server_step_clock(server, 60000);
    check_int(fault_call_end(&call), 0);
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check(now_ns() - stepped_ns < slow_ms(1500 / 3 + 700) * 1000000);
    check_int(hl_lock_release(lock, NULL), HL_ELOST);
    check(hl_lock_is_held(others, call.options.owner));
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

ClockTest(is_set_back_and_neither_holder_nor_waiter_is_harmed)
{
    if (!server)
        skip("this build has no clock shim");
    struct fault_call call;
    check_int(hl_lock_acquire(lock, NULL), 0);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_server_step_clock(server, -60000);
    check(redis_int(server, "PTTL n") > 30000);
    struct deadline deadline = deadline_in(2000);
    while (!deadline_is_over(deadline)) {
        check(hl_lock_is_held(lock, NULL));
        check(!atomic_load(&call.is_over));
        deadline_nap();
    }
    check_int(hl_lock_release(lock, NULL), 0);
    check_int(fault_call_end(&call), 0);
    check_int(atomic_load(&events.seen[HL_EVENT_LOST]), 0);
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

/* A holder that died before the clock was set back stands for as much longer; a waiter that sleeps
 * until its expiry has to poll all the same. */
ClockTest(is_set_back_and_forward_and_a_waiter_does_not_sleep_on_what_it_heard)
{
    if (!server)
        skip("this build has no clock shim");
    struct fault_call call;
    redis_do(server, "HSET n dead 1");
    redis_server_step_clock(server, -60000);
    redis_do(server, "PEXPIRE n 50000");
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{n}", 1, 5000));
    redis_server_step_clock(server, 60000);
    check_int(fault_call_end(&call), 0); /* not after the 50 s that it heard of */
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
}

/* The tests' own link takes one place; the server keeps 32 descriptors for itself. */
Test(server_clients, are_too_many_for_open_and_it_says_so)
{
    struct redis_server *full = redis_server_start(NULL);
    hl_client_options options = fault_options(NULL);
    hl_client *client_one = NULL;
    hl_error err = HL_ERROR_INIT;
    redis_do(full, "CONFIG SET maxclients 1");
    int rc = hl_client_open(redis_server_url(full), &options, &client_one, &err);
    check(rc == HL_ESERVER || rc == HL_ECONN);
    fault_check_has(err.text, "max number of clients");
    redis_server_stop(full);
}

Test(server_clients, are_too_many_for_a_reconnect_and_it_is_waited_for)
{
    struct redis_server *full = redis_server_start(NULL);
    struct fault_events seen = {0};
    hl_client *one = fault_client(full, &seen);
    hl_lock *held = fault_lock(one, "held"), *free_lock = fault_lock(one, "n");
    struct fault_call call;
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(held, NULL), 0);
    redis_do(full, "CONFIG SET maxclients 1");
    redis_kill_clients(full, REDIS_NORMAL);
    check(fault_wait_event(&seen, HL_EVENT_DISCONNECTED, 5000));
    int rc = hl_lock_acquire_for(free_lock, HL_WAIT_FOREVER, &err);
    check(rc == HL_ESERVER || rc == HL_ECONN);
    fault_check_has(err.text, "max number of clients");
    fault_call_begin(&call, free_lock, fault_owner(one), HL_WAIT_FOREVER);
    check(wait_until(fault_has_waiter, one, 5000));
    redis_do(full, "CONFIG SET maxclients 100");
    check_int(fault_call_end(&call), 0);
    check(hl_lock_is_held(held, NULL));
    check_int(atomic_load(&seen.seen[HL_EVENT_LOST]), 0);
    check_int(hl_lock_release(held, NULL), 0);
    check_int(hl_lock_release_as(free_lock, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
    hl_lock_free(held);
    hl_lock_free(free_lock);
    hl_client_close(one);
    redis_server_stop(full);
}
