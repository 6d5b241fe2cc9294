/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * 10,000 asynchronous waiters, each for a name of its own that another client holds: the dearest
 * case, for waiters of one name share its subscription and its poll. And clients that are open and
 * do nothing.
 */
#include "cluster.h"
#include "cpu.h"
#include "heap.h"
#include "instant.h"
#include "must.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAITERS = 10000, WAITERS_PATIENCE_MS = 60000, WAITERS_LEASE_MS = 600000, CLIENTS = 100 };

struct line {
    struct nodes *nodes;
    hl_client *client;
    hl_lock *lock[WAITERS];
    hl_owner *owner[WAITERS];
    hl_cancel *cancel;
    atomic_int ended;
};

/* The keys of another's locks. */
static void line_occupy(struct nodes *nodes)
{
    char name[64];

    for (int i = 0; i < WAITERS; i++) {
        snprintf(name, sizeof(name), "bench:wanted:%d", i);
        struct server *server = &nodes->node[nodes_index(nodes, name)];
        server_int(server, "HSET %s 00000000-0000-4000-8000-000000000000:1 1", name);
        server_int(server, "PEXPIRE %s %d", name, WAITERS_LEASE_MS);
    }
}

static void line_on_end(int code, const hl_error *err, void *arg)
{
    (void)err;
    must(code == HL_ECANCELED, "a waiter ended: %s", hl_err_name(code));
    atomic_fetch_add(&((struct line *)arg)->ended, 1);
}

static struct line *line_open(struct nodes *nodes)
{
    struct line *line = must_alloc(1, sizeof(*line));

    line->nodes = nodes;
    line->client = scenario_client_at(nodes->url, NULL);
    must(hl_cancel_new(&line->cancel) == 0, "no cancel");
    for (int i = 0; i < WAITERS; i++) {
        line->lock[i] = scenario_lock(line->client, "bench:wanted:%d", i);
        must(hl_owner_new(line->client, &line->owner[i]) == 0, "no owner");
    }
    return line;
}

/* A subscription is confirmed before the waiter asks again, and that answer is the last of its
 * coming; so it has come when all channels are there and the requests are at rest. */
static void line_come(struct line *line, double channels)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    int64_t deadline = instant_after_ms(WAITERS_PATIENCE_MS);

    options.cancel = line->cancel;
    for (int i = 0; i < WAITERS; i++) {
        options.owner = line->owner[i];
        must(hl_lock_acquire_async(line->lock[i], &options, line_on_end, line) == 0, "no acquire");
    }
    while (nodes_sum(line->nodes, server_all_channels) < channels) {
        must(instant_now() < deadline, "the waiters do not listen");
        instant_sleep_ms(10);
    }
}

static void line_go(struct line *line)
{
    int64_t deadline = instant_after_ms(WAITERS_PATIENCE_MS);

    hl_cancel_fire(line->cancel);
    while (atomic_load(&line->ended) < WAITERS) {
        must(instant_now() < deadline, "the waiters do not end");
        instant_sleep_ms(1);
    }
}

static void line_close(struct line *line)
{
    for (int i = 0; i < WAITERS; i++) {
        hl_lock_free(line->lock[i]);
        hl_owner_free(line->owner[i]);
    }
    hl_cancel_free(line->cancel);
    hl_client_close(line->client);
    nodes_flush(line->nodes);
    free(line);
}

static void waiters_tell(struct bench *bench, const char *text, const char *what, double value,
                         const char *unit)
{
    report_figure(&bench->report, report_name("waiters", text, what), value, unit);
}

/* What they cost while nobody releases: their poll. */
static void waiters_idle(struct bench *bench, struct line *line, const char *text)
{
    int64_t began = instant_now();
    double calls = nodes_calls(line->nodes, "evalsha"), client_us = cpu_own_us();
    double server_us = nodes_sum(line->nodes, server_cpu_us);

    instant_sleep_ms(bench->is_quick ? 4000 : 10000);
    server_us = nodes_sum(line->nodes, server_cpu_us) - server_us;
    client_us = cpu_own_us() - client_us;
    calls = nodes_calls(line->nodes, "evalsha") - calls;
    double seconds = (double)(instant_now() - began) / 1e9;
    report_at_most(&bench->report, report_name("waiters", text, "requests per second, each name"),
                   calls / seconds / WAITERS, "/s", 1);
    waiters_tell(bench, text, "server CPU per request of a poll", server_us / calls, "us");
    waiters_tell(bench, text, "client CPU per request of a poll", client_us / calls, "us");
}

static void waiters_measure(struct bench *bench, struct nodes *nodes, const char *text)
{
    const double channels = WAITERS * (nodes->dir[0] ? 3 : 2);
    struct line *line = line_open(nodes);
    double bytes = nodes_sum(nodes, server_bytes), server_us = nodes_sum(nodes, server_cpu_us);
    double calls = nodes_calls(nodes, "evalsha"), client_us = cpu_own_us();

    heap_count_begin();
    line_come(line, channels);
    server_us = nodes_sum(nodes, server_cpu_us) - server_us;
    client_us = cpu_own_us() - client_us;
    calls = nodes_calls(nodes, "evalsha") - calls;
    waiters_tell(bench, text, "requests of each that comes", calls / WAITERS, "");
    waiters_tell(bench, text, "server CPU of each that comes", server_us / WAITERS, "us");
    waiters_tell(bench, text, "client CPU of each that comes", client_us / WAITERS, "us");
    waiters_tell(bench, text, "subscriptions of each",
                 nodes_sum(nodes, server_all_channels) / WAITERS, "");
    waiters_idle(bench, line, text);
    waiters_tell(bench, text, "client bytes of each", (double)heap_count() / WAITERS, "bytes");
    waiters_tell(bench, text, "server bytes of each, all nodes",
                 (nodes_sum(nodes, server_bytes) - bytes) / WAITERS, "bytes");
    line_go(line);
    heap_count_end();
    line_close(line);
}

/* The listening client's two connections to each master. */
static void waiters_clients(struct bench *bench, struct nodes *nodes, const char *text)
{
    hl_client *client[CLIENTS];
    double bytes = nodes_sum(nodes, server_bytes);
    double connections = nodes_sum(nodes, server_clients);

    for (int i = 0; i < CLIENTS; i++)
        client[i] = scenario_client_at(nodes->url, NULL);
    for (int i = 0; i < CLIENTS; i++)
        while (scenario_stats(client[i]).nodes_now < (uint64_t)nodes->count)
            instant_sleep_ms(1);
    connections = nodes_sum(nodes, server_clients) - connections;
    bytes = nodes_sum(nodes, server_bytes) - bytes;
    report_at_most(&bench->report,
                   report_name("clients", text, "connections of each, at each node"),
                   connections / CLIENTS / nodes->count, "", 2);
    report_figure(&bench->report,
                  report_name("clients", text, "server bytes of each, at each node"),
                  bytes / CLIENTS / nodes->count, "bytes");
    for (int i = 0; i < CLIENTS; i++)
        hl_client_close(client[i]);
}

void cluster_waiters(struct bench *bench, struct nodes *nodes, const char *text)
{
    line_occupy(nodes);
    waiters_measure(bench, nodes, text);
    waiters_clients(bench, nodes, text);
}
