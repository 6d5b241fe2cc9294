/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The sentinels of one service: they say where its master is, and when that changes (redis.io,
 * "Guidelines for Redis clients with support for Redis Sentinel"). The client asks one sentinel
 * after the other until one answers; to this one it stays connected, subscribed to +switch-master,
 * and asks it again every 10 seconds. Loop thread.
 */
#ifndef HLI_ROUTE_SENTINELS_H
#define HLI_ROUTE_SENTINELS_H

#include "redis/logins.h"
#include "redis/loop.h"
#include "route/topology.h"

#include <hirelock/client.h>

struct hli_sentinels_events {
    /* The answer to hli_sentinels_locate(): the master's address, borrowed; or NULL, and err says
     * why no sentinel named one. */
    void (*located)(const struct hli_address *master, const hl_error *err, void *arg);
    /* The master is another server than the one that was named last. */
    void (*moved)(const char *why, void *arg);
    void (*log)(hl_log_level level, const char *text, void *arg);
    void *arg;
};

struct hli_sentinels;

struct hli_sentinels_setup {
    const struct hli_dialler *dialler; /* borrowed, as the next three */
    const hl_client_options *settings;
    const struct hli_url *url;
    struct hli_logins *logins;
    struct hli_sentinels_events events;
};

/* NULL when memory is out. */
struct hli_sentinels *hli_sentinels_new(const struct hli_sentinels_setup *setup);
void hli_sentinels_free(struct hli_sentinels *sentinels); /* stopped; NULL is fine */

/* Asks where the master is, for at most the connect timeout. When the server that was named last
 * was not confirmed, another sentinel is asked than the one that named it. */
void hli_sentinels_locate(struct hli_sentinels *sentinels);

/* The server that was named is a master, and can be used. */
void hli_sentinels_confirm(struct hli_sentinels *sentinels);
/* Is the server there another one than its sentinel has met there (hli_sentinel_met_another())?
 * Then ret_err says so. */
bool hli_sentinels_met_another(const struct hli_sentinels *sentinels,
                               const struct hli_link_met *server, hl_error *ret_err);
/* A server was named, and is not confirmed. */
bool hli_sentinels_are_doubted(const struct hli_sentinels *sentinels);

/* All were asked in vain the last time. */
bool hli_sentinels_are_blind(const struct hli_sentinels *sentinels);

size_t hli_sentinels_count(const struct hli_sentinels *sentinels); /* that are known */

/* Which sentinel named the master: "sentinel 127.0.0.1:26379 names it". */
const char *hli_sentinels_why(const struct hli_sentinels *sentinels);

/* The sentinel of the connection. False: there is no connection. */
bool hli_sentinels_look(const struct hli_sentinels *sentinels, struct hli_node_view *ret_view);

void hli_sentinels_stop(struct hli_sentinels *sentinels);
void hli_sentinels_abandon(struct hli_sentinels *sentinels); /* in a forked child */

#endif
