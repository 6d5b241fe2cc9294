/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A ZooKeeper server of the test's own (Debian's), at a free port of 127.0.0.1 and in a temporary
 * directory. It dies with the thread that started it. A server that does not start ends the test.
 */
#ifndef HL_INTEROP_ZOOKEEPER_SERVER_H
#define HL_INTEROP_ZOOKEEPER_SERVER_H

#include <stdint.h>

struct zookeeper_server;

const char *zookeeper_server_lacks(void); /* as java_lacks() */

struct zookeeper_server *zookeeper_server_start(void);
void zookeeper_server_stop(struct zookeeper_server *server);
int zookeeper_server_port(const struct zookeeper_server *server);

/* How many nodes clients wait for to change. */
int zookeeper_server_watches(struct zookeeper_server *server);

/* Since its start: requests of clients, and clients that were told that the node they watch is
 * gone. */
struct zookeeper_counts {
    int64_t requests, woken;
};
struct zookeeper_counts zookeeper_server_counts(struct zookeeper_server *server);

#endif
