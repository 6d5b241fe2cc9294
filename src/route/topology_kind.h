/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What all topologies have, for the files that implement one. */
#ifndef HLI_ROUTE_TOPOLOGY_KIND_H
#define HLI_ROUTE_TOPOLOGY_KIND_H

#include "route/topology.h"

struct hli_topology_kind { /* immutable */
    size_t size;           /* of the struct that begins with struct hli_topology */
    unsigned slots;
    /* Makes what must be there before the start. Errors: HL_ENOMEM; deinit follows all the same. */
    int (*init)(struct hli_topology *topology);
    void (*deinit)(struct hli_topology *topology);
    void (*start)(struct hli_topology *topology); /* any thread */
    void (*stop)(struct hli_topology *topology);  /* loop thread */
    void (*abandon)(struct hli_topology *topology);
    void (*look)(struct hli_topology *topology,
                 void (*visit)(const struct hli_node_view *view, void *arg), void *arg);
};

struct hli_topology {
    const struct hli_topology_kind *kind; /* immutable, as all but the links */
    struct hli_topology_setup setup;
    struct hli_url url; /* owned */
    struct hli_logins *logins;
    struct hli_dialler dialler;
    bool has_sharded_pubsub;          /* loop thread: of new links */
    _Atomic(struct hli_link *) *link; /* of each slot, never NULL after init; owned by the kind */
};

extern const struct hli_topology_kind hli_topology_one_server, hli_topology_cluster;

/* What there is to see of a link to a master. */
struct hli_node_view hli_topology_view(struct hli_link *link);

/* A link of this topology; address NULL: the listener's `locate` says it. NULL when memory is out.
 */
struct hli_link *hli_topology_new_link(struct hli_topology *topology,
                                       const struct hli_address *address,
                                       const struct hli_link_listener *listener);

#endif
