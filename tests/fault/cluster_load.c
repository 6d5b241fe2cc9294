/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A failover of a node of a cluster, while threads acquire and release without a pause. */

#include "failover_holds.h"

enum { SLOT = 0 };

static const char *name_in_slot(const char *prefix)
{
    return cluster_name_in_slot(SLOT, prefix);
}

static void expect_failover(void (*fail)(struct redis_server *master))
{
    const struct failure failure = {.fail = fail};
    struct redis_server *old = cluster_node_at(cluster, SLOT);

    load_begin(cluster_url(cluster), name_in_slot);
    holds_open(cluster_url(cluster));
    holds_begin(old, &failure, name_in_slot);
    server = cluster_await_master(cluster, SLOT, old);
    holds_expect_held_or_lost(&failure);
    holds_expect_waiters_served();
    load_expect_served();
    load_end();
    check_int(stats_of(holder).master_changes, 1);
}

ClusterLaw(cluster_load, goes_on_when_a_node_is_killed)
{
    expect_failover(redis_server_kill);
}

static void fail_by_command(struct redis_server *master)
{
    cluster_start_failover(cluster_replica_of(cluster, master));
}

ClusterLaw(cluster_load, goes_on_when_a_replica_is_told_to_take_over)
{
    expect_failover(fail_by_command);
}
