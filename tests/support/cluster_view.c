/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A line of CLUSTER NODES:
 *     ID HOST:PORT@BUS[,NAME] FLAG[,FLAG]... MASTER-ID PING PONG EPOCH connected RANGE...
 * A range in brackets is a slot on its way, in the line of the node itself. The port is not read:
 * who asks without TLS is told the ports without TLS, which a node may not have.
 */
#include "cluster_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatal.h"
#include "redis_probe.h"

static bool peer_has_flag(const char *flags, const char *flag)
{
    size_t length = strlen(flag);
    for (const char *at = strstr(flags, flag); at; at = strstr(at + 1, flag))
        if ((at == flags || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static void peer_add_range(struct cluster_peer *peer, const char *range)
{
    char *end = NULL;
    if (range[0] == '[')
        return;
    long first = strtol(range, &end, 10);
    long last = *end == '-' ? strtol(end + 1, NULL, 10) : first;
    must(first >= 0 && last < CLUSTER_SLOTS);
    for (long slot = first; slot <= last; slot++)
        peer->slots[slot / 8] |= (unsigned char)(1 << slot % 8);
}

static void peer_read(struct cluster_peer *peer, char *line)
{
    enum { ID, ADDRESS, FLAGS, MASTER, PING, PONG, EPOCH, LINK, FIELDS };
    char *rest = NULL, *field[FIELDS];
    *peer = (struct cluster_peer){.is_myself = false};
    for (int i = 0; i < FIELDS; i++) {
        field[i] = strtok_r(i == 0 ? line : NULL, " ", &rest);
        must(field[i]);
    }
    snprintf(peer->id, sizeof peer->id, "%s", field[ID]);
    snprintf(peer->master_id, sizeof peer->master_id, "%s", field[MASTER]);
    peer->is_myself = peer_has_flag(field[FLAGS], "myself");
    peer->is_master = peer_has_flag(field[FLAGS], "master");
    peer->is_well = strcmp(field[LINK], "connected") == 0 && !peer_has_flag(field[FLAGS], "fail") &&
                    !peer_has_flag(field[FLAGS], "fail?") &&
                    !peer_has_flag(field[FLAGS], "handshake") &&
                    !peer_has_flag(field[FLAGS], "noaddr");
    for (char *range = strtok_r(NULL, " ", &rest); range; range = strtok_r(NULL, " ", &rest))
        peer_add_range(peer, range);
}

bool cluster_view_read(struct redis_server *node, struct cluster_view *ret_view)
{
    redisReply *reply = redis_command(node, "CLUSTER NODES");
    bool is_there = reply && reply->type == REDIS_REPLY_STRING;
    if (is_there) {
        char *rest = NULL, *line = strtok_r(reply->str, "\n", &rest);
        ret_view->count = 0;
        for (; line; line = strtok_r(NULL, "\n", &rest)) {
            must(ret_view->count < CLUSTER_PEERS);
            peer_read(&ret_view->peer[ret_view->count++], line);
        }
    }
    freeReplyObject(reply);
    return is_there;
}

bool cluster_peer_serves(const struct cluster_peer *peer, int slot)
{
    return peer->slots[slot / 8] & 1 << slot % 8;
}

const struct cluster_peer *cluster_view_find(const struct cluster_view *view, const char *id)
{
    for (int i = 0; i < view->count; i++)
        if (strcmp(view->peer[i].id, id) == 0)
            return &view->peer[i];
    return NULL;
}

const struct cluster_peer *cluster_view_myself(const struct cluster_view *view)
{
    for (int i = 0; i < view->count; i++)
        if (view->peer[i].is_myself)
            return &view->peer[i];
    fatal("a node does not find itself in its cluster");
}

const struct cluster_peer *cluster_view_master(const struct cluster_view *view, int slot)
{
    for (int i = 0; i < view->count; i++)
        if (cluster_peer_serves(&view->peer[i], slot))
            return &view->peer[i];
    return NULL;
}

struct cluster_peer cluster_peer_of(struct redis_server *node)
{
    struct cluster_view view;
    must(cluster_view_read(node, &view));
    return *cluster_view_myself(&view);
}

bool cluster_view_shows(const struct cluster_view *view, const struct cluster_peer *self)
{
    const struct cluster_peer *seen = cluster_view_find(view, self->id);
    return seen && seen->is_well && seen->is_master == self->is_master &&
           strcmp(seen->master_id, self->master_id) == 0 &&
           memcmp(seen->slots, self->slots, sizeof seen->slots) == 0;
}
