/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * 1,000 threads of one process wait for one name: what that costs the server while nothing happens,
 * while it stands still, and when the lock goes from one to the next.
 */
#include "instant.h"
#include "must.h"
#include "raw.h"
#include "scenario.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAITERS = 1000, WAITERS_STACK = 256 * 1024, WAITERS_STANDSTILL_MS = 3000 };

static void *waiter_run(void *arg)
{
    scenario_acquire(arg);
    scenario_release(arg);
    return NULL;
}

static void waiters_start(pthread_t *threads, hl_lock *lock)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, WAITERS_STACK);
    for (int i = 0; i < WAITERS; i++)
        must(pthread_create(&threads[i], &attr, waiter_run, lock) == 0, "no more threads");
    pthread_attr_destroy(&attr);
}

static void waiters_gather(struct bench *bench, hl_client *client, const char *channel)
{
    int64_t deadline = instant_after_ms(30000);

    while (scenario_stats(client).waiters_now < WAITERS ||
           server_subscribers(&bench->server, channel) < 1) {
        must(instant_now() < deadline, "the waiters do not come together");
        instant_sleep_ms(1);
    }
}

/* Nobody releases: what the process asks is its poll. */
static void waiters_idle(struct bench *bench)
{
    int64_t ms = bench->is_quick ? 10000 : 30000;
    int64_t before = server_calls(&bench->server, "evalsha");
    int64_t began = instant_now();

    instant_sleep_ms(ms);
    double seconds = (double)(instant_now() - began) / 1e9;
    double calls = (double)(server_calls(&bench->server, "evalsha") - before);
    report_at_most(&bench->report, "idle_evalsha_per_second", calls / seconds, "/s", 1);
}

/* The server stands still for more than two polls: what was written meanwhile, without the pings of
 * the link's own, is what is under way. */
static void waiters_standstill(struct bench *bench, hl_client *client)
{
    int64_t pings = server_calls(&bench->server, "ping");
    uint64_t before = scenario_stats(client).commands;

    must(kill(bench->server.pid, SIGSTOP) == 0, "the server cannot be stopped");
    instant_sleep_ms(WAITERS_STANDSTILL_MS);
    uint64_t written = scenario_stats(client).commands - before;
    kill(bench->server.pid, SIGCONT);
    instant_sleep_ms(50);
    pings = server_calls(&bench->server, "ping") - pings;
    report_at_most(&bench->report, "1,000 waiters: requests under way at most",
                   (double)written - (double)pings, "", 1);
}

/* From the first waiter to the last. */
static void waiters_drain(struct bench *bench, struct raw *holder, const pthread_t *threads)
{
    int64_t calls = server_calls(&bench->server, "evalsha"), began = instant_now();

    raw_release(holder);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    double us = (double)(instant_now() - began) / 1e3;
    calls = server_calls(&bench->server, "evalsha") - calls;
    report_figure(&bench->report, "1,000 waiters, served in turn: EVALSHA per hold",
                  (double)calls / WAITERS, "");
    report_figure(&bench->report, "1,000 waiters, served in turn: time per hold", us / WAITERS,
                  "us");
}

void scenario_waiters(struct bench *bench)
{
    static pthread_t threads[WAITERS];
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    struct raw holder;

    report_heading("1,000 threads wait for one name, in one process");
    options.request_timeout_ms = 4L * WAITERS_STANDSTILL_MS;
    hl_client *client = scenario_client(bench, &options);
    hl_lock *lock = scenario_lock(client, "bench:waited:%d", 0);
    raw_open(&holder, &bench->server, "bench:waited:0", 0);
    snprintf(holder.lease, sizeof(holder.lease), "%d", INT_MAX);
    must(raw_acquire(&holder), "the lock is not free");

    int64_t calls = server_calls(&bench->server, "evalsha");
    waiters_start(threads, lock);
    waiters_gather(bench, client, holder.channel);
    calls = server_calls(&bench->server, "evalsha") - calls;
    report_figure(&bench->report, "1,000 waiters come: EVALSHA for all of them", (double)calls, "");
    report_at_most(&bench->report, "1,000 waiters: subscriptions",
                   (double)server_subscribers(&bench->server, holder.channel), "", 1);
    waiters_idle(bench);
    waiters_standstill(bench, client);
    waiters_drain(bench, &holder, threads);

    raw_close(&holder);
    hl_lock_free(lock);
    hl_client_close(client);
}
