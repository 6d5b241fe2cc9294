/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A cluster that is made larger and smaller, and whose slots go from node to node, by redis-cli
 * --cluster, as its operators do it. An error that the program tells of ends the test.
 */
#ifndef HL_TEST_CLUSTER_RESHAPE_H
#define HL_TEST_CLUSTER_RESHAPE_H

#include "cluster_tool.h"
#include "redis_cluster.h"

/* add-node: another node, without slots, or as a replica of `master`. Both return when all is
 * whole. */
struct redis_server *cluster_add_node(struct redis_cluster *cluster, struct redis_server *master);

/* del-node: of a node without slots, which is stopped and freed. */
void cluster_remove_node(struct redis_cluster *cluster, struct redis_server *node);

/* reshard: the first `count` slots of `from`, with their keys, go to `to`, one after the other. */
struct cluster_reshard {
    struct redis_cluster *cluster;
    int count;
    struct cluster_tool tool;
};

struct cluster_reshard cluster_start_reshard(struct redis_cluster *cluster,
                                             struct redis_server *from, struct redis_server *to,
                                             int count);
bool cluster_reshard_is_over(struct cluster_reshard *reshard); /* redis-cli has ended */
void cluster_await_reshard(struct cluster_reshard *reshard);   /* and all is whole */

/* Both. */
void cluster_reshard(struct redis_cluster *cluster, struct redis_server *from,
                     struct redis_server *to, int count);

#endif
