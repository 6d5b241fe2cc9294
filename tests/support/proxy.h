/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A proxy in front of a server, on a thread of its own. It delays, cuts and loses traffic, as
 * networks do.
 * Connections are numbered from 0 in the order in which they came; every control takes such a
 * number, also of a connection still to come, or PROXY_EVERY. A control is in force when its call
 * returns. A held or delayed direction still delivers the bytes that it took, also after the client
 * is gone: so a test makes a late command of a dropped connection.
 */
#ifndef HL_TEST_PROXY_H
#define HL_TEST_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct redis_server;
struct proxy;

enum { PROXY_EVERY = -1 };
enum proxy_direction { PROXY_UP, PROXY_DOWN }; /* to the server, to the client */
enum proxy_cut { PROXY_FIN, PROXY_RST };       /* what the client sees; the server sees FIN */

struct proxy_options {
    int server_port;         /* on 127.0.0.1 */
    const char *server_path; /* instead: unix socket */
    bool tls;                /* the server's; the URL says so */
    const char *listen_path; /* unix socket to listen on; NULL: a free port of 127.0.0.1 */
};

struct proxy *proxy_start(const struct proxy_options *options);
struct proxy *proxy_start_before(struct redis_server *server); /* listens on TCP */
void proxy_stop(struct proxy *proxy);
const char *proxy_url(const struct proxy *proxy);
int proxy_port(const struct proxy *proxy);

/* Takes back every hold, delay, cut, drop and refusal. */
void proxy_pass(struct proxy *proxy);

/* Forwards nothing in that direction, and keeps the bytes for proxy_release(). */
void proxy_hold(struct proxy *proxy, int which, enum proxy_direction direction);
void proxy_release(struct proxy *proxy, int which, enum proxy_direction direction);

/* Bytes that arrive from now on are forwarded ms later. */
void proxy_delay(struct proxy *proxy, int which, enum proxy_direction direction, int64_t ms);

/* Cuts a connection when it has forwarded `bytes` in that direction since it was opened; with 0, at
 * the first byte. In force until proxy_pass(). */
void proxy_cut_after(struct proxy *proxy, int which, enum proxy_direction direction, uint64_t bytes,
                     enum proxy_cut how);

/* Once: cuts the connection that forwards the last of `bytes` more, counted from now on; over all
 * connections, for PROXY_EVERY. */
void proxy_cut_once(struct proxy *proxy, int which, enum proxy_direction direction, uint64_t bytes,
                    enum proxy_cut how);
int proxy_cuts(struct proxy *proxy); /* the number of cuts so far, of both kinds */

/* Loses the next `count` pub/sub messages whose channel contains `part`. */
void proxy_drop_messages(struct proxy *proxy, const char *part, int count);
int proxy_dropped(struct proxy *proxy);

/* As a proxy that has lost its server: answers commands that begin with these words by this error,
 * "ERR upstream failure"; NULL: none any more. The server (no cluster) must let the client run EVAL
 * before it has logged in. */
void proxy_answer(struct proxy *proxy, const char *words, const char *error);
int proxy_answered(struct proxy *proxy);
/* Connections to come go to this server, as when an address has moved. */
void proxy_lead_to(struct proxy *proxy, struct redis_server *server);

void proxy_refuse(struct proxy *proxy, bool refuse); /* refuses connects, like a dead server */
void proxy_kill(struct proxy *proxy, int which);     /* sends RST, and forgets the kept bytes */
void proxy_kill_all(struct proxy *proxy);

int proxy_accepted(struct proxy *proxy); /* connections so far: the next one's number */
int proxy_open(struct proxy *proxy);     /* connections that the client has not closed */
uint64_t proxy_bytes(struct proxy *proxy, int which, enum proxy_direction direction);
uint64_t proxy_kept(struct proxy *proxy, int which, enum proxy_direction direction);

/* The newest open connection on which the client sent `text` among its first 4 KiB; -1: none. */
int proxy_find(struct proxy *proxy, const char *text);

#endif
