/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The words in which tests speak of multi-locks over several servers: "a1 b2 c1" is the lock a at
 * the first server, b at the second, and c at the first.
 */
#ifndef HL_TEST_MULTI_SERVERS_KIT_H
#define HL_TEST_MULTI_SERVERS_KIT_H

#include "support/kit.h"

#include <hirelock/multi_lock.h>

enum { SITES = 3 };

/* A server and the client of it that the test looks at; the first one's server is `server`. */
struct site {
    struct redis_server *server;
    hl_client *client;
};

extern struct site site[SITES + 1]; /* from 1 on */

/* Starts the other servers, and opens a client of each; options may be NULL. */
void sites_open(const hl_client_options *options);
void site_open(int number, const hl_client_options *options); /* one of them, with its server */

/* A multi-lock of the sites' clients, or of others: their number is that of the server. */
hl_lock *new_multi_at(const char *places);
hl_lock *new_multi_of_clients(hl_client *const *clients, const char *places);

/* A foreign client holds this lock for a minute, and no longer. */
void stranger_takes_at(const char *place);
void stranger_leaves_at(const char *place);

/* At once or soon: so many of these locks are there, and so many waiters are in their queues. */
void expect_keys_at(const char *places, int count);
void expect_queue_at(const char *place, int count);
void expect_nothing_left_at_all(void);

#endif
