/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A blocking hiredis client for tests that look at single bytes, replies and ends of connections.
 */
#ifndef HL_TEST_RAW_CLIENT_H
#define HL_TEST_RAW_CLIENT_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

/* Connects to 127.0.0.1; a reply may take slow_ms(5000). Free it by redisFree(). */
redisContext *raw_connect(int port);

/* The reply as text: of an error its message, "(array)" for an array or nil, "(none)" without a
 * reply. This thread's next call overwrites it. */
const char *raw_ask(redisContext *link, const char *command);
void raw_send(redisContext *link, const char *command); /* without waiting for the reply */

/* True when a byte or the connection's end can be read within ms. */
bool raw_is_readable(redisContext *link, int64_t ms);

/* Reads until the end and returns the number of bytes; *ret_errno: 0 for a FIN, ECONNRESET for a
 * RST. */
int raw_read_to_end(redisContext *link, int *ret_errno);

#endif
