/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* In the order of redis-cli: the new master is told first at the beginning and at the end, so that
 * a client that is sent there is never sent back. */
#include "slot_move.h"

#include <string.h>

#include "fatal.h"
#include "redis_probe.h"
#include "test.h"

struct slot_move slot_move_begin(struct redis_cluster *cluster, int slot, struct redis_server *to)
{
    struct slot_move move = {cluster, slot, cluster_node_at(cluster, slot), to};
    must(move.from != to);
    redis_do(to, "CLUSTER SETSLOT %d IMPORTING %s", slot, cluster_peer_of(move.from).id);
    redis_do(move.from, "CLUSTER SETSLOT %d MIGRATING %s", slot, cluster_peer_of(to).id);
    return move;
}

static bool slot_move_one(const struct slot_move *move, const char *name, size_t length)
{
    redisReply *reply = redis_command(
        move->from, "MIGRATE %s %d %s 0 %lld AUTH2 hltest any KEYS %b", redis_server_host(move->to),
        redis_server_port(move->to), "", (long long)slow_ms(10000), name, length);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fatal("MIGRATE of slot %d: %s", move->slot, reply ? reply->str : "no answer");
    bool moved = strcmp(reply->str, "NOKEY") != 0;
    freeReplyObject(reply);
    return moved;
}

bool slot_move_key(const struct slot_move *move, const char *name)
{
    return slot_move_one(move, name, strlen(name));
}

int slot_move_keys(const struct slot_move *move)
{
    int moved = 0;
    size_t found = 0;
    do {
        redisReply *reply = redis_command(move->from, "CLUSTER GETKEYSINSLOT %d 100", move->slot);
        must(reply && reply->type == REDIS_REPLY_ARRAY);
        found = reply->elements;
        for (size_t i = 0; i < found; i++)
            moved += slot_move_one(move, reply->element[i]->str, (size_t)reply->element[i]->len);
        freeReplyObject(reply);
    } while (found > 0);
    return moved;
}

void slot_move_end(const struct slot_move *move)
{
    struct cluster_peer target = cluster_peer_of(move->to);
    slot_move_keys(move);
    redis_do(move->to, "CLUSTER SETSLOT %d NODE %s", move->slot, target.id);
    redis_do(move->from, "CLUSTER SETSLOT %d NODE %s", move->slot, target.id);
    cluster_await_whole(move->cluster);
}

void slot_move_undo(const struct slot_move *move)
{
    redis_do(move->from, "CLUSTER SETSLOT %d STABLE", move->slot);
    redis_do(move->to, "CLUSTER SETSLOT %d STABLE", move->slot);
}

void slot_move(struct redis_cluster *cluster, int slot, struct redis_server *to)
{
    struct slot_move move = slot_move_begin(cluster, slot, to);
    slot_move_end(&move);
}
