/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The scenario of clusters, in parts: pairs, holds, waiters. Each part does the same work at a
 * single server and at a cluster, so that a figure stands beside its like of the same run. */
#ifndef HL_BENCH_CLUSTER_H
#define HL_BENCH_CLUSTER_H

#include "nodes.h"
#include "scenario.h"

void cluster_pair(struct bench *bench, struct nodes *nodes);
void cluster_holds(struct bench *bench, struct nodes *nodes, const char *text);
void cluster_waiters(struct bench *bench, struct nodes *nodes, const char *text);

#endif
