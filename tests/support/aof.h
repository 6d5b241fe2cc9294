/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What a server did, in the order in which it did it: the commands of its append-only file. */
#ifndef HL_TEST_AOF_H
#define HL_TEST_AOF_H

#include <stddef.h>
#include <stdint.h>

#include "redis_server.h"
#include "resp.h"

/* at_s: the server's clock when it was written, in seconds; 0 before Redis 7. */
typedef void aof_visitor(const struct resp_command *command, int64_t at_s, void *arg);

/* Reads it from its beginning; the server may be running, and may be dead. Returns the number of
 * commands. A command that is not complete ends the reading. */
size_t aof_read(const struct redis_server *server, aof_visitor *visitor, void *arg);

/* The same of the server whose directory this is. Needs nothing but this and resp.h. */
size_t aof_read_dir(const char *dir, aof_visitor *visitor, void *arg);

/* How often a command with these first words (PEXPIREAT name) stands in it. */
size_t aof_count(const struct redis_server *server, const char *words);

#endif
