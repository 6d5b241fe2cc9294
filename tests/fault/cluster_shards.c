/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Shards whose master dies and has no replica, in clusters that go on without it and in those that
 * want all slots; and what it brings back. Under load. */

#include "cluster_round.h"

#include "support/listener.h"
#include "support/redis_program.h"

enum { LOST = 1 };

static void shards_up(const char *coverage)
{
    static char config[128];

    snprintf(config, sizeof config,
             "appendonly yes\nappendfsync always\ncluster-require-full-coverage %s", coverage);
    cluster_up_with(
        &(struct cluster_options){.spread = true, .without_replicas = true, .config = config});
}

static void partial_up(void)
{
    shards_up("no");
}

static void whole_up(void)
{
    shards_up("yes");
}

static bool misses_slots(void *node)
{
    return strstr(redis_str(node, "CLUSTER INFO"), "cluster_slots_fail:0") == NULL;
}

static bool is_down(void *node)
{
    return strstr(redis_str(node, "CLUSTER INFO"), "cluster_state:fail") != NULL;
}

static void expect_others(bool (*condition)(void *))
{
    for (int i = 0; i < MASTERS; i++)
        if (i != LOST)
            check(wait_until(condition, cluster_node(cluster, i), 60000));
}

static void expect_all_served(void)
{
    for (int i = 0; i < MASTERS; i++)
        expect_served(i);
}

static void kill_one(void)
{
    redis_server_kill(cluster_node(cluster, LOST));
    cluster_notice_deaths(cluster);
}

static void bring_back(void)
{
    redis_server_restart(cluster_node(cluster, LOST));
    cluster_await_whole(cluster);
    expect_all_served();
}

Test(cluster_shards, without_a_master_cost_their_own_slots_only, .init = partial_up,
     .fini = server_down)
{
    load_begin();
    kill_one();
    expect_others(misses_slots);
    for (int i = 0; i < MASTERS; i++)
        if (i != LOST)
            expect_served(i);
    expect_says(LOST, HL_ECONN, "connection refused");
    bring_back();
    load_end(-1);
}

/* Nobody serves any slot while one has no node; then all go on, and what was held is held. */
Test(cluster_shards, without_a_master_stop_a_cluster_that_wants_all_slots, .init = whole_up,
     .fini = server_down)
{
    load_begin();
    kill_one();
    expect_others(is_down);
    for (int i = 0; i < MASTERS; i++)
        if (i != LOST)
            expect_says(i, HL_ESERVER, "CLUSTERDOWN");
    expect_says(LOST, HL_ECONN, "connection refused");
    bring_back();
    load_end(-1);
}

Test(cluster_shards, that_come_back_without_their_data_lose_their_own_holds_only,
     .init = partial_up, .fini = server_down)
{
    load_begin();
    kill_one();
    expect_others(misses_slots);
    redis_server_wipe(cluster_node(cluster, LOST));
    atomic_store(&spots[LOST].may_overlap, true);
    bring_back();
    load_end_without_data(LOST);
}

/* An operator gives the slots to the node that came up in its place. */
Test(cluster_shards, whose_slots_go_to_another_node_at_the_same_address_are_served_there,
     .init = whole_up, .fini = server_down)
{
    struct redis_server *lost = cluster_node(cluster, LOST);
    struct cluster_peer old = cluster_peer_of(lost);

    if (!redis_program_is_7())
        skip("slots are given one by one");
    load_begin();
    kill_one();
    expect_others(is_down);
    start_empty(lost);
    atomic_store(&spots[LOST].may_overlap, true);
    redis_do(lost, "CLUSTER SET-CONFIG-EPOCH 9");
    redis_do(lost, "CLUSTER ADDSLOTSRANGE %d %d", CLUSTER_SLOTS * LOST / MASTERS,
             CLUSTER_SLOTS * (LOST + 1) / MASTERS - 1);
    for (int i = 0; i < MASTERS; i++) {
        if (i == LOST)
            continue;
        redis_do(cluster_node(cluster, i), "CLUSTER FORGET %s", old.id);
        redis_do(cluster_node(cluster, i), "CLUSTER MEET %s %d", redis_server_host(lost),
                 redis_server_port(lost));
    }
    cluster_await_whole(cluster);
    expect_all_served();
    load_end_without_data(LOST);
}

/* A host dies, and its address is given to another cluster's, which serves the same slots. Its
 * other port keeps the cluster from noticing. */
Test(cluster_shards, whose_address_is_another_clusters_are_not_taken_there, .init = partial_up,
     .fini = server_down)
{
    struct redis_server *lost = cluster_node(cluster, LOST);
    char config[64];

    if (!redis_program_knows("cluster-port 1"))
        skip("a node's other port is its port + 10000");
    load_begin();
    redis_server_kill(lost);
    snprintf(config, sizeof config, "cluster-port %d", listener_free_port());
    struct redis_server *stranger =
        new_stranger(redis_server_host(lost), redis_server_port(lost), config);
    check(wait_until(has_met_stranger, NULL, 60000));
    for (int i = 0; i < MASTERS; i++)
        if (i != LOST)
            expect_served(i);
    expect_says(LOST, HL_ECONN, "is there, and not node");
    expect_untouched(stranger);
    redis_server_kill(stranger);
    bring_back();
    load_end(-1);
}
