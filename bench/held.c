/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Locks that are held: the threads that own them stay until the end. */
#include "held.h"

#include "cpu.h"
#include "instant.h"
#include "must.h"
#include "scenario.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAVE_POLL_MS = 50, WAVE_RESTS = 10 };

struct holder {
    pthread_t thread;
    struct held *held;
    int first;
};

struct held {
    struct nodes *nodes;
    hl_client *client;
    pthread_barrier_t acquired, release;
    struct holder holder[HELD_THREADS];
    hl_lock *lock[HELD];
    atomic_uint warnings;
};

static void held_on_event(const hl_event *event, void *arg)
{
    if (event->kind == HL_EVENT_JEOPARDY)
        atomic_fetch_add(&((struct held *)arg)->warnings, 1);
}

struct held *held_open(struct nodes *nodes, int64_t lease_ms)
{
    struct held *held = must_alloc(1, sizeof(*held));
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    options.watchdog_timeout_ms = lease_ms;
    options.on_event = held_on_event;
    options.arg = held;
    held->nodes = nodes;
    held->client = scenario_client_at(nodes->url, &options);
    for (int i = 0; i < HELD; i++)
        held->lock[i] = scenario_lock(held->client, "bench:held:%d", i);
    pthread_barrier_init(&held->acquired, NULL, HELD_THREADS + 1);
    pthread_barrier_init(&held->release, NULL, HELD_THREADS + 1);
    return held;
}

hl_client *held_client(struct held *held)
{
    return held->client;
}

static void *holder_run(void *arg)
{
    const struct holder *holder = arg;
    struct held *held = holder->held;

    for (int i = holder->first; i < holder->first + HELD_EACH; i++)
        scenario_acquire(held->lock[i]);
    pthread_barrier_wait(&held->acquired);
    pthread_barrier_wait(&held->release);
    for (int i = holder->first; i < holder->first + HELD_EACH; i++)
        hl_lock_release(held->lock[i], NULL);
    return NULL;
}

void held_acquire(struct held *held)
{
    for (int i = 0; i < HELD_THREADS; i++) {
        struct holder *holder = &held->holder[i];
        holder->held = held;
        holder->first = i * HELD_EACH;
        must(pthread_create(&holder->thread, NULL, holder_run, holder) == 0, "no more threads");
    }
    pthread_barrier_wait(&held->acquired);
}

void held_close(struct held *held)
{
    pthread_barrier_wait(&held->release);
    for (int i = 0; i < HELD_THREADS; i++)
        pthread_join(held->holder[i].thread, NULL);
    for (int i = 0; i < HELD; i++)
        hl_lock_free(held->lock[i]);
    hl_client_close(held->client);
    pthread_barrier_destroy(&held->acquired);
    pthread_barrier_destroy(&held->release);
    free(held);
}

struct held_cost held_cost(struct held *held)
{
    return (struct held_cost){.server_us = nodes_sum(held->nodes, server_cpu_us),
                              .script_us = nodes_command_us(held->nodes, "evalsha"),
                              .client_us = cpu_own_us(),
                              .calls = nodes_calls(held->nodes, "evalsha"),
                              .renewals = (double)scenario_stats(held->client).renewals};
}

static void held_add(struct held_cost *sum, struct held_cost before, struct held_cost after)
{
    sum->server_us += after.server_us - before.server_us;
    sum->script_us += after.script_us - before.script_us;
    sum->client_us += after.client_us - before.client_us;
    sum->calls += after.calls - before.calls;
    sum->renewals += after.renewals - before.renewals;
}

/* A wave has begun when the count moves, and is over when it rests. */
void held_wave(struct held *held, struct held_cost *sum)
{
    struct held_cost before;
    uint64_t first = scenario_stats(held->client).renewals, seen, last;
    int rests = 0;

    do {
        before = held_cost(held);
        instant_sleep_ms(WAVE_POLL_MS);
        seen = scenario_stats(held->client).renewals;
    } while (seen == first);
    while (rests < WAVE_RESTS) {
        instant_sleep_ms(WAVE_POLL_MS);
        last = seen;
        seen = scenario_stats(held->client).renewals;
        rests = seen == last ? rests + 1 : 0;
    }
    held_add(sum, before, held_cost(held));
}

struct held_cost held_renew(struct held *held, uint64_t renewals)
{
    uint64_t end = scenario_stats(held->client).renewals + renewals;
    struct held_cost before = held_cost(held), cost = {0};

    while (scenario_stats(held->client).renewals < end)
        instant_sleep_ms(WAVE_POLL_MS);
    held_add(&cost, before, held_cost(held));
    return cost;
}

void held_tell_losses(struct held *held, struct report *report, const char *name)
{
    char text[96];

    snprintf(text, sizeof(text), "%s: lost", name);
    report_at_most(report, text, (double)scenario_stats(held->client).losses, "", 0);
    snprintf(text, sizeof(text), "%s: warned of (renewal overdue)", name);
    report_at_most(report, text, (double)atomic_load(&held->warnings), "", 0);
    snprintf(text, sizeof(text), "%s: keys on the server at the end", name);
    report_at_least(report, text, nodes_keys(held->nodes), "", HELD);
}
