/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* redis-cli asks the nodes for their views first, and refuses when these differ. */
#include "cluster_reshape.h"

#include <stdio.h>

#include "fatal.h"

/* "127.0.0.1:7001" */
struct address {
    char text[48];
};

static struct address address_of(const struct redis_server *node)
{
    struct address address;
    snprintf(address.text, sizeof address.text, "%s:%d", redis_server_host(node),
             redis_server_port(node));
    return address;
}

struct redis_server *cluster_add_node(struct redis_cluster *cluster, struct redis_server *master)
{
    struct cluster_tool tool = {.pid = 0};
    struct redis_server *first = cluster_node(cluster, 0);
    struct redis_server *node = cluster_new_node(cluster);
    struct cluster_peer peer = cluster_peer_of(master ? master : first);
    struct address address = address_of(node), known = address_of(first);
    const char *argv[] = {"add-node",
                          address.text,
                          known.text,
                          master ? "--cluster-slave" : NULL,
                          "--cluster-master-id",
                          peer.id,
                          NULL};
    cluster_tool_start(&tool, first, argv);
    cluster_tool_finish(&tool, "");
    cluster_await_whole(cluster);
    return node;
}

void cluster_remove_node(struct redis_cluster *cluster, struct redis_server *node)
{
    struct cluster_tool tool = {.pid = 0};
    struct cluster_peer peer = cluster_peer_of(node);
    struct redis_server *other = cluster_node(cluster, cluster_node(cluster, 0) == node);
    struct address address = address_of(other);
    const char *argv[] = {"del-node", address.text, peer.id, NULL};
    cluster_tool_start(&tool, other, argv);
    cluster_tool_finish(&tool, "");
    cluster_free_node(cluster, node);
    cluster_await_whole(cluster);
}

struct cluster_reshard cluster_start_reshard(struct redis_cluster *cluster,
                                             struct redis_server *from, struct redis_server *to,
                                             int count)
{
    char number[16];
    struct cluster_reshard reshard = {.cluster = cluster, .count = count};
    struct cluster_peer source = cluster_peer_of(from), target = cluster_peer_of(to);
    struct address address = address_of(from);
    snprintf(number, sizeof number, "%d", count);
    const char *argv[] = {"reshard",       address.text, "--cluster-from",  source.id,
                          "--cluster-to",  target.id,    "--cluster-slots", number,
                          "--cluster-yes", NULL};
    cluster_await_whole(cluster);
    cluster_tool_start(&reshard.tool, from, argv);
    return reshard;
}

bool cluster_reshard_is_over(struct cluster_reshard *reshard)
{
    return cluster_tool_is_over(&reshard->tool);
}

void cluster_await_reshard(struct cluster_reshard *reshard)
{
    /* The plan's lines are indented. */
    must(cluster_tool_finish(&reshard->tool, "Moving slot ") == reshard->count);
    cluster_await_whole(reshard->cluster);
}

void cluster_reshard(struct redis_cluster *cluster, struct redis_server *from,
                     struct redis_server *to, int count)
{
    struct cluster_reshard reshard = cluster_start_reshard(cluster, from, to, count);
    cluster_await_reshard(&reshard);
}
