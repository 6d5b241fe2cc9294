/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A blocking hiredis client for tests that look at single bytes, replies and ends of connections.
 */
#ifndef HL_TEST_RAW_CLIENT_H
#define HL_TEST_RAW_CLIENT_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

/* To 127.0.0.1; replies are waited for slow_ms(5000). Freed by redisFree. */
redisContext *raw_connect(int port);

/* The reply as text: an error is its message, an array or nil "(array)", no reply "(none)".
 * Overwritten by this thread's next call. */
const char *raw_ask(redisContext *link, const char *command);
void raw_send(redisContext *link, const char *command); /* without waiting for the reply */

/* True when something (a byte, an end) can be read within ms. */
bool raw_is_readable(redisContext *link, int64_t ms);

/* Reads until the end: how many bytes came; *ret_errno is 0 for a FIN, ECONNRESET for a RST. */
int raw_read_to_end(redisContext *link, int *ret_errno);

#endif
