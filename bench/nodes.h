/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Nodes: several servers. Those of a cluster, among which a client's names are divided, and the
 * masters of a Redlock are started here: without replicas, on free ports of 127.0.0.1, in a
 * temporary folder. They end with this program, whatever ends it.
 */
#ifndef HL_BENCH_NODES_H
#define HL_BENCH_NODES_H

#include "server.h"

#include <stdbool.h>

enum { NODES_MOST = 6 };

struct nodes {
    int count;
    struct server node[NODES_MOST];
    char url[128];           /* of the cluster, or the single server */
    char dir[128];           /* empty: the one server is somebody else's */
    const char *certificate; /* NULL: no TLS; else its folder, with server.pem and server.key */
};

void nodes_start(struct nodes *nodes, int masters); /* of a cluster */
/* The same by TLS, also with each other; at its port each of them speaks without TLS, too. */
void nodes_start_tls(struct nodes *nodes, int masters, const char *certificate);
void nodes_start_alone(struct nodes *nodes, int masters); /* that know nothing of one another */
void nodes_stop(struct nodes *nodes);

/* The single server as the only node. It is not to be stopped. */
struct nodes nodes_single(const struct server *server);

/* Which of them serves this name. */
int nodes_index(const struct nodes *nodes, const char *name);

/* Sums over all nodes. */
double nodes_sum(struct nodes *nodes, double (*ask)(struct server *server));
double nodes_calls(struct nodes *nodes, const char *command);
double nodes_command_us(struct nodes *nodes, const char *command);
double nodes_keys(struct nodes *nodes);
void nodes_flush(struct nodes *nodes);

/* Whether clients that are opened from now on find sharded pub/sub, as since Redis 7. */
void nodes_set_sharded(struct nodes *nodes, bool is_sharded);

#endif
