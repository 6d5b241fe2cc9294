/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A server that restarts, forgets, refuses, stalls or is tampered with, while processes hand one
 * lock on: by grants, passes and retained locks, with posted releases among them. */

#include "support/crowd.h"
#include "support/redis_probe.h"
#include "support/test.h"

/* On a busy machine a thread gets its turn a little later; and a reconnect takes its time. */
enum { THREADS = 3, SLACK_MS = 1500 };

static struct redis_server *server;
static struct crowd *crowd;

static void start_with(const struct redis_options *options)
{
    server = redis_server_start(options);
    crowd = crowd_start(THREADS, HL_ESERVER);
    crowd_begin(crowd, server);
}

static void start(void)
{
    start_with(NULL);
}

static void start_keeping(void)
{
    start_with(&(struct redis_options){.appendonly = true});
}

/* Reading its file takes long: 50 us for each command. */
static void start_loading_slowly(void)
{
    start_with(&(struct redis_options){
        .appendonly = true, .may_be_loading = true, .config = "key-load-delay 50"});
}

static void stop(void)
{
    redis_server_stop(server);
}

static void expect_recovery(void)
{
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, false);
}

/* A holder whose data were lost learns of it by its next renewal. */
static void expect_recovery_from_loss(void)
{
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_go_on(CROWD_LEASE_MS);
    crowd_excuse_no_more(crowd);
    expect_recovery();
}

/* Every command bounces sooner or later, the releases and keeps among them. */
Test(contended_server, flushed_scripts_cost_a_trip, .init = start, .fini = stop)
{
    struct deadline deadline = deadline_in(1000);
    while (!deadline_is_over(deadline)) {
        redis_do(server, "SCRIPT FLUSH");
        crowd_go_on(5);
    }
    expect_recovery();
}

Test(contended_server, a_restart_with_its_data_costs_no_exclusion, .init = start_keeping,
     .fini = stop)
{
    for (int i = 0; i < 4; i++) {
        redis_server_restart(server);
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    }
    expect_recovery();
}

Test(contended_server, a_restart_without_its_data_is_recovered_from, .init = start, .fini = stop)
{
    crowd_excuse(crowd);
    for (int i = 0; i < 3; i++) {
        redis_server_restart(server);
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    }
    expect_recovery_from_loss();
}

static bool server_has_loaded(void *arg)
{
    (void)arg;
    return strcmp(redis_str(server, "PING"), "PONG") == 0;
}

Test(contended_server, a_server_that_is_loading_is_waited_for, .init = start_loading_slowly,
     .fini = stop)
{
    crowd_go_on(1000);
    /* And 2 seconds of it, however little the crowd has done. */
    redis_do(server, "EVAL %s 0", "for i = 1, 40000 do redis.call('INCR', 'ballast') end");
    redis_server_restart(server);
    check(strstr(redis_str(server, "DBSIZE"), "LOADING") != NULL);
    check(wait_until(server_has_loaded, NULL, 20000));
    expect_recovery();
}

/* A queued waiter is granted the lock all the same; then no client acquires until there is memory.
 */
Test(contended_server, a_full_server_grants_and_frees, .init = start, .fini = stop)
{
    for (int i = 0; i < 4; i++) {
        redis_do(server, "CONFIG SET maxmemory 1");
        check(redis_wait_int(server, 0, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS, "EXISTS crowd"));
        redis_do(server, "CONFIG SET maxmemory 0");
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    }
    check_int(crowd_losses(crowd), 0);
    expect_recovery();
}

static void be_a_replica(int64_t ms)
{
    redis_do(server, "REPLICAOF 127.0.0.1 1"); /* no server is there: it keeps its data */
    crowd_go_on(ms);
    redis_do(server, "REPLICAOF NO ONE");
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
}

Test(contended_server, a_server_that_takes_no_writes_for_a_time_costs_no_exclusion, .init = start,
     .fini = stop)
{
    be_a_replica(CROWD_LEASE_MS / 5);
    be_a_replica(CROWD_LEASE_MS * 3 / 2);
    expect_recovery();
}

Test(contended_server, a_strangers_deletes_are_recovered_from, .init = start, .fini = stop)
{
    crowd_excuse(crowd);
    for (int i = 0; i < 30; i++) {
        redis_do(server, i % 3 ? "DEL crowd" : "DEL crowd hirelock_queue:{crowd}");
        crowd_go_on(20);
    }
    expect_recovery_from_loss();
}

Test(contended_server, flushed_data_are_recovered_from, .init = start, .fini = stop)
{
    crowd_excuse(crowd);
    for (int i = 0; i < 10; i++) {
        redis_do(server, "FLUSHALL");
        crowd_go_on(50);
    }
    expect_recovery_from_loss();
}

/* The queue alone is no promise: each waiter asks again. */
Test(contended_server, a_lost_queue_costs_a_poll, .init = start, .fini = stop)
{
    struct deadline deadline = deadline_in(500);
    while (!deadline_is_over(deadline)) {
        redis_do(server, "DEL hirelock_queue:{crowd}");
        crowd_go_on(3);
    }
    crowd_expect_served(crowd, 2 * CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, false);
}

/* Commands wait in the server, and run when their connections are long gone. */
static void pause_for(int64_t ms, const char *what)
{
    redis_do(server, "CLIENT PAUSE %d %s", (int)slow_ms(ms), what);
    crowd_go_on(ms);
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
}

Test(contended_server, paused_commands_cost_no_exclusion, .init = start, .fini = stop)
{
    pause_for(CROWD_LEASE_MS / 5, "ALL");
    pause_for(CROWD_LEASE_MS * 3 / 2, "WRITE");
    pause_for(CROWD_LEASE_MS * 3 / 2, "ALL");
    expect_recovery();
}

Test(contended_server, a_server_that_stands_still_costs_no_exclusion, .init = start, .fini = stop)
{
    for (int i = 1; i <= 3; i++) {
        int link = redis_post(server, "DEBUG SLEEP %d.%d", (int)slow_ms(500 * i) / 1000,
                              (int)slow_ms(500 * i) % 1000 / 100);
        crowd_go_on(500 * i);
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
        close(link);
    }
    expect_recovery();
}
