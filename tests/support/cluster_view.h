/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The cluster as one of its nodes sees it: CLUSTER NODES, read into memory. */
#ifndef HL_TEST_CLUSTER_VIEW_H
#define HL_TEST_CLUSTER_VIEW_H

#include <stdbool.h>

#include "cluster_slot.h"
#include "redis_server.h"

enum { CLUSTER_NODES = 12, CLUSTER_PEERS = 4 * CLUSTER_NODES /* some are found twice at first */ };

struct cluster_peer {
    char id[41];
    char master_id[41]; /* "-" for a master */
    bool is_myself;
    bool is_master;
    bool is_well;                           /* linked, and not said to be failing */
    unsigned char slots[CLUSTER_SLOTS / 8]; /* a bit for each that it serves */
};

struct cluster_view {
    int count;
    struct cluster_peer peer[CLUSTER_PEERS];
};

/* False when the node does not answer. */
bool cluster_view_read(struct redis_server *node, struct cluster_view *ret_view);

struct cluster_peer cluster_peer_of(struct redis_server *node); /* as it sees itself */

bool cluster_peer_serves(const struct cluster_peer *peer, int slot);
const struct cluster_peer *cluster_view_myself(const struct cluster_view *view);
const struct cluster_peer *cluster_view_find(const struct cluster_view *view, const char *id);
const struct cluster_peer *cluster_view_master(const struct cluster_view *view, int slot);

/* The node `self` is seen here as it sees itself: role, master, slots. */
bool cluster_view_shows(const struct cluster_view *view, const struct cluster_peer *self);

#endif
