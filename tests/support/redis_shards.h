/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A server that stands for several (redis_server_stand_for()): what tests ask it by redis_probe.h
 * goes where a cluster's client would send it. So a law asks a cluster as it asks one server.
 *
 * A command with keys goes to the shard that has them; DEL and EXISTS ask for each key by itself. A
 * command on the server itself (DBSIZE, KEYS, ACL, SCRIPT, EVAL without keys, ...) goes to all
 * shards, and their answers become one: numbers are added, texts and arrays follow each other, an
 * error is the answer. A PUBLISH, also that of a script, is sharded where the library's messages
 * are.
 */
#ifndef HL_TEST_REDIS_SHARDS_H
#define HL_TEST_REDIS_SHARDS_H

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>

struct redis_server;

enum { REDIS_SHARDS = 4 };

struct redis_shards {
    const char *url; /* of clients of all of them */
    int count;
    struct redis_server *shard[REDIS_SHARDS];
    bool has_sharded_messages;
};

/* The caller frees the reply; NULL when a shard did not answer. */
redisReply *redis_shards_command(const struct redis_shards *shards, const char *format,
                                 va_list args);

/* The shard that serves the first of these names or channels, "a b c". */
struct redis_server *redis_shards_of(const struct redis_shards *shards, const char *names);

#endif
