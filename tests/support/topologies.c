/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What the laws at more servers than one share. */
#include "topologies.h"

struct trio *trio;
struct redis_cluster *cluster;

static void trio_down(void *arg)
{
    server = NULL;
    trio_stop(arg);
}

void trio_up_with(const struct trio_options *options)
{
    trio = stop_at_end(trio_start(options), trio_down);
    server = trio_node(trio, 0);
}

void trio_up_joined(const char *word)
{
    trio = stop_at_end(trio_join(word), trio_down);
    server = trio_master(trio);
}

void trio_up(void)
{
    trio_up_with(NULL);
}

static void cluster_down(void *arg)
{
    server = NULL;
    cluster_stop(arg);
}

void cluster_up_with(const struct cluster_options *options)
{
    cluster = stop_at_end(cluster_start(options), cluster_down);
    server = cluster_node(cluster, 0);
}

void cluster_up_joined(const char *word)
{
    cluster = stop_at_end(cluster_join(word), cluster_down);
    server = cluster_node(cluster, 0);
}

void cluster_up(void)
{
    cluster_up_with(NULL);
}

void expect_held_or_lost(hl_client *client, hl_lock *lock, struct events *events)
{
    if (hl_lock_is_held(lock, NULL)) {
        expect_held_by(client, lock, 1);
        expect_ok(hl_lock_release(lock, ERR));
        check_int(events_told(events, HL_EVENT_LOST), 0);
    } else {
        expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
        check(events_wait(events, HL_EVENT_LOST, 1, 5000));
    }
}

bool is_renewed_or_lost(void *client)
{
    hl_stats stats = stats_of(client);

    return stats.renewals > 0 || stats.losses > 0;
}
