/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The nodes of a cluster. They stay in the list until the end, since requests may have their links
 * in hand. A node that has left is stopped, and serves as room for the next that comes.
 */
#include "route/cluster_state.h"

#include "base/error.h"
#include "route/address_map.h"

#include <stdlib.h>
#include <string.h>

enum {
    NODE_KEEP_MS = 60 * 1000,
    /* Nodes that only MOVED and ASK name. A resharding to more nodes than these, none of which has
     * a slot yet, goes on at a slower pace. */
    NODE_GUESTS_MAX = 8,
    NODE_MAX = 2000 /* twice as many as the nodes of the largest clusters */
};

static void node_on_up(struct hli_link *link, void *arg)
{
    struct hli_cluster_node *node = arg;
    const struct hli_topology_listener *listener = hli_cluster_listener(node->cluster);

    bool is_again = node->was_up || !node->is_first;
    node->is_up = node->is_up || link == node->link;
    node->was_up = node->was_up || hli_link_is_whole(link);
    node->cluster->was_up = true;
    node->has_failed = false;
    hli_outage_end(&node->outage, listener, link);
    listener->up(link, is_again, listener->arg);
}

static void node_on_down(struct hli_link *link, const hl_error *err, void *arg)
{
    struct hli_cluster_node *node = arg;
    const struct hli_topology_listener *listener = hli_cluster_listener(node->cluster);

    node->is_up = node->is_up && link != node->link;
    hli_cluster_refresh_in(node->cluster, 0);
    hli_outage_begin(&node->outage, listener, link, err);
    listener->down(link, err, listener->arg);
}

/* Before any node was up, an open waits for the others. */
bool hli_cluster_has_hope(const struct hli_cluster *cluster)
{
    for (size_t i = 0; !cluster->was_up && i < cluster->count; i++)
        if (cluster->nodes[i]->slots > 0 && !cluster->nodes[i]->has_failed)
            return true;
    return false;
}

static void node_on_failed(struct hli_link *link, const hl_error *err, void *arg)
{
    struct hli_cluster_node *node = arg;
    const struct hli_topology_listener *listener = hli_cluster_listener(node->cluster);

    node->has_failed = true;
    if (link == node->link) /* else the node is in reach, and lacks a further lane */
        hli_cluster_refresh_in(node->cluster, 0);
    hli_outage_go_on(&node->outage, listener, err);
    if (!hli_cluster_has_hope(node->cluster))
        listener->failed(link, err, listener->arg);
}

/* The server at its address is another node than the map says; the map is read anew. Each such
 * node is told once. */
static void node_note_stranger(struct hli_cluster_node *node, const struct hli_id *met,
                               hl_error *ret_err)
{
    char where[HLI_WHERE_SIZE];

    hli_fail(ret_err, HL_ECONN, "node %.8s is there, and not node %.8s, as the map says", met->text,
             node->id.text);
    hli_address_where(&node->address, where);
    if (!hli_id_is(met, &node->met))
        hli_cluster_log(node->cluster, HL_LOG_WARN, "%s: %s", where, ret_err->text);
}

static bool node_is_stranger(const struct hli_cluster_node *node, const struct hli_id *met)
{
    return node->id.text[0] && met->text[0] && !hli_id_is(met, &node->id);
}

/* An address may be another node's by now: of this cluster, or of another one, which serves the
 * same slots and would grant the same locks. */
static bool node_on_met(struct hli_link *link, const struct hli_link_met *server, hl_error *ret_err,
                        void *arg)
{
    struct hli_cluster_node *node = arg;
    bool is_stranger = node_is_stranger(node, server->node);

    (void)link;
    if (is_stranger)
        node_note_stranger(node, server->node, ret_err);
    node->met = *server->node;
    return !is_stranger;
}

/* Before each attempt to connect. */
static void node_locate(struct hli_link *link, void *arg)
{
    struct hli_cluster_node *node = arg;

    hli_lanes_located(link, &node->address, NULL);
}

/* Adds to the list. A child that is forked at any moment reads the one before or the one after.
 * False when memory is out. */
static bool node_list(struct hli_cluster *cluster, struct hli_cluster_node *node)
{
    struct hli_cluster_node **before = cluster->nodes;
    struct hli_cluster_node **after = malloc((cluster->count + 1) * sizeof(*after));

    if (!after)
        return false;
    for (size_t i = 0; i < cluster->count; i++)
        after[i] = before[i];
    after[cluster->count] = node;
    cluster->nodes = after;
    cluster->count++;
    free(before);
    return true;
}

static struct hli_cluster_node *node_new(struct hli_cluster *cluster,
                                         const struct hli_address *address)
{
    struct hli_cluster_node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    const struct hli_link_listener listener = {.up = node_on_up,
                                               .down = node_on_down,
                                               .failed = node_on_failed,
                                               .met = node_on_met,
                                               .locate = node_locate,
                                               .redirected = hli_cluster_redirect,
                                               .arg = node};
    node->cluster = cluster;
    node->link = hli_topology_new_link(&cluster->base, address, &listener);
    if (node->link && node_list(cluster, node))
        return node;
    hli_lanes_free(node->link);
    free(node);
    return NULL;
}

bool hli_cluster_is_there(const struct hli_cluster_node *node)
{
    char said[HLI_WHERE_SIZE], is[HLI_WHERE_SIZE];

    hli_address_where(&node->address, said);
    hli_link_where(node->link, is);
    return strcmp(said, is) == 0;
}

/* The one that is said to be there, or else the one whose link leads there still. */
static struct hli_cluster_node *node_at(const struct hli_cluster *cluster,
                                        const struct hli_address *address)
{
    char where[HLI_WHERE_SIZE], is[HLI_WHERE_SIZE];

    for (size_t i = 0; i < cluster->count; i++)
        if (hli_address_is(&cluster->nodes[i]->address, address->host, address->port))
            return cluster->nodes[i];
    hli_address_where(address, where);
    for (size_t i = 0; i < cluster->count; i++) {
        hli_link_where(cluster->nodes[i]->link, is);
        if (cluster->nodes[i]->address.host && strcmp(where, is) == 0)
            return cluster->nodes[i];
    }
    return NULL;
}

static struct hli_cluster_node *node_with(const struct hli_cluster *cluster,
                                          const struct hli_id *id)
{
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i]->address.host && hli_id_is(&cluster->nodes[i]->id, id))
            return cluster->nodes[i];
    return NULL;
}

static struct hli_cluster_node *node_free_room(struct hli_cluster *cluster)
{
    for (size_t i = 0; i < cluster->count; i++) {
        struct hli_cluster_node *node = cluster->nodes[i];
        if (node && !node->address.host)
            return node;
    }
    return NULL;
}

/* The room of a new node at this address. NULL when memory is out. */
static struct hli_cluster_node *node_room(struct hli_cluster *cluster,
                                          const struct hli_address *address)
{
    struct hli_cluster_node *node = node_free_room(cluster);

    if (!node)
        return node_new(cluster, address);
    return hli_link_move(node->link, address) < 0 ? NULL : node;
}

/* Takes over the address on success. */
static int node_add(struct hli_cluster *cluster, const struct hli_address *address,
                    const struct hli_id *id, struct hli_cluster_node **ret_node, hl_error *err)
{
    if (cluster->count >= NODE_MAX && !node_free_room(cluster))
        return hli_fail(err, HL_EPROTO, "the cluster has more than %d nodes", NODE_MAX);
    struct hli_cluster_node *node = node_room(cluster, address);
    if (!node)
        return hli_no_memory(err);
    node->id = *id;
    node->met = (struct hli_id){""};
    node->address = *address;
    node->is_up = node->was_up = node->has_failed = false;
    node->outage = (struct hli_outage){0};
    node->is_first = !cluster->is_located;
    node->slots = 0;
    node->wanted_at = 0;
    hli_link_start(node->link);
    *ret_node = node;
    return 0;
}

static size_t node_count_guests(const struct hli_cluster *cluster)
{
    size_t count = 0;

    for (size_t i = 0; i < cluster->count; i++)
        count += cluster->nodes[i]->address.host && cluster->nodes[i]->slots == 0;
    return count;
}

int hli_cluster_find_node(struct hli_cluster *cluster, const char *host, uint16_t port,
                          struct hli_cluster_node **ret_node, hl_error *err)
{
    struct hli_address address;
    int rc = hli_address_map(cluster->base.setup.settings, host, port, &address, err);

    if (rc < 0)
        return rc;
    struct hli_cluster_node *node = node_at(cluster, &address);
    if (node)
        *ret_node = node;
    else if (node_count_guests(cluster) >= NODE_GUESTS_MAX)
        rc = hli_fail(err, HL_ESERVER, "requests were sent to more than %d nodes of no map",
                      NODE_GUESTS_MAX);
    else
        rc = node_add(cluster, &address, &(const struct hli_id){""}, ret_node, err);
    if (node || rc < 0)
        hli_address_deinit(&address);
    return rc;
}

/* A node without an id that is there becomes this one; so does one whose id no node of the map has
 * any more, as after a restart without its files. */
static struct hli_cluster_node *node_adopt(const struct hli_cluster *cluster,
                                           const struct hli_cluster_map *map,
                                           const struct hli_address *address)
{
    struct hli_cluster_node *node = node_at(cluster, address);

    return node && hli_cluster_map_knows(map, &node->id) ? NULL : node;
}

/* Its connections stay as they are while they last, unless they lead to another node. Takes over
 * the address. */
static void node_move(struct hli_cluster_node *node, struct hli_address *address,
                      const struct hli_id *id)
{
    bool is_news = !hli_address_is(&node->address, address->host, address->port) ||
                   (id->text[0] && !hli_id_is(id, &node->id));

    hli_address_deinit(&node->address);
    node->address = *address;
    node->id = id->text[0] ? *id : node->id;
    if (is_news && !node->is_up)
        hli_link_hurry(node->link);
    else if (is_news && node_is_stranger(node, &node->met))
        hli_lanes_drop(node->link, "the map says that another node is there");
}

int hli_cluster_map_node(struct hli_cluster *cluster, const struct hli_cluster_map *map,
                         const struct hli_cluster_range *range, struct hli_cluster_node **ret_node,
                         hl_error *err)
{
    struct hli_address address;
    int rc = hli_address_map(cluster->base.setup.settings, range->address.host, range->address.port,
                             &address, err);

    if (rc < 0)
        return rc;
    struct hli_cluster_node *node = node_with(cluster, &range->id);
    if (!node)
        node = node_adopt(cluster, map, &address);
    if (node)
        node_move(node, &address, &range->id);
    else
        rc = node_add(cluster, &address, &range->id, &node, err);
    if (rc < 0)
        hli_address_deinit(&address);
    else
        *ret_node = node;
    return rc;
}

/* Closes the nodes that are left without slots. One that was master before may not know of the new
 * master yet, so nothing that it says counts any more. The requests there have ended; those whose
 * slots had left the node before are decided on anew, as after a lost connection. */
void hli_cluster_retire(struct hli_cluster *cluster)
{
    const struct hli_topology_listener *listener = hli_cluster_listener(cluster);
    hli_ns now = hli_now();
    hl_error err;

    hli_fail(&err, HL_ESERVER, "the node serves no slots any more");
    for (size_t i = 0; i < cluster->count; i++) {
        struct hli_cluster_node *node = cluster->nodes[i];
        bool is_wanted = node->wanted_at != 0 && now < hli_after_ms(node->wanted_at, NODE_KEEP_MS);
        if (!node->address.host || node->slots > 0 || is_wanted)
            continue;
        hli_lanes_stop(node->link, err.code, err.text);
        hli_address_deinit(&node->address);
        node->is_up = false;
        listener->down(node->link, &err, listener->arg);
    }
}
