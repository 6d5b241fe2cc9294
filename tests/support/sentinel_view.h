/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * What one sentinel says of the master SENTINEL_MASTER, and what a data node says of itself. A
 * server that does not answer says nothing: 0 and false.
 */
#ifndef HL_TEST_SENTINEL_VIEW_H
#define HL_TEST_SENTINEL_VIEW_H

#include "redis_server.h"

#define SENTINEL_MASTER "mymaster"

int sentinel_master_port(struct redis_server *sentinel); /* of the master that it names */

/* How many it could use at once in a failover: replicas that are linked to their master, and other
 * sentinels that answer it. */
int sentinel_replicas(struct redis_server *sentinel);
int sentinel_others(struct redis_server *sentinel);

bool sentinel_finds_master_well(struct redis_server *sentinel); /* neither down nor in a failover */
bool sentinel_has_quorum(struct redis_server *sentinel);        /* by SENTINEL CKQUORUM */

bool redis_is_master(struct redis_server *server);
bool redis_replicates(struct redis_server *server, int master_port); /* and the link is up */

#endif
