/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The nodes are introduced to each other pair by pair; gossip alone would take seconds for it. A
 * new master waits for two seconds before it works, whatever one does. */
#include "redis_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fatal.h"
#include "redis_probe.h"
#include "redis_program.h"
#include "sentinel_view.h"
#include "test.h"

enum { CLUSTER_PATIENCE_MS = 60000, CLUSTER_LOOK_MS = 10 };
enum { NEVER_DEAD_MS = 600000, DEAD_MS = 2000 };

struct redis_cluster {
    struct cluster_options options;
    int nodes;
    int hosts; /* that were given out */
    struct redis_server *node[CLUSTER_NODES];
    struct cluster_view view[CLUSTER_NODES]; /* as last read, of nodes that are up */
};

/* Of a block of addresses that no other process has, unless 50,000 began since. */
static const char *cluster_next_host(struct redis_cluster *cluster, char host[32])
{
    int block = (int)getpid() % 50000;
    snprintf(host, 32, "127.%d.%d.%d", 20 + block / 250, block % 250, ++cluster->hosts);
    return host;
}

static struct redis_server *cluster_start_node(struct redis_cluster *cluster)
{
    static const char migration[] = "cluster-allow-replica-migration no";
    char config[2048], announce[160] = "", host[32];
    const struct redis_server *first = cluster->node[0];
    const struct cluster_options *options = &cluster->options;
    if (options->host)
        snprintf(announce, sizeof announce, "bind %s 127.0.0.1\ncluster-announce-ip %s\n",
                 options->host, options->host);
    int length =
        snprintf(config, sizeof config,
                 "cluster-node-timeout %d\n"
                 "cluster-replica-validity-factor 0\n"
                 "repl-diskless-sync-delay 0\n"
                 "%s\n%s%s\n%s%s\n",
                 NEVER_DEAD_MS, redis_program_knows(migration) ? migration : "",
                 options->password ? "masterauth " : "", options->password ? options->password : "",
                 announce, options->config ? options->config : "");
    must(length < (int)sizeof config);
    return redis_server_start(
        &(struct redis_options){.cluster = true,
                                .tcp = true,
                                .tls = options->tls,
                                .plain = !options->tls,
                                .relative = first,
                                .host = options->spread ? cluster_next_host(cluster, host) : NULL,
                                .port = options->spread && first ? redis_server_port(first) : 0,
                                .password = options->password,
                                .config = config});
}

/* Redis 6.2 has no command for a range. */
static void cluster_give_slots(struct redis_server *node, int first, int last)
{
    static char command[CLUSTER_SLOTS * 6 + 32];
    int length = snprintf(command, sizeof command, "CLUSTER ADDSLOTS");
    for (int slot = first; slot <= last; slot++)
        length += snprintf(command + length, sizeof command - (size_t)length, " %d", slot);
    redis_do(node, command);
}

/* Each gets an epoch of its own before they meet, or they would have to sort that out first. */
static void cluster_introduce(struct redis_cluster *cluster)
{
    for (int i = 0; i < cluster->nodes; i++)
        redis_do(cluster->node[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
    for (int i = 0; i < cluster->options.masters; i++)
        cluster_give_slots(cluster->node[i], CLUSTER_SLOTS * i / cluster->options.masters,
                           CLUSTER_SLOTS * (i + 1) / cluster->options.masters - 1);
    for (int i = 0; i < cluster->nodes; i++)
        for (int n = 0; n < i; n++)
            redis_do(cluster->node[i], "CLUSTER MEET %s %d", redis_server_host(cluster->node[n]),
                     redis_server_port(cluster->node[n]));
}

static bool cluster_read(struct redis_cluster *cluster)
{
    for (int i = 0; i < cluster->nodes; i++)
        if (redis_server_is_up(cluster->node[i]) &&
            !cluster_view_read(cluster->node[i], &cluster->view[i]))
            return false;
    return true;
}

static _Noreturn void cluster_give_up(const struct redis_cluster *cluster, const char *what)
{
    for (int i = 0; i < cluster->nodes; i++)
        redis_server_show_log(cluster->node[i]);
    fatal("%s", what);
}

/* Each look is a dozen commands, so there is a pause between them. */
static void cluster_wait(struct redis_cluster *cluster, bool (*condition)(void *), void *arg,
                         const char *what)
{
    struct deadline deadline = deadline_of_wait(CLUSTER_PATIENCE_MS);
    while (!condition(arg)) {
        if (deadline_is_over(deadline))
            cluster_give_up(cluster, what);
        for (int i = 0; i < CLUSTER_LOOK_MS; i++)
            deadline_nap();
    }
}

/* Every node knows every other one, by its real name. */
static bool cluster_has_met(void *arg)
{
    struct redis_cluster *cluster = arg;
    if (!cluster_read(cluster))
        return false;
    for (int i = 0; i < cluster->nodes; i++)
        for (int n = 0; n < cluster->nodes; n++)
            if (!cluster_view_find(&cluster->view[i], cluster_view_myself(&cluster->view[n])->id))
                return false;
    return true;
}

static void cluster_make_replicas(struct redis_cluster *cluster)
{
    int masters = cluster->options.masters;
    for (int i = masters; i < cluster->nodes; i++)
        redis_do(cluster->node[i], "CLUSTER REPLICATE %s",
                 cluster_view_myself(&cluster->view[i - masters])->id);
}

struct redis_cluster *cluster_start(const struct cluster_options *options)
{
    struct redis_cluster *cluster = calloc(1, sizeof *cluster);
    must(cluster);
    if (options)
        cluster->options = *options;
    if (cluster->options.masters == 0)
        cluster->options.masters = 3;
    cluster->nodes = cluster->options.masters * (cluster->options.without_replicas ? 1 : 2);
    must(cluster->nodes <= CLUSTER_NODES);
    for (int i = 0; i < cluster->nodes; i++)
        cluster->node[i] = cluster_start_node(cluster);
    cluster_introduce(cluster);
    cluster_wait(cluster, cluster_has_met, cluster, "the nodes do not find each other");
    cluster_make_replicas(cluster);
    cluster_await_whole(cluster);
    return cluster;
}

void cluster_word(const struct redis_cluster *cluster, char ret_word[CLUSTER_WORD])
{
    int length = snprintf(ret_word, CLUSTER_WORD, "%d", cluster->options.masters);
    for (int i = 0; i < cluster->nodes; i++) {
        char word[REDIS_SERVER_WORD];
        redis_server_word(cluster->node[i], word);
        length += snprintf(ret_word + length, CLUSTER_WORD - (size_t)length, " %s", word);
    }
}

struct redis_cluster *cluster_join(const char *word)
{
    struct redis_cluster *cluster = calloc(1, sizeof *cluster);
    must(cluster);
    cluster->options.masters = (int)strtol(word, NULL, 10);
    while ((word = strchr(word, ' ')) != NULL)
        cluster->node[cluster->nodes++] = redis_server_join(++word);
    return cluster;
}

struct redis_server *cluster_new_node(struct redis_cluster *cluster)
{
    must(cluster->nodes < CLUSTER_NODES);
    cluster->node[cluster->nodes] = cluster_start_node(cluster);
    return cluster->node[cluster->nodes++];
}

void cluster_free_node(struct redis_cluster *cluster, struct redis_server *node)
{
    int i = 0;
    while (cluster->node[i] != node)
        must(++i < cluster->nodes);
    redis_server_stop(node);
    for (cluster->nodes--; i < cluster->nodes; i++) {
        cluster->node[i] = cluster->node[i + 1];
        cluster->view[i] = cluster->view[i + 1];
    }
}

void cluster_stop(struct redis_cluster *cluster)
{
    if (!cluster)
        return;
    for (int i = 0; i < cluster->nodes; i++)
        redis_server_stop(cluster->node[i]);
    free(cluster);
}

const char *cluster_url_of(const struct redis_cluster *cluster, int first, int count,
                           const char *login)
{
    static _Thread_local char texts[8][512];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % 8];
    int length =
        snprintf(text, sizeof texts[0], "%s://%s%s%s",
                 cluster->options.tls ? "rediss-cluster" : "redis-cluster",
                 login && !strchr(login, ':') ? ":" : "", login ? login : "", login ? "@" : "");
    for (int i = 0; i < count; i++) {
        const struct redis_server *node = cluster->node[(first + i) % cluster->nodes];
        length += snprintf(text + length, sizeof texts[0] - (size_t)length, "%s%s:%d",
                           i > 0 ? "," : "", redis_server_host(node), redis_server_port(node));
    }
    return text;
}

const char *cluster_url(const struct redis_cluster *cluster)
{
    return cluster_url_of(cluster, 0, cluster->nodes, NULL);
}

int cluster_nodes(const struct redis_cluster *cluster)
{
    return cluster->nodes;
}

int cluster_masters(const struct redis_cluster *cluster)
{
    return cluster->options.masters;
}

struct redis_server *cluster_node(const struct redis_cluster *cluster, int i)
{
    must(i < cluster->nodes);
    return cluster->node[i];
}

static bool cluster_works(struct redis_server *node)
{
    redisReply *reply = redis_command(node, "CLUSTER INFO");
    bool works =
        reply && reply->type == REDIS_REPLY_STRING && strstr(reply->str, "cluster_state:ok");
    freeReplyObject(reply);
    return works;
}

/* By the views as last read; -1: no node of the test. */
static int cluster_find(const struct redis_cluster *cluster, const char *id)
{
    for (int i = 0; i < cluster->nodes; i++)
        if (strcmp(cluster_view_myself(&cluster->view[i])->id, id) == 0)
            return i;
    return -1;
}

/* What all that are up say; -1 while they differ, or one does not answer. */
static int cluster_agreed(struct redis_cluster *cluster, int slot)
{
    const struct cluster_peer *agreed = NULL;
    if (!cluster_read(cluster))
        return -1;
    for (int i = 0; i < cluster->nodes; i++) {
        if (!redis_server_is_up(cluster->node[i]))
            continue;
        const struct cluster_peer *master = cluster_view_master(&cluster->view[i], slot);
        if (!master || (agreed && strcmp(agreed->id, master->id) != 0))
            return -1;
        agreed = master;
    }
    return agreed ? cluster_find(cluster, agreed->id) : -1;
}

struct cluster_look {
    struct redis_cluster *cluster;
    int slot;
    const struct redis_server *old;
    struct redis_server *master;
};

static bool cluster_agrees(void *arg)
{
    struct cluster_look *look = arg;
    int master = cluster_agreed(look->cluster, look->slot);
    if (master >= 0)
        look->master = look->cluster->node[master];
    return master >= 0;
}

struct redis_server *cluster_node_at(struct redis_cluster *cluster, int slot)
{
    struct cluster_look look = {.cluster = cluster, .slot = slot};
    cluster_wait(cluster, cluster_agrees, &look, "the nodes do not agree on a slot's master");
    return look.master;
}

struct redis_server *cluster_node_of(struct redis_cluster *cluster, const char *name)
{
    return cluster_node_at(cluster, cluster_slot(name, strlen(name)));
}

static bool cluster_has_master(void *arg)
{
    struct cluster_look *look = arg;
    return cluster_agrees(look) && look->master != look->old && redis_server_is_up(look->master) &&
           redis_is_master(look->master) && cluster_works(look->master);
}

void cluster_notice_deaths(struct redis_cluster *cluster)
{
    for (int i = 0; i < cluster->nodes; i++)
        if (redis_server_is_up(cluster->node[i]))
            redis_do(cluster->node[i], "CONFIG SET cluster-node-timeout %d", (int)slow_ms(DEAD_MS));
}

struct redis_server *cluster_await_master(struct redis_cluster *cluster, int slot,
                                          const struct redis_server *old)
{
    struct cluster_look look = {.cluster = cluster, .slot = slot, .old = old};
    if (old && !redis_server_is_up(old))
        cluster_notice_deaths(cluster);
    cluster_wait(cluster, cluster_has_master, &look, "a slot does not get a new master");
    return look.master;
}

static bool cluster_shows_all(const struct redis_cluster *cluster, int i)
{
    for (int n = 0; n < cluster->nodes; n++)
        if (redis_server_is_up(cluster->node[n]) &&
            !cluster_view_shows(&cluster->view[i], cluster_view_myself(&cluster->view[n])))
            return false;
    return true;
}

/* A master needs no link. */
static bool cluster_is_linked(const struct redis_cluster *cluster, int i)
{
    const struct cluster_view *view = &cluster->view[i];
    const struct cluster_peer *self = cluster_view_myself(view);
    int master = cluster_find(cluster, self->master_id);
    return self->is_master ||
           (master >= 0 &&
            redis_replicates(cluster->node[i], redis_server_port(cluster->node[master])));
}

static bool cluster_is_whole(void *arg)
{
    struct redis_cluster *cluster = arg;
    bool whole = cluster_read(cluster);
    for (int i = 0; i < cluster->nodes && whole; i++)
        if (redis_server_is_up(cluster->node[i]))
            whole = cluster_shows_all(cluster, i) && cluster_is_linked(cluster, i) &&
                    cluster_works(cluster->node[i]);
    return whole;
}

void cluster_await_whole(struct redis_cluster *cluster)
{
    cluster_wait(cluster, cluster_is_whole, cluster, "the cluster does not become whole");
}

struct redis_server *cluster_replica_of(struct redis_cluster *cluster, struct redis_server *master)
{
    struct cluster_peer self = cluster_peer_of(master);
    for (int i = 0; i < cluster->nodes; i++)
        if (redis_server_is_up(cluster->node[i]) &&
            strcmp(cluster_peer_of(cluster->node[i]).master_id, self.id) == 0)
            return cluster->node[i];
    fatal("no replica of this master is up");
}

int cluster_slot_at(struct redis_server *node)
{
    struct cluster_peer self = cluster_peer_of(node);
    for (int slot = 0; slot < CLUSTER_SLOTS; slot++)
        if (cluster_peer_serves(&self, slot))
            return slot;
    return -1;
}

const char *cluster_name_at(struct redis_server *node, const char *prefix)
{
    int slot = cluster_slot_at(node);
    must(slot >= 0);
    return cluster_name_in_slot(slot, prefix);
}

void cluster_start_failover(struct redis_server *replica)
{
    redis_do(replica, "CLUSTER FAILOVER");
}
