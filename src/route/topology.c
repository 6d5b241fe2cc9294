/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The topology: the table of links, and the calls of its kind. */
#include "route/topology.h"

#include "route/slots.h"
#include "route/topology_kind.h"

#include <stdlib.h>
#include <string.h>

/* An answer that nobody waited for is kept for as long as a pause between two attempts, and this
 * much longer: a timer may be late. */
enum { TOPOLOGY_NAME_MS = 1000 };

static const struct hli_topology_kind *topology_kind_of(const struct hli_url *url)
{
    return url->kind == HLI_URL_CLUSTER ? &hli_topology_cluster : &hli_topology_one_server;
}

static void topology_free(struct hli_topology *topology)
{
    hli_resolver_free(topology->dialler.resolver);
    hli_tls_context_free(topology->dialler.tls);
    hli_logins_free(topology->logins);
    free(topology->link);
    free(topology);
}

struct hli_topology *hli_topology_new(const struct hli_topology_setup *setup,
                                      const struct hli_url *url)
{
    const struct hli_topology_kind *kind = topology_kind_of(url);
    struct hli_topology *topology = calloc(1, kind->size);

    if (!topology)
        return NULL;
    topology->kind = kind;
    topology->setup = *setup;
    topology->url = *url;
    topology->logins = hli_logins_new(setup->loop, setup->settings, &topology->url);
    topology->dialler =
        (struct hli_dialler){.loop = setup->loop,
                             .resolver = hli_resolver_new(
                                 setup->loop, setup->settings->backoff_max_ms + TOPOLOGY_NAME_MS)};
    topology->link = calloc(kind->slots, sizeof(*topology->link));
    bool has_all = topology->link && topology->logins && topology->dialler.resolver;
    if (has_all && kind->init(topology) == 0) {
        topology->dialler.tls = setup->tls;
        return topology;
    }
    if (has_all)
        kind->deinit(topology);
    topology_free(topology);
    return NULL;
}

void hli_topology_free(struct hli_topology *topology)
{
    if (!topology)
        return;
    topology->kind->deinit(topology);
    hli_url_deinit(&topology->url);
    topology_free(topology);
}

void hli_topology_start(struct hli_topology *topology)
{
    topology->kind->start(topology);
}

void hli_topology_stop(struct hli_topology *topology)
{
    topology->kind->stop(topology);
    hli_resolver_stop(topology->dialler.resolver);
}

void hli_topology_join(struct hli_topology *topology)
{
    hli_logins_join(topology->logins);
}

bool hli_topology_asks_here(const struct hli_topology *topology)
{
    return topology && hli_logins_are_asked_here(topology->logins);
}

void hli_topology_abandon(struct hli_topology *topology)
{
    topology->kind->abandon(topology);
    hli_resolver_abandon(topology->dialler.resolver);
}

void hli_topology_look(struct hli_topology *topology,
                       void (*visit)(const struct hli_node_view *view, void *arg), void *arg)
{
    topology->kind->look(topology, visit, arg);
}

bool hli_topology_is_fixed(const struct hli_topology *topology)
{
    return topology->url.kind != HLI_URL_CLUSTER && topology->url.kind != HLI_URL_SENTINEL;
}

unsigned hli_topology_slot(const struct hli_topology *topology, const void *name, size_t length)
{
    return topology->kind->slots == HLI_SLOTS ? hli_slot_of(name, length) : 0;
}

const _Atomic(struct hli_link *) *hli_topology_links(const struct hli_topology *topology)
{
    return topology->link;
}

struct hli_link *hli_topology_link_at(const struct hli_topology *topology, const char *where)
{
    struct hli_link *seen = NULL;
    char text[HLI_WHERE_SIZE];

    for (unsigned slot = 0; slot < topology->kind->slots; slot++) {
        struct hli_link *link = atomic_load_explicit(&topology->link[slot], memory_order_acquire);
        if (link == seen)
            continue;
        seen = link;
        hli_link_where(link, text);
        if (strcmp(text, where) == 0)
            return link;
    }
    return NULL;
}
