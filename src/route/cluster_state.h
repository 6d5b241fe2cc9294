/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A cluster's nodes, the links of its slots, and the search for its map: what the files cluster*.c
 * share. Loop thread.
 */
#ifndef HLI_ROUTE_CLUSTER_STATE_H
#define HLI_ROUTE_CLUSTER_STATE_H

#include "route/cluster_map.h"
#include "route/outage.h"
#include "route/scout.h"
#include "route/slots.h"
#include "route/topology_kind.h"

struct hli_cluster_node { /* loop thread; the link as links are */
    struct hli_cluster *cluster;
    struct hli_link *link;
    struct hli_address address; /* owned; host NULL: a room that is free */
    bool is_up;                 /* its first lane is */
    bool was_up, has_failed;
    struct hli_outage outage;
    bool is_first;  /* of the first map */
    unsigned slots; /* in the newest map */
    bool had_slots; /* in the map before */
    struct hli_cluster_node
        *heir;        /* has the first of those that it had in the map before, or NULL */
    hli_ns wanted_at; /* when a node last sent a request here; 0: never */
};

struct hli_cluster {
    struct hli_topology base;
    struct hli_link *nowhere;
    struct hli_outage hole; /* of slots without a node; loop thread, as all below */

    struct hli_cluster_node **_Atomic nodes;
    size_t count;
    bool is_located, was_up, is_stopped;
    int64_t epoch; /* of the map that counts; -1: unknown */
    hli_ns refreshed_at;
    hli_ns trouble_since;   /* a node with slots is out of reach, or a slot has none; 0: no */
    struct hli_timer timer; /* the next refresh */

    struct hli_scout scout; /* one round asks each address once, from the one that answered last */
    size_t next, left;
    hli_ns round_ends;
    struct hli_cluster_map *stale; /* the best of an older epoch, or NULL */
    int64_t stale_epoch;
    char said_by[HLI_WHERE_SIZE + 32];
    hl_error err;
    hl_error unmapped; /* the last announced address that is of no use; code 0: none */

    unsigned char moved[HLI_SLOTS / 8]; /* slots whose link has changed, and nobody was told */
};

static inline const struct hli_topology_listener *hli_cluster_listener(
    const struct hli_cluster *cluster)
{
    return &cluster->base.setup.listener;
}

void hli_cluster_log(struct hli_cluster *cluster, hl_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An announced address is of no use: a warning, unless it is the one that was told last. */
void hli_cluster_note_unmapped(struct hli_cluster *cluster, const hl_error *err);

/* When the map is read next, in milliseconds, if nothing happens before: `trouble` is for how long
 * a node has been out of reach, -1: none is. `dice` is a random number. Pure. */
int64_t hli_cluster_look_ms(hli_ns trouble, uint64_t dice);
/* Refreshes in so many milliseconds, or earlier; but at most every 100. */
void hli_cluster_refresh_in(struct hli_cluster *cluster, int64_t ms);

/* Requests of this slot go there from now on. */
void hli_cluster_set_slot(struct hli_cluster *cluster, unsigned slot, struct hli_link *link);
/* Tells the listener which slots have moved since the last time. */
void hli_cluster_tell_moved(struct hli_cluster *cluster);
bool hli_cluster_has_hole(const struct hli_cluster *cluster); /* a slot without a node */

/* The node that announces this address (hli_address_map()); it is connected to if it is new.
 * Errors, each with err: HL_ENOMEM, HL_EPROTO, HL_ECONN. */
int hli_cluster_find_node(struct hli_cluster *cluster, const char *host, uint16_t port,
                          struct hli_cluster_node **ret_node, hl_error *err);
/* Closes the nodes that are left without slots. */
void hli_cluster_retire(struct hli_cluster *cluster);
/* Before any node was up: an open waits for those that have not failed yet. */
bool hli_cluster_has_hope(const struct hli_cluster *cluster);

/* What a node says of a slot: MOVED, ASK, CLUSTERDOWN (hli_link_listener.redirected). */
bool hli_cluster_redirect(struct hli_link *link, struct hli_op *op, struct hli_answer *answer,
                          void *arg);

#endif
