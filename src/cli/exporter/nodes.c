/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/exporter/nodes.h"

#include "cli/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_PINGS = 20, NODES_SPAN_MS = 200 };

static void nodes_note_finding(const struct cli_finding *finding, void *arg)
{
    struct exporter_node *node = arg;

    if (node->checks == EXPORTER_CHECKS)
        return;
    node->check[node->checks].name = finding->check;
    node->check[node->checks++].state = finding->state;
}

static void nodes_look_at(struct exporter_node *node, hl_client *client, const char *url)
{
    static const struct cli_checkup_effort effort = {NODES_PINGS, NODES_SPAN_MS};
    struct cli_checkup checkup;

    node->checks = 0;
    cli_checkup_gather(client, url, node->address, &effort, &checkup);
    cli_checks_run(&checkup, nodes_note_finding, node);
    cli_pulse_count(&checkup.pulse, &node->trips);
    cli_checkup_free(&checkup);
}

static const struct exporter_node *nodes_find(const struct exporter_nodes *nodes,
                                              const char *address)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (strcmp(nodes->node[i].address, address) == 0)
            return &nodes->node[i];
    return NULL;
}

/* With the round trips of before, if there were some. */
static struct exporter_node *nodes_add(struct exporter_nodes *nodes,
                                       const struct exporter_node *before, const char *address)
{
    struct exporter_node *node = &nodes->node[nodes->count++];

    node->trips = before ? before->trips : (hl_histogram)HL_HISTOGRAM_INIT;
    snprintf(node->address, sizeof(node->address), "%s", address);
    return node;
}

void exporter_nodes_look(struct exporter_nodes *nodes, hl_client *client, const char *url,
                         const atomic_bool *is_stopped)
{
    int most = cli_server_nodes(client, NULL, 0);
    size_t room = most > 0 ? (size_t)most : 1;
    struct cli_node *seen = calloc(room, sizeof(*seen));
    struct exporter_nodes now = {.node = calloc(room, sizeof(*now.node))};
    int count = seen && now.node ? cli_server_nodes(client, seen, room) : -1;

    for (int i = 0; i < count && i < most && !atomic_load(is_stopped); i++) {
        const struct exporter_node *before = nodes_find(nodes, seen[i].address);
        if (seen[i].is_sentinel || (!seen[i].is_connected && !before))
            continue;
        struct exporter_node *node = nodes_add(&now, before, seen[i].address);
        if (seen[i].is_connected)
            nodes_look_at(node, client, url);
    }
    free(seen);
    exporter_nodes_free(nodes);
    *nodes = now;
}

void exporter_nodes_free(struct exporter_nodes *nodes)
{
    free(nodes->node);
    *nodes = (struct exporter_nodes){0};
}
