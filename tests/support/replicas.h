/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Replicas of `server`, each of which hears of it through a proxy: so a test decides what a replica
 * has, and when.
 */
#ifndef HL_TEST_REPLICAS_H
#define HL_TEST_REPLICAS_H

#include "kit.h"

enum { REPLICAS_MAX = 3 };

/* A test with a server that has one replica, which has heard of all. */
#define ReplicaLaw(suite, ...) Test(suite, __VA_ARGS__, .init = replica_up, .fini = server_down)
void replica_up(void);

/* One more; of a server on TCP without TLS. Returns when it follows. */
void replicas_add(void);

struct redis_server *replica(int i);

void replica_cut(int i);                   /* it hears nothing more ... */
void replica_join(int i);                  /* ... and now it does, also what it has missed */
void replica_lag(int i, int64_t ms);       /* it hears everything so much later */
bool replica_has(int i, const char *name); /* now */

#endif
