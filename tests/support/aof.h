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

/* Reads the file from its beginning; the server may be running or dead. Returns the number of
 * commands. An incomplete command ends the reading. */
size_t aof_read(const struct redis_server *server, aof_visitor *visitor, void *arg);

/* The same, for the server that has this directory. Needs only this header and resp.h. */
size_t aof_read_dir(const char *dir, aof_visitor *visitor, void *arg);

/* The number of commands in the file that begin with these words ("PEXPIREAT name"). */
size_t aof_count(const struct redis_server *server, const char *words);

#endif
