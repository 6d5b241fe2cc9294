/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A trio or a cluster that all tests of a program share, for it takes seconds to start. So the same
 * laws are run at servers of other kinds: with HL_TEST_SERVER=sentinel, cluster or plain_cluster in
 * the environment, `server` of a Law (kit.h) stands for the trio's master, or for the cluster's
 * masters, and is emptied before each law. Tests of one program use them one after another.
 *
 * A law that is about one server is left out then (SingleLaw, TcpLaw).
 *
 * With HL_TEST_SERVER=tls each law has a server of its own, and what they share is the authority.
 * It is there before the first process of a test, and OpenSSL takes it for the system's: so clients
 * of other processes, and clients without options, accept these servers, too.
 */
#ifndef HL_TEST_SHARED_SERVERS_H
#define HL_TEST_SHARED_SERVERS_H

#include <stdbool.h>

enum shared_servers {
    SHARED_NONE, /* each law has a server of its own */
    SHARED_TRIO,
    SHARED_CLUSTER,
    SHARED_PLAIN_CLUSTER /* its clients may not ask for sharded messages, and get plain ones */
};

/* What this run is to be tried with, by HL_TEST_SERVER. */
enum shared_servers shared_servers_wanted(void);

/* In the process that starts the tests: BeforeAll() and AfterAll(). */
void shared_servers_start(enum shared_servers kind);
void shared_servers_stop(void);

/* In a test of that program: waits for the test before it, and empties all servers. `trio` or
 * `cluster` is set, and `server` is the first master and stands for all of them. The end of the
 * test lets go of them. */
void shared_servers_join(void);

#endif
