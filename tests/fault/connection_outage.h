/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A client whose server can be cut off and restored, another client that reaches the server all the
 * time, and the events of the first one. */
#ifndef HL_TEST_CONNECTION_OUTAGE_H
#define HL_TEST_CONNECTION_OUTAGE_H

#include "connection_fixture.h"
#include "support/events.h"

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
    outage->client = open_client_at(proxy_url(outage->c.proxy), options);
    outage->other = open_client_at(redis_server_url(outage->c.server), &direct);
    outage->lock = new_lock(outage->client, "outage");
    outage->others_lock = new_lock(outage->other, "outage");
}

static inline bool outage_is_refused(void *client)
{
    hl_error err = HL_ERROR_INIT;
    return hl_client_ping(client, 1, &err) == HL_ECONN && strstr(err.text, "connection refused");
}

/* Out of reach, and the client has tried: that is the reason that calls tell from now on. */
static inline void outage_begin_refused(struct outage *outage)
{
    outage_begin(&outage->c);
    check(wait_until(outage_is_refused, outage->client, 5000));
}

static inline void outage_stop(struct outage *outage)
{
    free_lock(outage->lock);
    free_lock(outage->others_lock);
    close_client(outage->client);
    close_client(outage->other);
    connection_stop(&outage->c);
}

#endif
