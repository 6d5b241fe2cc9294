/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A real cluster: masters that serve a third of the slots each, and a replica for each of them, on
 * free ports of 127.0.0.1, or as if each had its own host. A master that dies is replaced within a
 * few seconds.
 *
 * Each is a struct redis_server, which tests kill, freeze, restart and ask as such. A node that is
 * asked about a name of another node answers MOVED: cluster_node_of(cluster, name) is the right
 * one. Functions that take the cluster are for one thread at a time.
 */
#ifndef HL_TEST_REDIS_CLUSTER_H
#define HL_TEST_REDIS_CLUSTER_H

#include "cluster_view.h"

struct redis_cluster;

/* All zero: three masters and three replicas, no password. */
struct cluster_options {
    int masters;
    bool without_replicas;
    const char *password; /* of the default user of all nodes */
    const char *config;   /* more lines of redis.conf of all nodes */
    /* Where all listen beside 127.0.0.1, and announce themselves; NULL: there only. */
    const char *host;
    /* Each node has an address of its own, 127.x.y.1 and so on, and all have one port: as hosts do.
     * Not for cluster_word(), nor with .tls or .host. */
    bool spread;
    bool tls; /* all speak TLS only, also with each other, and redis_server_authority() signs for
               * all; not for cluster_word() */
};

/* Returns when all is whole: cluster_await_whole(). options may be NULL. */
struct redis_cluster *cluster_start(const struct cluster_options *options);
void cluster_stop(struct redis_cluster *cluster); /* NULL is accepted */

/* The same in a process that this one starts: redis_server_join(). */
enum { CLUSTER_WORD = CLUSTER_NODES * 128 };
void cluster_word(const struct redis_cluster *cluster, char ret_word[CLUSTER_WORD]);
struct redis_cluster *cluster_join(const char *word);

/* redis-cluster://127.0.0.1:PORT,..., with .tls rediss-cluster, with the nodes from `first` on,
 * round all of them; login: "password" or "user:password", or NULL. Borrowed: this thread's 8th
 * next call overwrites it. */
const char *cluster_url(const struct redis_cluster *cluster);
const char *cluster_url_of(const struct redis_cluster *cluster, int first, int count,
                           const char *login);

/* At first node i is a master if i < cluster_masters(), and the replica of node
 * i - cluster_masters() if not. */
int cluster_nodes(const struct redis_cluster *cluster);
int cluster_masters(const struct redis_cluster *cluster); /* those that it was started with */
struct redis_server *cluster_node(const struct redis_cluster *cluster, int i);

/* The masters of a slot and of a name's slot: what all nodes that are up say, soon. */
struct redis_server *cluster_node_at(struct redis_cluster *cluster, int slot);
struct redis_server *cluster_node_of(struct redis_cluster *cluster, const char *name);
/* A replica of this master that is up. */
struct redis_server *cluster_replica_of(struct redis_cluster *cluster, struct redis_server *master);

/* A slot that this node serves, or -1; and "prefix{tag}" in it (cluster_name_in_slot()). */
int cluster_slot_at(struct redis_server *node);
const char *cluster_name_at(struct redis_server *node, const char *prefix);

/* Both end the test if it has not happened after a minute; they look at nodes that are up.
 * await_master: all say that one node, another than `old`, serves the slot, and that one says so,
 * too, and works; old may be NULL. await_whole: all work, replicas are linked to their masters, and
 * each node is seen by all as it sees itself. */
struct redis_server *cluster_await_master(struct redis_cluster *cluster, int slot,
                                          const struct redis_server *old);
void cluster_await_whole(struct redis_cluster *cluster);

/* From now on the nodes that are up take one that is silent for two seconds for dead. Before, a
 * busy machine makes none dead. Await_master does this itself if `old` is killed or frozen. */
void cluster_notice_deaths(struct redis_cluster *cluster);

/* CLUSTER FAILOVER: the replica takes over its living master's slots soon. */
void cluster_start_failover(struct redis_server *replica);

/* A node like the others, which has joined nothing yet; and its end (cluster_reshape.h). Those that
 * stand behind it in cluster_node() move up. */
struct redis_server *cluster_new_node(struct redis_cluster *cluster);
void cluster_free_node(struct redis_cluster *cluster, struct redis_server *node);

#endif
