/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* C and Redisson at a cluster: what else there is than the laws of each primitive. */
#include "failover.h"
#include "laws.h"

#include "support/slot_move.h"

const enum servers servers_kind = CLUSTER;

EverywhereLaw(names_of_these_laws, are_at_different_nodes)
{
    const char *name;
    int i = 0;
    for (; (name = servers_name(i)) != NULL; i++)
        check(server_of(name) == cluster_node(cluster, i));
    check_int(i, cluster_masters(cluster));
}

/* ---- Slots ---- */

static void move_slots(void)
{
    static const char *const names[] = {"stock", "pool"};
    for (int i = 0; i < 2; i++)
        slot_move(cluster, cluster_slot(names[i], strlen(names[i])), cluster_node(cluster, 1 + i));
}

BreakingLaw(slots_that_move, take_holders_and_waiters_of_both_sides_along)
{
    law_new_master(move_slots, DEAF_BEHIND_IT);
}

/* ---- Messages that are not sharded ---- */

static const struct lock_kind lock = {"lock", new_lock, java_listens};

/* Both sides ask whether messages can be sharded, and are refused. */
PlainLaw(messages_to_all_nodes, wake_both_sides_and_follow_a_slot_that_moves)
{
    law_release_wakes_java(&lock);
    law_unlock_wakes_c(&lock);
    law_new_master(move_slots, HEARS_BEHIND_IT);
}

/* ---- Failovers ---- */

static void kill_master(void)
{
    struct redis_server *old = server;
    redis_server_kill(old);
    cluster_await_master(cluster, cluster_slot("stock", strlen("stock")), old);
}

BreakingLaw(failover, of_a_killed_master_lets_both_sides_go_on)
{
    law_new_master(kill_master, HEARS_BEHIND_IT);
}

static void replace_master(void)
{
    struct redis_server *old = server;
    cluster_start_failover(cluster_replica_of(cluster, old));
    cluster_await_master(cluster, cluster_slot("stock", strlen("stock")), old);
}

BreakingLaw(failover, on_command_lets_both_sides_go_on)
{
    law_new_master(replace_master, HEARS_BEHIND_IT);
}
