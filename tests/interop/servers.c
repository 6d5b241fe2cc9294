/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Those that the tests of a program share are shared_servers.h's. */
#include "servers.h"

#include "support/redis_program.h"
#include "support/shared_servers.h"

#include <stdlib.h>
#include <string.h>

static bool is_plain;

void servers_begin(void)
{
    if (servers_kind != ONE_SERVER)
        setenv("HL_TEST_SERVER", servers_kind == CLUSTER ? "cluster" : "sentinel", 1);
    shared_servers_start(shared_servers_wanted());
}

void servers_end(void)
{
    shared_servers_stop();
}

static void servers_set(void)
{
    server = server_of(servers_name(0));
    clients_url = servers_url();
}

void servers_up(void)
{
    if (servers_kind == ONE_SERVER)
        server_up_tcp();
    else
        shared_servers_join();
    redis_server_stand_for(server, NULL); /* these laws ask the master of each name */
    servers_set();
}

void servers_up_own(void)
{
    if (servers_kind == SENTINELS)
        trio_up();
    else if (servers_kind == CLUSTER)
        cluster_up();
    else
        server_up_tcp();
    servers_set();
}

void servers_up_plain(void)
{
    static const char denied[] = "user default on nopass ~* &* +@all -pubsub|shardnumsub";

    is_plain = true;
    cluster_up_with(&(struct cluster_options){.config = redis_program_is_7() ? denied : NULL});
    servers_set();
}

const char *servers_url(void)
{
    if (servers_kind == SENTINELS)
        return trio_url(trio);
    return servers_kind == CLUSTER ? cluster_url(cluster) : redis_server_url(server);
}

void servers_flush(void)
{
    if (servers_kind != CLUSTER) {
        redis_do(server_of(servers_name(0)), "FLUSHALL");
        return;
    }
    for (int i = 0; i < cluster_nodes(cluster); i++) {
        struct redis_server *node = cluster_node(cluster, i);
        if (redis_server_is_up(node) && cluster_slot_at(node) >= 0)
            redis_do(node, "FLUSHALL");
    }
}

struct redis_server *server_of(const char *name)
{
    if (servers_kind == SENTINELS)
        return trio_master(trio);
    return servers_kind == CLUSTER ? cluster_node_of(cluster, name) : server;
}

const char *servers_name(int i)
{
    static const char *const names[] = {"stock", "store", "jar", NULL};
    return servers_kind == CLUSTER || i == 0 ? names[i] : NULL;
}

bool servers_shard(void)
{
    return servers_kind == CLUSTER && !is_plain && redis_program_is_7();
}
