/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A cluster's state: the links of its slots, its log, and when its map is read next. */
#include "route/cluster_state.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    CLUSTER_SOON_MS = 100, /* after a word of a node: the map is read at most so often */
    CLUSTER_EVERY_MS = 60 * 1000,
    CLUSTER_TROUBLE_MS = 500, /* while a node does not answer: a replica may be elected ... */
    CLUSTER_ELECTION_MS = 60 * 1000, /* ... within this time */
    CLUSTER_LONG_TROUBLE_MS = 5 * 1000
};

void hli_cluster_log(struct hli_cluster *cluster, hl_log_level level, const char *format, ...)
{
    const struct hli_topology_listener *listener = hli_cluster_listener(cluster);
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    listener->log(level, text, listener->arg);
}

void hli_cluster_note(struct hli_cluster *cluster, hl_error *told, const hl_error *err)
{
    if (err->code < 0 && strcmp(told->text, err->text) != 0)
        hli_cluster_log(cluster, HL_LOG_WARN, "%s", err->text);
    *told = *err;
}

/* Many clients lose a node at the same time. */
int64_t hli_cluster_look_ms(hli_ns trouble, uint64_t dice)
{
    if (trouble < 0)
        return CLUSTER_EVERY_MS;
    int64_t ms =
        trouble < HLI_MS(CLUSTER_ELECTION_MS) ? CLUSTER_TROUBLE_MS : CLUSTER_LONG_TROUBLE_MS;
    return ms - (int64_t)(dice % (uint64_t)(ms / 5));
}

void hli_cluster_refresh_in(struct hli_cluster *cluster, int64_t ms)
{
    hli_ns at = hli_later(hli_after_ms(hli_now(), ms),
                          hli_after_ms(cluster->refreshed_at, CLUSTER_SOON_MS));

    if (!cluster->is_stopped && !cluster->scout.is_out)
        hli_timer_set_earlier(cluster->base.setup.loop, &cluster->timer, at);
}

void hli_cluster_set_slot(struct hli_cluster *cluster, unsigned slot, struct hli_link *link)
{
    if (atomic_load(&cluster->base.link[slot]) == link)
        return;
    atomic_store(&cluster->base.link[slot], link);
    cluster->moved[slot / 8] |= (unsigned char)(1 << slot % 8);
}

bool hli_topology_has_moved(const struct hli_topology *topology, unsigned slot)
{
    const struct hli_cluster *cluster = HLI_OF(topology, struct hli_cluster, base);

    return cluster->moved[slot / 8] & 1 << slot % 8;
}

void hli_cluster_tell_moved(struct hli_cluster *cluster)
{
    const struct hli_topology_listener *listener = hli_cluster_listener(cluster);
    bool has_any = false;

    for (size_t i = 0; i < sizeof(cluster->moved); i++)
        has_any = has_any || cluster->moved[i];
    if (has_any)
        listener->moved(listener->arg);
    memset(cluster->moved, 0, sizeof(cluster->moved));
}

bool hli_cluster_has_hole(const struct hli_cluster *cluster)
{
    for (unsigned slot = 0; slot < HLI_SLOTS; slot++)
        if (atomic_load(&cluster->base.link[slot]) == cluster->nowhere)
            return true;
    return false;
}
