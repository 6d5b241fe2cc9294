/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The topology of a cluster. A scout asks one node after the other for CLUSTER SLOTS until one
 * answers: at the start, when a node is lost or does not answer, when a node says that it does not
 * serve a slot, and once a minute. Each master that serves slots has a link.
 *
 * A slot without a node has the link `nowhere`, which never comes up: its attempts to connect are
 * the search for the first map, so its requests wait as those of a server out of reach do.
 */
#include "route/cluster_state.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cluster_scout_next(struct hli_cluster *cluster);

static struct hli_cluster *cluster_of(struct hli_topology *topology)
{
    return HLI_OF(topology, struct hli_cluster, base);
}

/* --- the map --- */

/* Of each node that has no slots any more: the one that has the first of them is the new master if
 * it had none before, as a replica has none. Else slots were moved to another master, with their
 * keys. */
static void cluster_tell_changes(struct hli_cluster *cluster)
{
    const struct hli_topology_listener *listener = hli_cluster_listener(cluster);
    char from[HLI_WHERE_SIZE], to[HLI_WHERE_SIZE];

    for (size_t i = 0; i < cluster->count; i++) {
        struct hli_cluster_node *old = cluster->nodes[i], *heir = old->heir;
        old->heir = NULL;
        if (!heir || old->slots > 0)
            continue;
        hli_address_where(&old->address, from);
        hli_address_where(&heir->address, to);
        if (heir->had_slots)
            hli_cluster_log(cluster, HL_LOG_INFO, "%s serves no slots any more: %s", from,
                            cluster->said_by);
        else
            listener->changed(from, to, cluster->said_by, listener->arg);
        if (!heir->is_up && heir->outage.since == 0)
            heir->outage = old->outage; /* the outage of its slots goes on until it is up */
    }
}

static struct hli_cluster_node *cluster_node_of(struct hli_cluster *cluster,
                                                const struct hli_link *link)
{
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i]->link == link)
            return cluster->nodes[i];
    return NULL;
}

/* Makes the nodes of the map. What is of no use leaves its slots without a node, and err says why.
 * Errors: HL_ENOMEM. */
static int cluster_resolve(struct hli_cluster *cluster, struct hli_cluster_map *map, hl_error *err)
{
    *err = map->problem;
    for (size_t i = 0; i < map->count; i++) {
        struct hli_cluster_range *range = &map->range[i];
        hl_error problem;
        if (!range->address.host)
            continue;
        int rc = hli_cluster_map_node(cluster, map, range, &range->node, &problem);
        if (rc == HL_ENOMEM)
            return rc;
        if (rc < 0 && err->code == 0)
            *err = problem;
    }
    return 0;
}

static void cluster_note_heir(struct hli_cluster *cluster, struct hli_link *was,
                              struct hli_link *is)
{
    struct hli_cluster_node *old = cluster_node_of(cluster, was);

    if (old && !old->heir)
        old->heir = cluster_node_of(cluster, is);
}

/* Sets the links of all slots. False: out of memory, and they stay. */
static bool cluster_set_slots(struct hli_cluster *cluster, const struct hli_cluster_map *map)
{
    struct hli_link **link = calloc(HLI_SLOTS, sizeof(*link));

    if (!link)
        return false;
    for (size_t i = 0; i < cluster->count; i++) {
        cluster->nodes[i]->had_slots = cluster->nodes[i]->slots > 0;
        cluster->nodes[i]->slots = 0;
    }
    for (size_t i = 0; i < map->count; i++)
        for (unsigned slot = map->range[i].first; slot <= map->range[i].last; slot++) {
            struct hli_cluster_node *node = map->range[i].node;
            if (!node)
                break;
            node->slots += link[slot] ? 0 : 1;
            link[slot] = link[slot] ? link[slot] : node->link;
            node->wanted_at = 0; /* the map says it now; a later one may take it back */
        }
    for (unsigned slot = 0; slot < HLI_SLOTS; slot++) {
        struct hli_link *was = atomic_load(&cluster->base.link[slot]);
        struct hli_link *is = link[slot] ? link[slot] : cluster->nowhere;
        if (was != is)
            cluster_note_heir(cluster, was, is);
        hli_cluster_set_slot(cluster, slot, is);
    }
    free(link);
    return true;
}

static bool cluster_is_in_trouble(const struct hli_cluster *cluster)
{
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i]->slots > 0 && !cluster->nodes[i]->is_up)
            return true;
    return hli_cluster_has_hole(cluster);
}

static void cluster_end_round(struct hli_cluster *cluster)
{
    bool is_in_trouble = cluster_is_in_trouble(cluster);

    cluster->refreshed_at = hli_now();
    if (!is_in_trouble)
        cluster->trouble_since = 0;
    else if (cluster->trouble_since == 0)
        cluster->trouble_since = cluster->refreshed_at;
    hli_ns lasts = is_in_trouble ? cluster->refreshed_at - cluster->trouble_since : -1;
    hli_cluster_refresh_in(cluster, hli_cluster_look_ms(lasts, hli_random_u64()));
}

static void cluster_end_hole(struct hli_cluster *cluster)
{
    if (cluster->hole.since != 0)
        hli_cluster_log(cluster, HL_LOG_WARN, "every slot has a node after %.1f s: %s",
                        (double)(hli_now() - cluster->hole.since) / 1e9, cluster->said_by);
    cluster->hole = (struct hli_outage){0};
}

/* Of slots without a node, the calls say why. */
static void cluster_tell_hole(struct hli_cluster *cluster)
{
    if (!hli_cluster_has_hole(cluster)) {
        cluster_end_hole(cluster);
        return;
    }
    if (cluster->unmapped.code < 0)
        cluster->err = cluster->unmapped;
    else
        hli_fail(&cluster->err, HL_ESERVER, "CLUSTERDOWN no node of the cluster serves the slot");
    hli_lanes_located(cluster->nowhere, NULL, &cluster->err);
}

/* Takes over the map. The links of moved slots change first, so that what is sent from now on goes
 * there. Then the nodes that are left without slots are closed, which ends the requests in flight
 * there; then the names hear of it, and decide on these anew. */
static void cluster_use(struct hli_cluster *cluster, struct hli_cluster_map *map, int64_t epoch)
{
    hl_error unmapped = HL_ERROR_INIT;

    if (cluster_resolve(cluster, map, &unmapped) < 0 || !cluster_set_slots(cluster, map)) {
        hli_cluster_map_free(map);
        cluster_end_round(cluster);
        hli_fail(&cluster->err, HL_ENOMEM, "out of memory for the map of the cluster");
        hli_lanes_located(cluster->nowhere, NULL, &cluster->err);
        return;
    }
    hli_cluster_map_free(cluster->map);
    cluster->map = map;
    cluster->epoch = epoch > cluster->epoch ? epoch : cluster->epoch;
    hli_cluster_note(cluster, &cluster->unmapped, &unmapped);
    cluster_tell_changes(cluster);
    cluster->is_located = true;
    hli_cluster_retire(cluster);
    hli_cluster_tell_moved(cluster);
    cluster_end_round(cluster);
    cluster_tell_hole(cluster);
}

/* --- rounds of scouting --- */

/* The addresses to be asked: of the nodes, then of the URL. */
static const struct hli_address *cluster_address_at(const struct hli_cluster *cluster, size_t index)
{
    return index < cluster->count ? &cluster->nodes[index]->address
                                  : &cluster->base.url.addresses[index - cluster->count];
}

static size_t cluster_addresses(const struct hli_cluster *cluster)
{
    return cluster->count + cluster->base.url.address_count;
}

static void cluster_forget(struct hli_cluster_found *found)
{
    hli_cluster_map_free(found->map);
    *found = (struct hli_cluster_found){0};
}

static void cluster_use_found(struct hli_cluster *cluster, struct hli_cluster_found *found)
{
    struct hli_cluster_map *map = found->map;

    found->map = NULL;
    cluster_use(cluster, map, found->epoch);
}

/* The cluster that was known has been out of reach for long, and an address of the URL leads to
 * another one: all nodes may have been reset, or replaced while nobody looked. */
static void cluster_change(struct hli_cluster *cluster)
{
    hli_cluster_log(
        cluster, HL_LOG_WARN,
        "no node of the cluster that was known has answered for a minute: the addresses "
        "of the URL lead to another cluster now");
    snprintf(cluster->said_by, sizeof(cluster->said_by), "the URL leads to another cluster now");
    cluster->epoch = -1;
    cluster->lost_since = 0;
    cluster_use_found(cluster, &cluster->strange);
}

/* All were asked. */
static void cluster_end_vain_round(struct hli_cluster *cluster)
{
    hli_ns now = hli_now();

    if (cluster->has_met_kin)
        cluster->lost_since = 0;
    else if (cluster->lost_since == 0)
        cluster->lost_since = now;
    if (cluster->stale.map) {
        cluster_use_found(cluster, &cluster->stale);
    } else if (cluster->strange.map && !cluster->has_met_kin &&
               hli_inquiry_believes_strangers(now - cluster->lost_since)) {
        cluster_change(cluster);
    } else {
        cluster_end_round(cluster);
        hli_lanes_located(cluster->nowhere, NULL, &cluster->err);
    }
}

static void cluster_scout_next(struct hli_cluster *cluster)
{
    hli_ns now = hli_now();

    bool is_first = cluster->left == cluster_addresses(cluster);
    while (cluster->left > 0 && now < cluster->round_ends) {
        cluster->next = (cluster->next + 1) % cluster_addresses(cluster);
        const struct hli_address *address = cluster_address_at(cluster, cluster->next);
        cluster->left--;
        if (!address->host)
            continue; /* a free room */
        hli_ns share = hli_inquiry_share(cluster->round_ends - now, cluster->left, is_first);
        hli_scout_send(&cluster->scout, address, share);
        return;
    }
    cluster_end_vain_round(cluster);
}

static void cluster_begin_round(struct hli_cluster *cluster)
{
    if (cluster->scout.is_out || cluster->is_stopped)
        return;
    hli_timer_clear(cluster->base.setup.loop, &cluster->timer);
    cluster->left = cluster_addresses(cluster);
    cluster->next = cluster->next % cluster->left + cluster->left - 1; /* the last one first */
    cluster->round_ends = hli_after_ms(hli_now(), cluster->base.setup.settings->connect_timeout_ms);
    cluster->has_met_kin = false;
    cluster_forget(&cluster->stale);
    cluster_forget(&cluster->strange);
    cluster_scout_next(cluster);
}

static void cluster_tell_found(struct hli_cluster *cluster, const struct hli_scout_report *report)
{
    const struct hli_topology_listener *listener = hli_cluster_listener(cluster);

    if (cluster->is_located)
        return;
    cluster->base.has_sharded_pubsub = report->is_sharded;
    listener->found(report->is_sharded, listener->arg);
}

/* The time of the round is for the nodes. Without a login the round ends: that of another node
 * would be asked of the same callback, or be in the same file. */
static void cluster_grant_login(struct hli_cluster *cluster)
{
    if (cluster->scout.has_login)
        cluster->round_ends += cluster->scout.login_took;
    else
        cluster->left = 0;
}

/* err NULL: the answer came, and is of no use. */
static void cluster_note_failure(struct hli_cluster *cluster, int rc, const hl_error *err)
{
    const char *where = cluster->scout.inquiry.where;

    if (err)
        cluster->err = *err;
    else if (rc == HL_ENOMEM)
        hli_fail(&cluster->err, rc, "%s: out of memory for its map", where);
    else
        hli_fail(&cluster->err, rc, "%s: its answer to CLUSTER SLOTS is no map", where);
}

/* Takes over the map. Of two it keeps that of the newer epoch. */
static void cluster_keep(struct hli_cluster_found *found, struct hli_cluster_map *map,
                         int64_t epoch)
{
    if (found->map && epoch <= found->epoch) {
        hli_cluster_map_free(map);
        return;
    }
    hli_cluster_map_free(found->map);
    *found = (struct hli_cluster_found){.map = map, .epoch = epoch};
}

/* Takes over the map of a cluster that shares no node with the one that is known. An address that
 * only servers told is a stranger's now; those of the URL are the program's word. */
static void cluster_meet_stranger(struct hli_cluster *cluster, struct hli_cluster_map *map,
                                  int64_t epoch)
{
    const struct hli_url *url = &cluster->base.url;
    const struct hli_address *asked = cluster->scout.inquiry.address;
    bool is_of_url = asked >= url->addresses && asked < url->addresses + url->address_count;

    hli_fail(&cluster->err, HL_ESERVER,
             "%s: it belongs to another cluster: its map has no node of the one that is known",
             cluster->scout.inquiry.where);
    hli_cluster_note(cluster, &cluster->estranged, &cluster->err);
    if (is_of_url)
        cluster_keep(&cluster->strange, map, epoch);
    else
        hli_cluster_map_free(map);
}

/* Takes over the map of a node of the cluster. */
static void cluster_meet_kin(struct hli_cluster *cluster, struct hli_cluster_map *map,
                             const struct hli_scout_report *report)
{
    cluster->has_met_kin = true;
    snprintf(cluster->said_by, sizeof(cluster->said_by), "node %s says so",
             cluster->scout.inquiry.where);
    cluster_tell_found(cluster, report);
    if (report->epoch < cluster->epoch || report->epoch < 0) {
        cluster_keep(&cluster->stale, map, report->epoch);
        cluster_scout_next(cluster);
        return;
    }
    cluster->lost_since = 0;
    cluster_use(cluster, map, report->epoch);
}

static void cluster_on_scouted(struct hli_scout *scout, const struct hli_scout_report *report,
                               const hl_error *err)
{
    struct hli_cluster *cluster = scout->arg;
    struct hli_cluster_map *map = NULL;

    cluster_grant_login(cluster);
    int rc = report ? hli_cluster_map_read(report->slots, scout->inquiry.address->host, &map)
                    : err->code;
    if (!report || rc < 0) {
        cluster_note_failure(cluster, rc, err);
        hli_cluster_log(cluster, HL_LOG_INFO, "%s", cluster->err.text);
        cluster_scout_next(cluster);
    } else if (cluster->map && !hli_cluster_map_is_kin(cluster->map, map)) {
        cluster_meet_stranger(cluster, map, report->epoch);
        cluster_scout_next(cluster);
    } else {
        cluster_meet_kin(cluster, map, report);
    }
}

static void cluster_on_timer(void *arg)
{
    cluster_begin_round(arg);
}

static void cluster_locate(struct hli_link *link, void *arg)
{
    (void)link;
    cluster_begin_round(arg);
}

/* A slot without a node is no failure of an open, which waits for the nodes of the others. */
static void cluster_on_lost(struct hli_link *link, const hl_error *err, void *arg)
{
    struct hli_cluster *cluster = arg;
    const struct hli_topology_listener *listener = hli_cluster_listener(cluster);

    if (hli_cluster_has_hope(cluster))
        return;
    hli_outage_go_on(&cluster->hole, listener, err);
    listener->failed(link, err, listener->arg);
}

/* --- the kind --- */

static int cluster_init(struct hli_topology *topology)
{
    struct hli_cluster *cluster = cluster_of(topology);
    const struct hli_link_listener listener = {
        .failed = cluster_on_lost, .locate = cluster_locate, .arg = cluster};

    cluster->epoch = -1;
    cluster->timer = (struct hli_timer){.run = cluster_on_timer, .arg = cluster};
    hli_scout_init(&cluster->scout, &topology->dialler, topology->setup.settings, &topology->url,
                   topology->logins);
    cluster->scout.done = cluster_on_scouted;
    cluster->scout.arg = cluster;
    cluster->nowhere = hli_topology_new_link(topology, &topology->url.addresses[0], &listener);
    if (!cluster->nowhere)
        return HL_ENOMEM;
    for (unsigned slot = 0; slot < HLI_SLOTS; slot++)
        atomic_init(&topology->link[slot], cluster->nowhere);
    return 0;
}

static void cluster_deinit(struct hli_topology *topology)
{
    struct hli_cluster *cluster = cluster_of(topology);

    for (size_t i = 0; i < cluster->count; i++) {
        hli_lanes_free(cluster->nodes[i]->link);
        hli_address_deinit(&cluster->nodes[i]->address);
        free(cluster->nodes[i]);
    }
    free(cluster->nodes);
    hli_cluster_map_free(cluster->map);
    cluster_forget(&cluster->stale);
    cluster_forget(&cluster->strange);
    hli_lanes_free(cluster->nowhere);
    hli_scout_deinit(&cluster->scout);
}

static void cluster_start(struct hli_topology *topology)
{
    hli_link_start(cluster_of(topology)->nowhere);
}

static void cluster_stop(struct hli_topology *topology)
{
    struct hli_cluster *cluster = cluster_of(topology);

    cluster->is_stopped = true;
    hli_scout_recall(&cluster->scout);
    hli_timer_clear(topology->setup.loop, &cluster->timer);
    hli_lanes_stop(cluster->nowhere, HL_ECLOSED, "the client is closed");
    for (size_t i = 0; i < cluster->count; i++)
        hli_lanes_stop(cluster->nodes[i]->link, HL_ECLOSED, "the client is closed");
}

/* The child reads the list without the loop's leave: at worst a link that is just being added is
 * missed, and its socket stays open in the child. */
static void cluster_abandon(struct hli_topology *topology)
{
    struct hli_cluster *cluster = cluster_of(topology);

    hli_scout_abandon(&cluster->scout);
    for (size_t i = 0; i < cluster->count; i++)
        hli_lanes_abandon(cluster->nodes[i]->link);
}

static void cluster_look(struct hli_topology *topology,
                         void (*visit)(const struct hli_node_view *view, void *arg), void *arg)
{
    struct hli_cluster *cluster = cluster_of(topology);

    for (size_t i = 0; i < cluster->count; i++) {
        if (!cluster->nodes[i]->address.host)
            continue;
        struct hli_node_view view = hli_topology_view(cluster->nodes[i]->link);
        view.slots = cluster->nodes[i]->slots;
        view.has_names = view.slots > 0;
        visit(&view, arg);
    }
}

const struct hli_topology_kind hli_topology_cluster = {
    .size = sizeof(struct hli_cluster),
    .slots = HLI_SLOTS,
    .init = cluster_init,
    .deinit = cluster_deinit,
    .start = cluster_start,
    .stop = cluster_stop,
    .abandon = cluster_abandon,
    .look = cluster_look,
};
