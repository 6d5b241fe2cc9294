/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A fake Redis on a thread of its own; the test writes its answers. For other commands (AUTH,
 * SELECT, CLIENT, ROLE, PING, INFO, SCRIPT LOAD, SUBSCRIBE and UNSUBSCRIBE) it answers as a
 * healthy, empty Redis does. To EVALSHA it answers as that script does when it succeeds and no
 * other client is there; to an unknown digest it answers {1}.
 */
#ifndef HL_TEST_FAKE_SERVER_H
#define HL_TEST_FAKE_SERVER_H

#include <stdbool.h>

#include "fake_reply.h"
#include "resp.h"

struct fake_server;

/* Runs on the server's thread. True: *reply is the answer (an empty one is silence); false: the
 * usual answer. */
typedef bool fake_handler(const struct resp_command *command, struct fake_reply *reply, void *arg);

/* A play: step by step, a command that begins with the words of the step at hand gets its answer;
 * any other command gets the handler's or the usual one, and the step stays at hand. */
struct fake_step {
    const char *expect; /* "EVALSHA", "CLIENT KILL"; "" is the arrival of a connection */
    const char *answer; /* NULL: the handler's or the usual one, then `then` */
    size_t length;      /* of the answer; 0: up to its NUL */
    enum fake_then then;
    int64_t delay_ms;
};

/* handler may be NULL. Listens on a free port of 127.0.0.1. */
struct fake_server *fake_server_start(fake_handler *handler, void *arg);
void fake_server_stop(struct fake_server *server);
const char *fake_server_url(const struct fake_server *server);
int fake_server_port(const struct fake_server *server);

/* Borrowed until the play is over. A new play replaces the old one. */
void fake_server_play(struct fake_server *server, const struct fake_step *steps, size_t count);
bool fake_server_wait_play(struct fake_server *server, int64_t ms); /* all steps were taken */

/* Unasked bytes to every connection; a message to the subscribed connections. */
void fake_server_send(struct fake_server *server, const void *bytes, size_t length);
void fake_server_publish(struct fake_server *server, const char *channel, const char *text);
void fake_server_close_all(struct fake_server *server, enum fake_then how);

/* The number of commands received that begin with these words. */
int fake_server_count(struct fake_server *server, const char *words);
bool fake_server_wait_count(struct fake_server *server, const char *words, int n, int64_t ms);
int fake_server_accepted(struct fake_server *server);

#endif
