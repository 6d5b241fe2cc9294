/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The server under test, on TCP loopback, and questions to it. */
#ifndef HL_BENCH_SERVER_H
#define HL_BENCH_SERVER_H

#include <hiredis/hiredis.h>
#include <stdint.h>
#include <sys/types.h>

struct server {
    redisContext *link; /* for questions only */
    int port;
    pid_t pid;
    char url[64];
    char version[32];
};

void server_open(struct server *server, int port);
void server_close(struct server *server);

redisContext *server_connect(const struct server *server); /* a further connection */

/* An integer reply, or the end of the program. */
int64_t server_int(struct server *server, const char *format, ...);

int64_t server_calls(struct server *server, const char *command); /* since it was started */
double server_command_us(struct server *server, const char *command);
double server_cpu_us(struct server *server);
double server_bytes(struct server *server);        /* its memory in use */
double server_bus_messages(struct server *server); /* of pub/sub, sent to other nodes */

/* The server's commands since it was started: all commands, with those inside of scripts and those
 * for messages, and the commands that clients sent. INFO does not count. */
struct server_load {
    double cpu_us, commands, client_commands;
};

struct server_load server_load(struct server *server);
void server_load_add(struct server_load *sum, const struct server_load *before,
                     const struct server_load *after);

double server_clients(struct server *server); /* connections */

/* How many connections listen to the channel; and how many channels begin with `prefix`. */
int64_t server_subscribers(struct server *server, const char *channel);
int64_t server_channels(struct server *server, const char *prefix);
double server_all_channels(struct server *server); /* sharded ones, too */

void server_flush(struct server *server); /* deletes all keys */

#endif
