/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A sentinel describes each server as a flat list of names and values; its flags are one word when
 * nothing is wrong with the server. */
#include "sentinel_view.h"

#include <stdlib.h>
#include <string.h>

#include "redis_probe.h"

static const char *sentinel_field(const redisReply *list, const char *name)
{
    for (size_t i = 0; list->type == REDIS_REPLY_ARRAY && i + 1 < list->elements; i += 2)
        if (strcmp(list->element[i]->str, name) == 0)
            return list->element[i + 1]->str;
    return "";
}

static bool sentinel_field_is(const redisReply *list, const char *name, const char *value)
{
    return strcmp(sentinel_field(list, name), value) == 0;
}

int sentinel_master_port(struct redis_server *sentinel)
{
    int port = 0;
    redisReply *reply =
        redis_command(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", SENTINEL_MASTER);
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
        port = (int)strtol(reply->element[1]->str, NULL, 10);
    freeReplyObject(reply);
    return port;
}

static bool sentinel_replica_is_fit(const redisReply *replica)
{
    return sentinel_field_is(replica, "flags", "slave") &&
           sentinel_field_is(replica, "master-link-status", "ok");
}

static bool sentinel_other_is_fit(const redisReply *other)
{
    return sentinel_field_is(other, "flags", "sentinel");
}

static int sentinel_count(struct redis_server *sentinel, const char *what,
                          bool (*is_fit)(const redisReply *))
{
    int count = 0;
    redisReply *reply = redis_command(sentinel, "SENTINEL %s %s", what, SENTINEL_MASTER);
    if (reply && reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < reply->elements; i++)
            count += is_fit(reply->element[i]);
    freeReplyObject(reply);
    return count;
}

int sentinel_replicas(struct redis_server *sentinel)
{
    return sentinel_count(sentinel, "SLAVES", sentinel_replica_is_fit);
}

int sentinel_others(struct redis_server *sentinel)
{
    return sentinel_count(sentinel, "SENTINELS", sentinel_other_is_fit);
}

bool sentinel_finds_master_well(struct redis_server *sentinel)
{
    redisReply *reply = redis_command(sentinel, "SENTINEL MASTER %s", SENTINEL_MASTER);
    bool well = reply && sentinel_field_is(reply, "flags", "master") &&
                sentinel_field_is(reply, "role-reported", "master");
    freeReplyObject(reply);
    return well;
}

bool sentinel_has_quorum(struct redis_server *sentinel)
{
    redisReply *reply = redis_command(sentinel, "SENTINEL CKQUORUM %s", SENTINEL_MASTER);
    bool has = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return has;
}

/* "master", offset, replicas; or "slave", host, port, state of the link, offset. */
static redisReply *redis_ask_role(struct redis_server *server, const char *role)
{
    redisReply *reply = redis_command(server, "ROLE");
    if (reply && reply->type == REDIS_REPLY_ARRAY && strcmp(reply->element[0]->str, role) == 0)
        return reply;
    freeReplyObject(reply);
    return NULL;
}

bool redis_is_master(struct redis_server *server)
{
    redisReply *reply = redis_ask_role(server, "master");
    freeReplyObject(reply);
    return reply != NULL;
}

bool redis_replicates(struct redis_server *server, int master_port)
{
    redisReply *reply = redis_ask_role(server, "slave");
    bool is_linked = reply && reply->element[2]->integer == master_port &&
                     strcmp(reply->element[3]->str, "connected") == 0;
    freeReplyObject(reply);
    return is_linked;
}
