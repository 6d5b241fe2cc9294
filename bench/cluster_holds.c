/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * 100,000 holds of one process, divided among the masters: what their renewal costs each side, and
 * whether it is in time by the servers' word. The smallest rest of a lease (PTTL) that is seen is
 * two thirds of the lease when each renewal is in time; a sixth is allowed for a busy machine. Then
 * one master stands still for a renewal period, which is not to delay the renewals of the others.
 */
#include "cluster.h"
#include "held.h"
#include "instant.h"
#include "must.h"

#include <signal.h>
#include <stdio.h>

enum { HOLDS_SWEEP_PAUSE_MS = 1000, HOLDS_SWEEP_CHUNK = 1000, HOLDS_PATIENCE_MS = 120000 };

static const double holds_least_rest = 0.5; /* of the lease */

static void sweep_ask(struct nodes *nodes, int node, const char *name)
{
    must(redisAppendCommand(nodes->node[node].link, "PTTL %s", name) == REDIS_OK, "no PTTL");
}

static int64_t sweep_answer(struct nodes *nodes, int node)
{
    void *reply = NULL;

    must(redisGetReply(nodes->node[node].link, &reply) == REDIS_OK, "PTTL: no answer");
    const redisReply *answer = reply;
    int64_t left_ms = answer->type == REDIS_REPLY_INTEGER ? answer->integer : -3;
    freeReplyObject(reply);
    must(left_ms != -3, "PTTL: no integer");
    return left_ms;
}

/* The smallest rest of all leases at the nodes from `first` on, in milliseconds; negative: a key is
 * gone. */
static int64_t holds_sweep(struct nodes *nodes, int first)
{
    int64_t least_ms = INT64_MAX;
    int asked[NODES_MOST] = {0};

    for (int i = 0; i < HELD; i++) {
        char name[64];
        snprintf(name, sizeof(name), "bench:held:%d", i);
        int node = nodes_index(nodes, name);
        if (node >= first) {
            sweep_ask(nodes, node, name);
            asked[node]++;
        }
        if ((i + 1) % HOLDS_SWEEP_CHUNK != 0)
            continue;
        for (node = first; node < nodes->count; node++)
            for (; asked[node] > 0; asked[node]--) {
                int64_t left_ms = sweep_answer(nodes, node);
                least_ms = left_ms < least_ms ? left_ms : least_ms;
            }
    }
    return least_ms;
}

static double holds_least(struct nodes *nodes, int first, int64_t ms)
{
    int64_t until = instant_after_ms(ms), least_ms = INT64_MAX;

    do {
        int64_t left_ms = holds_sweep(nodes, first);
        least_ms = left_ms < least_ms ? left_ms : least_ms;
        instant_sleep_ms(HOLDS_SWEEP_PAUSE_MS);
    } while (instant_now() < until);
    return (double)least_ms;
}

/* The holds at the node that stands still have been renewed within a third of the lease before, and
 * are once more behind it. */
static void holds_stand_still(struct bench *bench, struct nodes *nodes, struct held *held,
                              const char *text, int64_t lease_ms)
{
    must(kill(nodes->node[0].pid, SIGSTOP) == 0, "a node cannot be stopped");
    double least_ms = holds_least(nodes, 1, lease_ms / 3);
    kill(nodes->node[0].pid, SIGCONT);
    report_at_least(
        &bench->report,
        report_name("100,000 holds", text, "one stands still: the others' least rest of a lease"),
        least_ms / (double)lease_ms, "", holds_least_rest);
    int64_t deadline = instant_after_ms(HOLDS_PATIENCE_MS);
    while (holds_sweep(nodes, 0) < lease_ms / 2) {
        must(instant_now() < deadline, "the holds of the node that stood still are not renewed");
        instant_sleep_ms(HOLDS_SWEEP_PAUSE_MS);
    }
    report_at_most(&bench->report, report_name("100,000 holds", text, "lost, all in all"),
                   (double)scenario_stats(held_client(held)).losses, "", 0);
}

static void holds_tell(struct report *report, const char *text, const struct held_cost *cost)
{
    static const char prefix[] = "100,000 holds";

    report_figure(report, report_name(prefix, text, "renewals per EVALSHA"),
                  cost->renewals / cost->calls, "");
    report_figure(report, report_name(prefix, text, "server CPU per renewal, all nodes"),
                  cost->server_us / cost->renewals, "us");
    report_figure(report, report_name(prefix, text, "client CPU per renewal"),
                  cost->client_us / cost->renewals, "us");
}

void cluster_holds(struct bench *bench, struct nodes *nodes, const char *text)
{
    const int64_t lease_ms = bench->is_quick ? 15000 : 30000;
    struct held *held = held_open(nodes, lease_ms);
    double bytes = nodes_sum(nodes, server_bytes);
    char name[64];

    held_acquire(held);
    bytes = nodes_sum(nodes, server_bytes) - bytes;
    report_figure(&bench->report, report_name("100,000 holds", text, "server bytes of each"),
                  bytes / HELD, "bytes");
    held_renew(held, 2L * HELD); /* it takes so many until those of a slot go together */
    struct held_cost cost = held_renew(held, 2L * HELD);
    holds_tell(&bench->report, text, &cost);
    report_at_least(
        &bench->report, report_name("100,000 holds", text, "least rest of a lease, of the lease"),
        holds_least(nodes, 0, lease_ms * 2 / 3) / (double)lease_ms, "", holds_least_rest);
    snprintf(name, sizeof(name), "100,000 holds, %s", text);
    held_tell_losses(held, &bench->report, name);
    if (nodes->count > 1)
        holds_stand_still(bench, nodes, held, text, lease_ms);
    held_close(held);
    nodes_flush(nodes);
}
