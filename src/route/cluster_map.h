/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A map of a cluster, as one node tells it: which master serves which range of slots. Pure but for
 * memory. */
#ifndef HLI_ROUTE_CLUSTER_MAP_H
#define HLI_ROUTE_CLUSTER_MAP_H

#include "redis/reply.h"
#include "redis/url.h"

struct hli_cluster_node;

struct hli_cluster_range {
    unsigned first, last;          /* slots */
    struct hli_address address;    /* owned */
    struct hli_cluster_node *node; /* for the user of the map */
};

struct hli_cluster_map {
    size_t count;
    struct hli_cluster_range range[];
};

/* Reads the answer to CLUSTER SLOTS (Redis docs: "the host may be empty, ? or null: then it is the
 * one that was asked"). Errors: HL_EPROTO, HL_ENOMEM. */
int hli_cluster_map_read(const struct hli_reply *slots, const char *asked_host,
                         struct hli_cluster_map **ret_map);
void hli_cluster_map_free(struct hli_cluster_map *map); /* NULL is fine */

#endif
