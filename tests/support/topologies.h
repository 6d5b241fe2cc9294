/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Laws at more servers than one. A test that begins with one of these functions and ends with
 * server_down(), as its Law does, need not stop them. `server` is the first master.
 */
#ifndef HL_TEST_TOPOLOGIES_H
#define HL_TEST_TOPOLOGIES_H

#include "events.h"
#include "kit.h"
#include "redis_cluster.h"
#include "sentinel_trio.h"

extern struct trio *trio;

#define TrioLaw(suite, ...) Test(suite, __VA_ARGS__, .init = trio_up, .fini = server_down)
void trio_up(void);
void trio_up_with(const struct trio_options *options);
void trio_up_joined(const char *word); /* another process's: trio_join() */

extern struct redis_cluster *cluster;

#define ClusterLaw(suite, ...) Test(suite, __VA_ARGS__, .init = cluster_up, .fini = server_down)
void cluster_up(void);
void cluster_up_with(const struct cluster_options *options);
void cluster_up_joined(const char *word);

/* After a failover. Held, and so does the server say; or lost, and the event says so. Never a third
 * state. The lock is released then. */
void expect_held_or_lost(hl_client *client, hl_lock *lock, struct events *events);
bool is_renewed_or_lost(void *client); /* the new master was asked about the client's one hold */

#endif
