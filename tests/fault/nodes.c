/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_client_nodes: which servers, by which address, as what, since when, in each topology. */

#include "integration/timer_block.h"

#include "support/actor.h"
#include "support/events.h"
#include "support/topologies.h"

#include <stdio.h>
#include <string.h>

struct seen {
    int count;
    hl_node node[16];
    char address[16][200], problem[16][300];
};

static void note_node(const hl_node *node, void *arg)
{
    struct seen *seen = arg;
    int i = seen->count++;

    check_int(node->size, sizeof *node);
    seen->node[i] = *node;
    snprintf(seen->address[i], sizeof seen->address[i], "%s", node->address);
    snprintf(seen->problem[i], sizeof seen->problem[i], "%s", node->problem ? node->problem : "");
}

static struct seen nodes_of(hl_client *client)
{
    struct seen seen = {0};
    int count = hl_client_nodes(client, note_node, &seen);

    check_int(count, seen.count);
    return seen;
}

static void expect_node(const struct seen *seen, int i, const struct redis_server *at,
                        hl_node_role role)
{
    char address[64];

    snprintf(address, sizeof address, "127.0.0.1:%d", redis_server_port(at));
    check_str(seen->address[i], address);
    check_int(seen->node[i].role, role);
    check(seen->node[i].is_connected);
    check(seen->node[i].since_ms >= 0);
    check(seen->node[i].problem == NULL);
    check_int(seen->node[i].lanes, 1);
}

TcpLaw(nodes, of_one_server_are_that_server)
{
    hl_client *client = open_client(NULL);
    struct seen seen = nodes_of(client);

    check_int(seen.count, 1);
    expect_node(&seen, 0, server, HL_NODE_MASTER);
    check_int(seen.node[0].slots, 0);
    check_int(stats_of(client).nodes_now, 1);
    check_int(hl_client_nodes(client, NULL, NULL), HL_EINVAL);
    check_int(hl_client_nodes(NULL, note_node, NULL), HL_EINVAL);
}

static int64_t since_of(hl_client *client)
{
    struct seen seen = nodes_of(client);

    check_int(seen.count, 1);
    return seen.node[0].since_ms;
}

static bool is_older(void *client)
{
    return since_of(client) >= 500;
}

/* The clock of the test, which looks before and behind, bounds it on both sides; both round. */
TcpLaw(nodes, tell_since_when_they_are_connected_this_time)
{
    static struct events events;
    int64_t began_ms = now_ms();
    hl_client *client = open_client(CLIENT(.on_event = count_event, .arg = &events));
    int64_t opened_ms = now_ms();

    check(wait_until(is_older, client, 20000));
    int64_t asked_ms = now_ms(), since_ms = since_of(client), told_ms = now_ms();
    check(since_ms >= asked_ms - opened_ms - 2 && since_ms <= told_ms - began_ms + 1);
    began_ms = now_ms();
    redis_do(server, "CLIENT KILL TYPE normal");
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 30000));
    since_ms = since_of(client);
    check_msg(since_ms >= 0 && since_ms <= now_ms() - began_ms + 1, "%d ms", (int)since_ms);
    check(wait_until(is_older, client, 20000));
}

static bool has_no_node(void *client)
{
    return stats_of(client).nodes_now == 0;
}

TcpLaw(nodes, that_are_out_of_reach_say_why)
{
    hl_client *client = open_client(NULL);

    redis_server_kill(server);
    check(wait_until(has_no_node, client, 20000));
    struct seen seen = nodes_of(client);
    check_int(seen.count, 1);
    check(!seen.node[0].is_connected);
    check_int(seen.node[0].lanes, 0);
    check_int(seen.node[0].since_ms, -1);
    check_int(seen.node[0].role, HL_NODE_MASTER); /* as it was */
    check_has(seen.problem[0], "127.0.0.1");
}

struct glance {
    hl_client *client;
    struct hli_task task;
    hli_ns up_since;
    uint64_t nodes_now;
    sem_t taken;
};

static void glance_at(const struct hli_node_view *view, void *arg)
{
    struct glance *glance = arg;

    glance->up_since = view->up_since;
}

static void glance_run(void *arg)
{
    struct glance *glance = arg;

    hli_topology_look(glance->client->topology, glance_at, glance);
    glance->nodes_now = stats_of(glance->client).nodes_now;
    sem_post(&glance->taken);
}

/* The loop meets the end of the connection and the question in one round, in this order; what
 * follows from the loss is a timer's. */
TcpLaw(nodes, that_are_lost_at_this_moment_are_neither_counted_nor_connected)
{
    hl_client *client = open_client(NULL);
    struct glance glance = {.client = client, .up_since = -1};
    struct timer_block block;

    glance.task = (struct hli_task){.run = glance_run, .arg = &glance};
    sem_init(&glance.taken, 0, 0);
    timer_block_begin(&block, client);
    redis_server_kill(server);
    check(hli_loop_post(client->loop, &glance.task));
    sem_post(&block.may_go);
    while (sem_wait(&glance.taken) != 0)
        ;
    check_int(glance.nodes_now, 0);
    check_int(glance.up_since, 0);
}

static void look_inside(const hl_event *event, void *arg)
{
    (void)event;
    struct seen *seen = arg;
    (void)hl_client_nodes(NULL, note_node, seen); /* any call is allowed in a callback */
}

TrioLaw(nodes, behind_sentinels_are_the_master_and_the_sentinel)
{
    static struct seen unused;
    hl_client *client =
        open_client_at(trio_url(trio), CLIENT(.on_event = look_inside, .arg = &unused));
    struct seen seen = nodes_of(client);

    check_int(seen.count, 2);
    expect_node(&seen, 0, trio_master(trio), HL_NODE_MASTER);
    expect_node(&seen, 1, trio_sentinel(trio, 0), HL_NODE_SENTINEL);
    check_int(stats_of(client).nodes_now, 1);
    check_int(stats_of(client).master_changes, 0);
}

static bool has_all_nodes(void *client)
{
    return stats_of(client).nodes_now == 3;
}

ClusterLaw(nodes, of_a_cluster_are_its_masters_with_all_slots)
{
    hl_client *client = open_client_at(cluster_url(cluster), NULL);

    check(wait_until(has_all_nodes, client, 20000));
    struct seen seen = nodes_of(client);
    unsigned slots = 0;
    check_int(seen.count, cluster_masters(cluster));
    for (int i = 0; i < seen.count; i++) {
        check_int(seen.node[i].role, HL_NODE_MASTER);
        check(seen.node[i].is_connected);
        slots += seen.node[i].slots;
    }
    check_int(slots, 16384);
    check_int(stats_of(client).redirects, 0);
}
