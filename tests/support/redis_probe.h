/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Commands that tests send to a running server, and waits built on them. Formats are hiredis's:
 * %s, %d, %lld, and %b with pointer and size_t.
 */
#ifndef HL_TEST_REDIS_PROBE_H
#define HL_TEST_REDIS_PROBE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "redis_server.h"

/* The raw reply, which the caller frees by freeReplyObject(); NULL when the server does not answer.
 */
redisReply *redis_command(struct redis_server *server, const char *format, ...);

/* An integer reply, or a string that is an integer. -1 for nil; an error or no answer ends the
 * test.
 */
int64_t redis_int(struct redis_server *server, const char *format, ...);

/* A string, status or error reply, nil as "(nil)", an array as its elements with spaces between.
 * Borrowed: this thread's 8th next call overwrites it. Cut after 4 KiB. */
const char *redis_str(struct redis_server *server, const char *format, ...);

/* A command for set-up: an error reply ends the test. */
void redis_do(struct redis_server *server, const char *format, ...);

/* Sends without waiting for the answer, on a connection of its own that stays open until the
 * descriptor returned is closed: DEBUG SLEEP, endless scripts. */
int redis_post(struct redis_server *server, const char *format, ...);

int64_t redis_calls(struct redis_server *server, const char *command); /* by INFO commandstats */

/* The calls of one subcommand, which not every server counts by itself: by the slow log of a server
 * whose .config has this. */
#define REDIS_LOGS_CALLS "slowlog-log-slower-than 0\nslowlog-max-len 20000\n"
int64_t redis_subcommand_calls(struct redis_server *server, const char *command,
                               const char *subcommand);

int64_t redis_requests(struct redis_server *server); /* of our clients, for and about locks */
int64_t redis_evalsha_calls(struct redis_server *server);
int redis_subscribers(struct redis_server *server, const char *channel); /* sharded ones, too */

/* Connections of clients whose name begins with `name`. */
enum redis_kind { REDIS_NORMAL, REDIS_PUBSUB };
int redis_clients(struct redis_server *server, enum redis_kind kind, const char *name);

/* Takes a command from a user: "time", "client|kill". Of a server that takes commands only as a
 * whole the user gets all its other subcommands back. */
void redis_deny(struct redis_server *server, const char *user, const char *command);

/* Closes all connections of that kind but the tests' own; returns their number. */
int redis_kill_clients(struct redis_server *server, enum redis_kind kind);

/* Closes the connections of one client, by its name; returns their number. */
int redis_kill_named(struct redis_server *server, enum redis_kind kind, const char *name);

/* The same, of each kind; none of those that come back meanwhile. */
int redis_kill_links(struct redis_server *server, const char *name);

/* Each returns false when its condition did not become true within slow_ms(ms). */
bool redis_wait_subscribers(struct redis_server *server, const char *channel, int n, int64_t ms);
bool redis_wait_clients(struct redis_server *server, enum redis_kind kind, int n, int64_t ms);
/* n replicas have all that the server has now. (WAIT asks for what its own connection wrote.) */
bool redis_wait_replicas(struct redis_server *server, int n, int64_t ms);
bool redis_wait_int(struct redis_server *server, int64_t value, int64_t ms, const char *format,
                    ...);

#endif
