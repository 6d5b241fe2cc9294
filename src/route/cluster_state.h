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
    struct hli_id id;  /* "": no map has named it, or maps tell none */
    struct hli_id met; /* that of the server that its link has reached last; "": it told none */
    /* Owned: where it is said to be, and where the link is dialled the next time; host NULL: a room
     * that is free. */
    struct hli_address address;
    bool is_up; /* its first lane is */
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
    struct hli_cluster_map *map; /* the one that counts; NULL: none yet */
    int64_t epoch;               /* the newest of those that counted; -1: unknown */
    hli_ns refreshed_at;
    hli_ns trouble_since;   /* a node with slots is out of reach, or a slot has none; 0: no */
    struct hli_timer timer; /* the next refresh */

    struct hli_scout scout; /* one round asks each address once, from the one that answered last */
    size_t next, left;
    hli_ns round_ends;
    bool has_met_kin; /* in this round: a node of the cluster that is known */
    struct hli_cluster_found {
        struct hli_cluster_map *map; /* NULL: none */
        int64_t epoch;
    } stale, strange;  /* the best of an older epoch, and of another cluster, that the round met */
    hli_ns lost_since; /* no round has met kin; 0: the last one did */
    char said_by[HLI_WHERE_SIZE + 32];
    hl_error err;
    hl_error unmapped;  /* the last announced address that is of no use; code 0: none */
    hl_error estranged; /* the last node that is another cluster's; code 0: none */

    unsigned char moved[HLI_SLOTS / 8]; /* slots whose link has changed, and nobody was told */
};

static inline const struct hli_topology_listener *hli_cluster_listener(
    const struct hli_cluster *cluster)
{
    return &cluster->base.setup.listener;
}

void hli_cluster_log(struct hli_cluster *cluster, hl_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A warning, unless it is what was told last (code 0: nothing). */
void hli_cluster_note(struct hli_cluster *cluster, hl_error *told, const hl_error *err);

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

/* The node of a range of the map; it is connected to if it is new. By its id: if it is announced at
 * another address (hli_address_map()) than before, it is that one's from its next connection on.
 * Errors, each with err: HL_ENOMEM, HL_EPROTO, HL_ECONN. */
int hli_cluster_map_node(struct hli_cluster *cluster, const struct hli_cluster_map *map,
                         const struct hli_cluster_range *range, struct hli_cluster_node **ret_node,
                         hl_error *err);
/* The node at the address that MOVED or ASK names. Of those that no map names a few are kept: more
 * are HL_ESERVER. Other errors as above. */
int hli_cluster_find_node(struct hli_cluster *cluster, const char *host, uint16_t port,
                          struct hli_cluster_node **ret_node, hl_error *err);
/* Does its link lead where it is said to be? */
bool hli_cluster_is_there(const struct hli_cluster_node *node);
/* Closes the nodes that are left without slots. */
void hli_cluster_retire(struct hli_cluster *cluster);
/* Before any node was up: an open waits for those that have not failed yet. */
bool hli_cluster_has_hope(const struct hli_cluster *cluster);

/* What a node says of a slot: MOVED, ASK, CLUSTERDOWN (hli_link_listener.redirected). */
bool hli_cluster_redirect(struct hli_link *link, struct hli_op *op, struct hli_answer *answer,
                          void *arg);

#endif
