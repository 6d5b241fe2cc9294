/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The topology: which servers a client uses, and which of them a name belongs to. There is one
 * server, or the master that Sentinels know. The floors above ask for the link of a name when they
 * send, and never learn how many servers there are.
 */
#ifndef HLI_ROUTE_TOPOLOGY_H
#define HLI_ROUTE_TOPOLOGY_H

#include "redis/lanes.h"

struct hli_topology_listener { /* on the loop thread; the first three tell of each lane (lanes.h) */
    /* is_again: it was up before, or it takes the place of a server that was. */
    void (*up)(struct hli_link *link, bool is_again, void *arg);
    void (*down)(struct hli_link *link, const hl_error *err, void *arg); /* it was up */
    void (*failed)(struct hli_link *link, const hl_error *err,
                   void *arg); /* an attempt to connect */
    /* The link is about to come up, at another server than the last time. */
    void (*changed)(const char *from, const char *to, const char *why, void *arg);
    /* The master may have been replaced by one that the client cannot hear of; or that is over. */
    void (*isolated)(bool is_isolated, const char *why, void *arg);
    /* The servers of a cluster are known for the first time. */
    void (*found)(bool has_sharded_pubsub, void *arg);
    /* A node of a cluster sent a request elsewhere. */
    void (*redirected)(void *arg);
    /* Slots are served by other links than before: those for which hli_topology_has_moved() is true
     * during this call. */
    void (*moved)(void *arg);
    /* A lane for foreign requests is up (lanes.h). */
    void (*foreign_up)(void *arg);
    void (*log)(hl_log_level level, const char *text, void *arg);
    void *arg;
};

struct hli_topology_setup {
    struct hli_loop *loop;
    struct hli_tls_context *tls;       /* NULL: without TLS */
    const hl_client_options *settings; /* borrowed */
    struct hli_topology_listener listener;
    struct hli_channel *mailbox; /* of every link (hli_link_set_mailbox()); may be NULL */
    atomic_uint_fast64_t *commands, *nodes_now, *lanes_now; /* counters */
};

struct hli_topology;

/* Takes over the URL and the context of TLS on success. NULL when memory is out. */
struct hli_topology *hli_topology_new(const struct hli_topology_setup *setup,
                                      const struct hli_url *url);
/* A server, for hl_client_nodes(). */
struct hli_node_view {
    char where[HLI_WHERE_SIZE];
    hl_node_role role;
    hli_ns up_since; /* 0: it is not connected */
    char problem[sizeof(((hl_error *)0)->text)];
    unsigned lanes, slots;
    bool has_names; /* requests about names go there: no sentinel, and no node without slots */
};

/* Calls visit for every server in use. Loop thread. */
void hli_topology_look(struct hli_topology *topology,
                       void (*visit)(const struct hli_node_view *view, void *arg), void *arg);

void hli_topology_start(struct hli_topology *topology); /* any thread */
void hli_topology_stop(struct hli_topology *topology);  /* loop thread; closes everything */
/* Stopped; the loop still runs: waits for a credentials callback that is under way. */
void hli_topology_join(struct hli_topology *topology);
void hli_topology_free(struct hli_topology *topology);    /* stopped; NULL is fine */
void hli_topology_abandon(struct hli_topology *topology); /* in a forked child */

/* Is the calling thread inside this client's credentials callback? NULL is fine. */
bool hli_topology_asks_here(const struct hli_topology *topology);

/* Is it always the same server, that no failover replaces? */
bool hli_topology_is_fixed(const struct hli_topology *topology);

/* The slot of a name, by which its link is found; 0 where one server has all names. */
unsigned hli_topology_slot(const struct hli_topology *topology, const void *name, size_t length);

/* See `moved`. Loop thread. */
bool hli_topology_has_moved(const struct hli_topology *topology, unsigned slot);

/* The first link to the server of each slot now: a table for any thread. The table and all links
 * live as long as the topology. */
const _Atomic(struct hli_link *) *hli_topology_links(const struct hli_topology *topology);

/* The first link to the server at this address, as hli_link_where() has it, that serves slots; NULL
 * if there is none. Any thread. */
struct hli_link *hli_topology_link_at(const struct hli_topology *topology, const char *where);

#endif
