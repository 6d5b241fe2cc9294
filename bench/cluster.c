/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Clusters of one, two and three masters on this machine. Its few cores are no place to measure how
 * fast a large cluster is. So nothing here is a rate: the figures are CPU time, requests, messages
 * and bytes, at each node and in the client, for each pair, hold and waiter. While these stay the
 * same from one master to three, masters on machines of their own carry as much as they are many.
 */
#include "cluster.h"

#include "cores.h"
#include "cpu.h"
#include "crew.h"
#include "instant.h"
#include "must.h"
#include "samples.h"

#include <stdio.h>
#include <stdlib.h>

enum { CLUSTERS = 3 };
enum { PAIR_NAMES = 1500, PAIR_THREADS = 20, PAIR_CREW_MS = 200, PAIR_WARM_UP = 1 };
enum { PAIR_TIMEOUT_MS = 60000 }; /* a busy machine is no lost connection */

/* What a busy machine may add: to the CPU time of a pair, beside one master or the next node. */
static const double side_most = 1.25;

enum { SIDE_SINGLE, SIDE_ONE, SIDE_TWO, SIDE_THREE, SIDE_PLAIN, SIDES };

struct side {
    const char *text;
    struct nodes *nodes;
    hl_client *client;
    hl_lock *lock[PAIR_NAMES];
    struct crew *crew;
    int names[NODES_MOST];                     /* at each node */
    double server_us;                          /* a pair, in the last round */
    struct samples server_cpu, client_cpu;     /* CPU time for a pair, of each round */
    struct samples ratio, unequal;             /* to that of one master; between the nodes */
    double pairs, messages, calls[NODES_MOST]; /* in all rounds */
};

/* Does pairs, and returns how many. */
typedef uint64_t side_work(struct side *side);

static void side_open(struct side *side, const char *text, struct nodes *nodes)
{
    char name[64];
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    options.request_timeout_ms = PAIR_TIMEOUT_MS;
    *side = (struct side){.text = text, .nodes = nodes};
    side->client = scenario_client_at(nodes->url, &options);
    for (int i = 0; i < PAIR_NAMES; i++) {
        side->lock[i] = scenario_lock(side->client, "bench:pair:%d", i);
        snprintf(name, sizeof(name), "bench:pair:%d", i);
        side->names[nodes_index(nodes, name)]++;
    }
    side->crew = crew_start(PAIR_THREADS * nodes->count);
}

static void side_forget(struct side *side)
{
    samples_free(&side->server_cpu);
    samples_free(&side->client_cpu);
    samples_free(&side->ratio);
    samples_free(&side->unequal);
    side->server_cpu = side->client_cpu = side->ratio = side->unequal = (struct samples){0};
    side->pairs = side->messages = 0;
    for (int i = 0; i < NODES_MOST; i++)
        side->calls[i] = 0;
}

static void side_close(struct side *side)
{
    crew_stop(side->crew);
    for (int i = 0; i < PAIR_NAMES; i++)
        hl_lock_free(side->lock[i]);
    hl_client_close(side->client);
    side_forget(side);
}

/* A pair of each name, so that each node gets its share in each round. */
static uint64_t side_walk(struct side *side)
{
    for (int i = 0; i < PAIR_NAMES; i++) {
        scenario_acquire(side->lock[i]);
        scenario_release(side->lock[i]);
    }
    return PAIR_NAMES;
}

static uint64_t member_pairs(void *arg, int member, const atomic_bool *is_over)
{
    const struct side *side = arg;
    uint64_t done = 0;

    for (int i = member; !atomic_load_explicit(is_over, memory_order_relaxed); done++) {
        scenario_acquire(side->lock[i]);
        scenario_release(side->lock[i]);
        i = i + CREW_MOST < PAIR_NAMES ? i + CREW_MOST : member;
    }
    return done;
}

static uint64_t side_crowd(struct side *side)
{
    return crew_round(side->crew, member_pairs, side, instant_after_ms(PAIR_CREW_MS));
}

/* The dearest node's CPU time for a pair over the cheapest one's. */
static double side_unequal(const struct side *side, const double *us)
{
    double least = us[0] / side->names[0], most = least;

    for (int i = 1; i < side->nodes->count; i++) {
        double each = us[i] / side->names[i];
        least = each < least ? each : least;
        most = each > most ? each : most;
    }
    return most / least;
}

static void side_round(struct side *side, side_work *work)
{
    struct server *node = side->nodes->node;
    double us[NODES_MOST] = {0}, sum = 0;

    for (int i = 0; i < side->nodes->count; i++)
        us[i] = server_cpu_us(&node[i]);
    double client_us = cpu_own_us();
    double pairs = (double)work(side);
    client_us = cpu_own_us() - client_us;
    for (int i = 0; i < side->nodes->count; i++) {
        us[i] = server_cpu_us(&node[i]) - us[i];
        sum += us[i];
    }
    side->server_us = sum / pairs;
    samples_add(&side->server_cpu, side->server_us);
    samples_add(&side->client_cpu, client_us / pairs);
    samples_add(&side->unequal, side_unequal(side, us));
    side->pairs += pairs;
}

/* Takes what was counted before off; called again, it adds what has been counted since. */
static void side_count(struct side *side, double sign)
{
    for (int i = 0; i < side->nodes->count; i++) {
        side->calls[i] += sign * (double)server_calls(&side->nodes->node[i], "evalsha");
        if (side->nodes->dir[0])
            side->messages += sign * server_bus_messages(&side->nodes->node[i]);
    }
}

/* Rounds of all sides in turn, so that whatever else the machine does is shared by all. Sides that
 * share their nodes count messages apart, because each counts around its own round. */
static void sides_run(struct side *sides, int rounds, side_work *work)
{
    for (int i = 0; i < rounds + PAIR_WARM_UP; i++) {
        for (int n = 0; n < SIDES; n++) {
            struct side *side = &sides[i % 2 ? SIDES - 1 - n : n];
            if (i <= PAIR_WARM_UP)
                side_forget(side);
            side_count(side, -1);
            side_round(side, work);
            side_count(side, 1);
        }
        for (int n = 0; n < SIDES; n++)
            samples_add(&sides[n].ratio, sides[n].server_us / sides[SIDE_ONE].server_us);
    }
}

static void sides_tell_cpu(struct report *report, struct side *sides, const char *prefix)
{
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &sides[i];
        report_figure(report, report_name(prefix, side->text, "server CPU, all nodes"),
                      samples_quantile(&side->server_cpu, 0.5), "us");
        report_figure(report, report_name(prefix, side->text, "client CPU"),
                      samples_quantile(&side->client_cpu, 0.5), "us");
    }
}

/* How many times its even share of the requests the busiest node gets. */
static double side_crowding(const struct side *side)
{
    double most = 0, sum = 0;

    for (int i = 0; i < side->nodes->count; i++) {
        most = side->calls[i] > most ? side->calls[i] : most;
        sum += side->calls[i];
    }
    return most * side->nodes->count / sum;
}

/* Requests that are not where the slots say: each pair is two. One that had no answer on a busy
 * machine was sent again. */
static double side_strays(const struct side *side)
{
    double strays = 0;

    for (int i = 0; i < side->nodes->count; i++) {
        double due = 2 * side->pairs * side->names[i] / PAIR_NAMES;
        strays += side->calls[i] > due ? side->calls[i] - due : due - side->calls[i];
    }
    return strays;
}

static void sides_tell_spread(struct report *report, struct side *sides)
{
    struct side *three = &sides[SIDE_THREE], *plain = &sides[SIDE_PLAIN];

    report_at_most(report, "cluster_pair_2_masters_vs_1",
                   samples_quantile(&sides[SIDE_TWO].ratio, 0.5), "x", side_most);
    report_at_most(report, "cluster_pair_3_masters_vs_1", samples_quantile(&three->ratio, 0.5), "x",
                   side_most);
    report_at_most(report, "pair, 3 masters: the dearest node's CPU over the cheapest's",
                   samples_quantile(&three->unequal, 0.5), "x", side_most);
    report_at_most(report, "pair, 3 masters: requests not at their slot's node, of 1,000",
                   500 * side_strays(three) / three->pairs, "", 1);
    report_at_most(report, "pair, 3 masters: the busiest node over an even share",
                   side_crowding(three), "x", 1.1);
    report_at_most(report, "pair, 3 masters: messages between nodes, for 1,000 pairs",
                   1000 * three->messages / three->pairs, "", 0);
    report_figure(report, "pair, 3 masters, plain pub/sub: the same",
                  1000 * plain->messages / plain->pairs, "");
}

static void sides_measure(struct bench *bench, struct side *sides)
{
    const int rounds = bench->is_quick ? 8 : 30;

    sides_run(sides, rounds, side_walk);
    sides_tell_cpu(&bench->report, sides, "pair");
    sides_tell_spread(&bench->report, sides);

    sides_run(sides, rounds, side_crowd);
    sides_tell_cpu(&bench->report, sides, "20 threads for each master");
    report_at_most(&bench->report, "cluster_load_3_masters_vs_1",
                   samples_quantile(&sides[SIDE_THREE].ratio, 0.5), "x", side_most);
}

/* Servers on one core, the client on another, as in other scenarios: where a wake-up goes to
 * decides more of the CPU time than the work does. */
static void sides_place(struct nodes *single, const struct nodes *clusters)
{
    int server_core, client_core;

    if (!cores_pick(&server_core, &client_core))
        return;
    cores_pin_thread(client_core);
    cores_pin_process(single->node[0].pid, server_core);
    for (int i = 0; i < CLUSTERS; i++)
        for (int n = 0; n < clusters[i].count; n++)
            cores_pin_process(clusters[i].node[n].pid, server_core);
}

/* `clusters`: of one, two and three masters. */
static void cluster_pairs(struct bench *bench, struct nodes *single, struct nodes *clusters)
{
    struct side *sides = must_alloc(SIDES, sizeof(*sides));

    report_heading("acquire and release, a single server and clusters");
    sides_place(single, clusters);
    side_open(&sides[SIDE_SINGLE], "single server", single);
    side_open(&sides[SIDE_ONE], "1 master", &clusters[0]);
    side_open(&sides[SIDE_TWO], "2 masters", &clusters[1]);
    side_open(&sides[SIDE_THREE], "3 masters", &clusters[2]);
    nodes_set_sharded(&clusters[2], false);
    side_open(&sides[SIDE_PLAIN], "3 masters, plain pub/sub", &clusters[2]);
    nodes_set_sharded(&clusters[2], true);
    sides_measure(bench, sides);
    for (int i = 0; i < SIDES; i++)
        side_close(&sides[i]);
    free(sides);
    cores_free(single->node[0].pid);
    for (int i = 0; i < CLUSTERS; i++)
        for (int n = 0; n < clusters[i].count; n++)
            cores_free_process(clusters[i].node[n].pid);
}

void scenario_cluster(struct bench *bench)
{
    struct nodes single = nodes_single(&bench->server), clusters[CLUSTERS];

    for (int i = 0; i < CLUSTERS; i++)
        nodes_start(&clusters[i], i + 1);
    cluster_pair(bench, &clusters[CLUSTERS - 1]);
    cluster_pairs(bench, &single, clusters);
    for (int i = 0; i < CLUSTERS - 1; i++)
        nodes_stop(&clusters[i]);
    report_heading("100,000 locks held by one process, a single server and a cluster");
    cluster_holds(bench, &single, "single server");
    cluster_holds(bench, &clusters[CLUSTERS - 1], "3 masters");
    report_heading("10,000 waiters for a name each, a single server and a cluster");
    cluster_waiters(bench, &single, "single server");
    cluster_waiters(bench, &clusters[CLUSTERS - 1], "3 masters");
    nodes_stop(&clusters[CLUSTERS - 1]);
}
