/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

#include "replicas.h"

#include <stdio.h>

#include "fatal.h"
#include "proxy.h"

static struct {
    struct redis_server *server;
    struct proxy *proxy;
} replicas[REPLICAS_MAX];

static int replicas_count;

static void replicas_stop_one(void *item)
{
    redis_server_stop(item);
}

void replicas_add(void)
{
    int i = replicas_count++;
    char config[128];

    must(i < REPLICAS_MAX);
    replicas[i].proxy = new_proxy();
    snprintf(config, sizeof config, "replicaof 127.0.0.1 %d", proxy_port(replicas[i].proxy));
    replicas[i].server =
        redis_server_start(&(struct redis_options){.plain = true, .tcp = true, .config = config});
    stop_at_end(replicas[i].server, replicas_stop_one);
    check(redis_wait_replicas(server, replicas_count, 60000));
    /* The master sends it nothing before its first word, which may come a second later. */
    redis_do(server, "SET replicated yes");
    redis_do(server, "DEL replicated");
    check_int(redis_int(server, "WAIT %d 60000", replicas_count), replicas_count);
}

void replica_up(void)
{
    replicas_count = 0;
    server_up_with(&(struct redis_options){
        .tcp = true,
        .plain = true,
        .config = "repl-diskless-sync-delay 0\nrepl-ping-replica-period 1\nrepl-timeout 600"});
    replicas_add();
}

struct redis_server *replica(int i)
{
    return replicas[i].server;
}

void replica_cut(int i)
{
    proxy_hold(replicas[i].proxy, PROXY_EVERY, PROXY_DOWN);
}

void replica_join(int i)
{
    proxy_release(replicas[i].proxy, PROXY_EVERY, PROXY_DOWN);
}

void replica_lag(int i, int64_t ms)
{
    proxy_delay(replicas[i].proxy, PROXY_EVERY, PROXY_DOWN, ms);
}

bool replica_has(int i, const char *name)
{
    return redis_int(replicas[i].server, "EXISTS %s", name) == 1;
}
