/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A client whose server can be taken away and given back, another that sees it all the time, and
 * what the first one is told. */
#ifndef HL_TEST_CONNECTION_OUTAGE_H
#define HL_TEST_CONNECTION_OUTAGE_H

#include <stdatomic.h>

#include "connection_fixture.h"

/* A server that is out of reach at once, or silent. */
static inline void outage_begin(struct connection *c)
{
    proxy_refuse(c->proxy, true);
    proxy_kill_all(c->proxy);
}

static inline void outage_end(struct connection *c)
{
    proxy_refuse(c->proxy, false);
}

struct outage {
    struct connection c;
    hl_client *client, *other;
    hl_lock *lock, *others_lock;
};

static inline void outage_start(struct outage *outage, const hl_client_options *options)
{
    hl_client_options direct = connection_options();
    outage->c = connection_start(NULL);
    outage->client = connection_open(proxy_url(outage->c.proxy), options);
    outage->other = connection_open(redis_server_url(outage->c.server), &direct);
    outage->lock = connection_lock(outage->client, "outage");
    outage->others_lock = connection_lock(outage->other, "outage");
}

static inline void outage_stop(struct outage *outage)
{
    hl_lock_free(outage->lock);
    hl_lock_free(outage->others_lock);
    check_int(hl_client_close(outage->client), HL_OK);
    check_int(hl_client_close(outage->other), HL_OK);
    connection_stop(&outage->c);
}

struct seen {
    atomic_int kinds[8];
    char reason[256];
};

static inline void seen_event(const hl_event *event, void *arg)
{
    struct seen *seen = arg;
    if (event->kind == HL_EVENT_DISCONNECTED)
        snprintf(seen->reason, sizeof seen->reason, "%s", event->reason);
    atomic_fetch_add(&seen->kinds[event->kind], 1);
}

static inline bool seen_connected(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_CONNECTED]) > 0;
}

static inline bool seen_disconnected(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_DISCONNECTED]) > 0;
}

static inline bool seen_lost(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_LOST]) > 0;
}

static inline bool seen_jeopardy(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_JEOPARDY]) > 0;
}

static inline bool seen_safe(void *arg)
{
    return atomic_load(&((struct seen *)arg)->kinds[HL_EVENT_SAFE]) > 0;
}

#endif
