/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The topology of one server, which sentinels may name. */
#include "base/check.h"
#include "route/outage.h"
#include "route/sentinels.h"
#include "route/topology_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A replica acknowledges every second what it has received. */
enum { SERVER_LAG_MS = 8000 };

struct one_server {
    struct hli_topology base;
    struct hli_sentinels *sentinels; /* NULL: the server stays where it is */
    struct hli_link *link;
    bool was_up;                  /* loop thread */
    char last_up[HLI_WHERE_SIZE]; /* loop thread: where the link was up last; "": nowhere yet */
    struct hli_outage outage;
    size_t tries; /* loop thread: in a row, at servers that sentinels named */
    /* Loop thread: when a replica followed the master the last time, since the link came up (0:
     * never), and the master's replication offset then. A replica follows when it has come to the
     * offset of the time before. */
    hli_ns followed_at;
    int64_t offset;
    bool is_isolated; /* loop thread: the master may have been replaced */
};

static void server_set_isolated(struct one_server *server, bool is_isolated, const char *why)
{
    if (server->is_isolated == is_isolated)
        return;
    server->is_isolated = is_isolated;
    server->base.setup.listener.isolated(is_isolated, why, server->base.setup.listener.arg);
}

/* A sentinel that answers tells of a failover itself, whatever becomes of the replicas. */
static void server_judge(struct one_server *server, bool is_followed)
{
    char text[HLI_WHERE_SIZE + 192];

    if (!hli_sentinels_are_blind(server->sentinels)) {
        server_set_isolated(server, false, hli_sentinels_why(server->sentinels));
    } else if (is_followed) {
        server_set_isolated(server, false, "a replica follows it again");
    } else {
        snprintf(text, sizeof(text), "no replica follows %s, and no sentinel of '%s' is of use",
                 server->last_up, server->base.url.service);
        server_set_isolated(server, true, text);
    }
}

/* Sentinels can put only a replica in the master's place: without one there is no danger. */
static void server_on_replicated(struct hli_link *link, int64_t offset, int64_t replica_offset,
                                 void *arg)
{
    struct one_server *server = arg;
    hli_ns now = hli_now();

    (void)link;
    if (replica_offset >= server->offset) {
        server->offset = offset;
        server->followed_at = now;
    }
    server_judge(server, server->followed_at == 0 ||
                             now < hli_after_ms(server->followed_at, SERVER_LAG_MS));
}

/* The link is up, and so the server is a master. */
static void server_confirm(struct one_server *server)
{
    char where[HLI_WHERE_SIZE];

    hli_sentinels_confirm(server->sentinels);
    server->tries = 0;
    hli_link_where(server->link, where);
    if (server->last_up[0] && strcmp(where, server->last_up) != 0)
        server->base.setup.listener.changed(server->last_up, where,
                                            hli_sentinels_why(server->sentinels),
                                            server->base.setup.listener.arg);
    snprintf(server->last_up, sizeof(server->last_up), "%s", where);
    server->followed_at = 0;
    server->offset = 0;
    server_set_isolated(server, false, hli_sentinels_why(server->sentinels));
}

static bool server_on_met(struct hli_link *link, const struct hli_link_met *met, hl_error *ret_err,
                          void *arg)
{
    struct one_server *server = arg;

    (void)link;
    return !hli_sentinels_met_another(server->sentinels, met, ret_err);
}

static void server_on_up(struct hli_link *link, void *arg)
{
    struct one_server *server = arg;

    if (server->sentinels && link == server->link)
        server_confirm(server);
    hli_outage_end(&server->outage, &server->base.setup.listener, link);
    bool is_again = server->was_up;
    server->was_up = is_again || hli_link_is_whole(link);
    server->base.setup.listener.up(link, is_again, server->base.setup.listener.arg);
}

static void server_on_down(struct hli_link *link, const hl_error *err, void *arg)
{
    struct one_server *server = arg;

    hli_outage_begin(&server->outage, &server->base.setup.listener, link, err);
    server->base.setup.listener.down(link, err, server->base.setup.listener.arg);
}

static void server_log(hl_log_level level, const char *text, void *arg)
{
    struct one_server *server = arg;

    server->base.setup.listener.log(level, text, server->base.setup.listener.arg);
}

/* One sentinel may have named a server that is the master no more: the attempt has not failed
 * before all were asked. */
static bool server_has_another(struct one_server *server)
{
    if (!server->sentinels || !hli_sentinels_are_doubted(server->sentinels))
        return false;
    server->tries++;
    return server->tries % hli_sentinels_count(server->sentinels) != 0;
}

static void server_on_failed(struct hli_link *link, const hl_error *err, void *arg)
{
    struct one_server *server = arg;

    if (link == server->link && server_has_another(server)) {
        server_log(HL_LOG_INFO, err->text, server);
        hli_link_hurry(link);
        return;
    }
    hli_outage_go_on(&server->outage, &server->base.setup.listener, err);
    server->base.setup.listener.failed(link, err, server->base.setup.listener.arg);
}

static void server_locate(struct hli_link *link, void *arg)
{
    (void)link;
    hli_sentinels_locate(((struct one_server *)arg)->sentinels);
}

static void server_on_located(const struct hli_address *master, const hl_error *err, void *arg)
{
    hli_lanes_located(((struct one_server *)arg)->link, master, err);
}

/* The old master may be out of our reach, or may have been cut off from the others: it is left at
 * once. */
static void server_on_moved(const char *why, void *arg)
{
    struct one_server *server = arg;
    char text[HLI_WHERE_SIZE + 64];

    snprintf(text, sizeof(text), "another server is the master now: %s", why);
    hli_lanes_drop(server->link, text);
    hli_link_hurry(server->link);
}

static int server_add_sentinels(struct one_server *server)
{
    const struct hli_topology_setup *setup = &server->base.setup;
    const struct hli_sentinels_setup sentinels = {.dialler = &server->base.dialler,
                                                  .settings = setup->settings,
                                                  .url = &server->base.url,
                                                  .logins = server->base.logins,
                                                  .events = {.located = server_on_located,
                                                             .moved = server_on_moved,
                                                             .log = server_log,
                                                             .arg = server}};

    if (server->base.url.kind != HLI_URL_SENTINEL)
        return 0;
    server->sentinels = hli_sentinels_new(&sentinels);
    return server->sentinels ? 0 : HL_ENOMEM;
}

static struct one_server *server_of(struct hli_topology *topology)
{
    return HLI_OF(topology, struct one_server, base);
}

static int server_init(struct hli_topology *topology)
{
    struct one_server *server = server_of(topology);
    bool is_named = topology->url.kind == HLI_URL_SENTINEL;
    const struct hli_link_listener listener = {.up = server_on_up,
                                               .down = server_on_down,
                                               .failed = server_on_failed,
                                               .replicated = is_named ? server_on_replicated : NULL,
                                               .met = is_named ? server_on_met : NULL,
                                               .locate = is_named ? server_locate : NULL,
                                               .arg = server};

    server->link =
        hli_topology_new_link(topology, is_named ? NULL : &topology->url.addresses[0], &listener);
    if (!server->link)
        return HL_ENOMEM;
    atomic_init(&topology->link[0], server->link);
    return server_add_sentinels(server);
}

static void server_deinit(struct hli_topology *topology)
{
    struct one_server *server = server_of(topology);

    hli_lanes_free(server->link);
    hli_sentinels_free(server->sentinels);
}

static void server_start(struct hli_topology *topology)
{
    hli_link_start(server_of(topology)->link);
}

static void server_stop(struct hli_topology *topology)
{
    struct one_server *server = server_of(topology);

    if (server->sentinels)
        hli_sentinels_stop(server->sentinels);
    hli_lanes_stop(server->link, HL_ECLOSED, "the client is closed");
}

static void server_abandon(struct hli_topology *topology)
{
    struct one_server *server = server_of(topology);

    hli_lanes_abandon(server->link);
    if (server->sentinels)
        hli_sentinels_abandon(server->sentinels);
}

static void server_look(struct hli_topology *topology,
                        void (*visit)(const struct hli_node_view *view, void *arg), void *arg)
{
    struct one_server *server = server_of(topology);
    struct hli_node_view view = hli_topology_view(server->link);

    view.has_names = true;
    visit(&view, arg);
    if (server->sentinels && hli_sentinels_look(server->sentinels, &view))
        visit(&view, arg);
}

const struct hli_topology_kind hli_topology_one_server = {
    .size = sizeof(struct one_server),
    .slots = 1,
    .init = server_init,
    .deinit = server_deinit,
    .start = server_start,
    .stop = server_stop,
    .abandon = server_abandon,
    .look = server_look,
};
