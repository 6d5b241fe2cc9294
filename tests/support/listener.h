/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Listening sockets of the tests' own servers, and free TCP ports for redis-server. */
#ifndef HL_TEST_LISTENER_H
#define HL_TEST_LISTENER_H

#include <stdbool.h>

/* A port of 127.0.0.1 that was free a moment ago, outside the range that the kernel hands out to
 * clients. Another process may bind it first: retry with a new port when binding fails. */
int listener_free_port(void);

/* Non-blocking, close-on-exec listening sockets. */
int listener_open_tcp(int *ret_port);
int listener_open_tcp_at(int port); /* -1 when the port is in use */
int listener_open_unix(const char *path);

/* Keeps the port from being drawn by any test until this descriptor is closed; -1: it is kept
 * already. For a port that is not listened at meanwhile. */
int listener_reserve(int port);
bool listener_is_reserved(int port);

/* Non-blocking connected sockets; -1 with errno when no program listens. */
int listener_connect_tcp(int port);
int listener_connect_unix(const char *path);

#endif
