/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The servers that C and Redisson have in common: one server, a trio or a cluster, by program. One
 * server is each test's own. A trio or a cluster takes seconds to start, so all tests of a program
 * share it, and a test that breaks one has one of its own.
 */
#ifndef HL_INTEROP_SERVERS_H
#define HL_INTEROP_SERVERS_H

#include <stdbool.h>

#include "support/topologies.h"

enum servers { ONE_SERVER, SENTINELS, CLUSTER };

extern const enum servers servers_kind; /* of this program */

/* In the process that starts the tests. */
void servers_begin(void);
void servers_end(void);

/* In a test, which ends with server_down(). `server` is the master of the name "stock", and
 * open_client() opens clients of all these servers. */
void servers_up(void);
void servers_up_own(void);
void servers_up_plain(
    void); /* a cluster of the test's own, whose clients get no sharded messages */
const char *servers_url(void);
void servers_flush(void); /* all masters are empty */

/* The master of a name, or of a channel, at this moment. */
struct redis_server *server_of(const char *name);

/* Names that a law is tried with, until NULL: in a cluster there is one at each node. */
const char *servers_name(int i);

/* Locks' messages are sharded: servers of a cluster have that since Redis 7, unless their user may
 * not ask for it. */
bool servers_shard(void);

#endif
