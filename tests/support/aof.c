/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The file of a server that this process has started. */
#include "aof.h"

size_t aof_read(const struct redis_server *server, aof_visitor *visitor, void *arg)
{
    return aof_read_dir(redis_server_dir(server), visitor, arg);
}

struct aof_tally {
    const char *words;
    size_t count;
};

static void aof_count_one(const struct resp_command *command, int64_t at_s, void *arg)
{
    struct aof_tally *tally = arg;
    (void)at_s;
    tally->count += resp_command_begins(command, tally->words);
}

size_t aof_count(const struct redis_server *server, const char *words)
{
    struct aof_tally tally = {.words = words};
    aof_read(server, aof_count_one, &tally);
    return tally.count;
}
