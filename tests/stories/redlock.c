/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Five masters without replicas, and a lock is held by who has it at three of them. One that keeps
 * nothing on disk restarts, and has forgotten. */
#include "naive.h"

enum { SERVERS = 5, MAJORITY = 3, LEASE_MS = 60000 };

static struct redis_server *servers[SERVERS];

static void stop_server(void *item)
{
    redis_server_stop(item);
}

static void up(void)
{
    server_up_single();
    servers[0] = server;
    for (int i = 1; i < SERVERS; i++)
        servers[i] = stop_at_end(redis_server_start(NULL), stop_server);
}

#define FiveServers(suite, name) Test(suite, name, .init = up, .fini = server_down)

/* Asks the servers from `first` to `last`, which are those that the machine reaches. */
static bool take_majority(const char *who, int first, int last)
{
    int votes = 0;
    for (int i = first; i <= last; i++)
        votes += naive_take(naive_at(servers[i], who), "job", LEASE_MS);
    return votes >= MAJORITY;
}

FiveServers(naive, master_that_restarts_empty_votes_twice)
{
    check(take_majority("A", 0, 2)); /* A does not reach the last two */
    redis_server_kill(servers[2]);
    redis_server_wipe(servers[2]);
    redis_server_restart(servers[2]);
    check(take_majority("B", 2, 4)); /* and B not the first two */
    tell_figure("naive: A and B both hold 'job', each by three votes of five");
}
