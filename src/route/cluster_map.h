/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A map of a cluster, as one node tells it: which master serves which range of slots. It is read
 * entry by entry: one that is of no use costs its own slots. Pure but for memory. */
#ifndef HLI_ROUTE_CLUSTER_MAP_H
#define HLI_ROUTE_CLUSTER_MAP_H

#include "redis/reply.h"
#include "redis/url.h"

struct hli_cluster_node;

struct hli_cluster_range {
    unsigned first, last;          /* slots */
    struct hli_id id;              /* of the master */
    struct hli_address address;    /* owned; host NULL: it has none that is of use */
    struct hli_cluster_node *node; /* for the user of the map */
};

struct hli_cluster_map {
    hl_error problem;  /* of the first entry that is of no use; code 0: there is none */
    struct hli_id *id; /* of all masters and replicas, in order; owned */
    size_t ids;
    size_t count;
    struct hli_cluster_range range[];
};

/* Reads the answer to CLUSTER SLOTS (Redis docs: a host that is null or empty is the one that was
 * asked; ? is no host, and the numeric address stands beside it). Errors: HL_EPROTO: no entry is of
 * use; HL_ENOMEM. */
int hli_cluster_map_read(const struct hli_reply *slots, const char *asked_host,
                         struct hli_cluster_map **ret_map);
void hli_cluster_map_free(struct hli_cluster_map *map); /* NULL is fine */

/* Is it the id of a master or a replica of this map? */
bool hli_cluster_map_knows(const struct hli_cluster_map *map, const struct hli_id *id);
/* Do the two have a node in common? Also true if one of them has no ids at all. */
bool hli_cluster_map_is_kin(const struct hli_cluster_map *map, const struct hli_cluster_map *other);

#endif
