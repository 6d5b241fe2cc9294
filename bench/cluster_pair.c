/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire and release by one thread at a cluster, beside the same at a single server. The request
 * to a cluster declares more keys, its message is sharded, and the node looks at each key's slot.
 */
#include "cluster.h"

#include "cores.h"
#include "rounds.h"

#include <stdio.h>

enum { PAIR_ROUND_MS = 50, PAIR_NODE = 0 };

enum { PAIR_SINGLE, PAIR_CLUSTER, PAIR_SIDES };

static const char pair_name[] = "bench:own:%d";

/* The number of a lock which the node serves. */
static int pair_number(const struct nodes *nodes)
{
    char name[64];
    int number = 0;

    do
        snprintf(name, sizeof(name), pair_name, ++number);
    while (nodes_index(nodes, name) != PAIR_NODE);
    return number;
}

static void pair_tell(struct bench *bench, const struct rounds *rounds, const char *placement,
                      bool is_judged)
{
    double single = rounds->side[PAIR_SINGLE].rate, cluster = rounds->side[PAIR_CLUSTER].rate;
    char name[96];

    snprintf(name, sizeof(name), "pair, %s: a single server", placement);
    report_figure(&bench->report, name, 1e6 / single, "us");
    snprintf(name, sizeof(name), "pair, %s: a cluster", placement);
    report_figure(&bench->report, name, 1e6 / cluster, "us");
    snprintf(name, sizeof(name), "pair, %s: a cluster over a single server", placement);
    if (is_judged)
        report_at_most(&bench->report, "cluster_pair_vs_single_pair", single / cluster, "x", 1.05);
    else
        report_figure(&bench->report, name, single / cluster, "x");
}

static void pair_measure(struct bench *bench, const struct nodes *nodes, const char *placement,
                         bool is_judged)
{
    hl_client *client = scenario_client(bench, NULL), *other = scenario_client_at(nodes->url, NULL);
    int number = pair_number(nodes);
    hl_lock *single = scenario_lock(client, pair_name, number);
    hl_lock *cluster = scenario_lock(other, pair_name, number);
    struct rounds rounds = {.count = bench->is_quick ? 24 : 100,
                            .ms = PAIR_ROUND_MS,
                            .sides = PAIR_SIDES,
                            .side = {[PAIR_SINGLE] = {.work = scenario_pairs, .arg = single},
                                     [PAIR_CLUSTER] = {.work = scenario_pairs, .arg = cluster}}};

    rounds_run(&rounds);
    pair_tell(bench, &rounds, placement, is_judged);
    hl_lock_free(single);
    hl_lock_free(cluster);
    hl_client_close(client);
    hl_client_close(other);
}

void cluster_pair(struct bench *bench, struct nodes *nodes)
{
    pid_t node = nodes->node[PAIR_NODE].pid;

    report_heading("acquire and release, one thread, a single server and a cluster");
    if (cores_part(node) && cores_part(bench->server.pid))
        pair_measure(bench, nodes, "pinned", true);
    cores_free(node);
    cores_free(bench->server.pid);
    pair_measure(bench, nodes, "free", false);
}
