/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Clusters whose nodes have an address each and one port, as on hosts of their own: so the host
 * that was asked is the wrong one for all others. Under load: at each master a lock is held and
 * waited for, and another goes round among threads of two clients. */

#include "cluster_round.h"

#include "support/cluster_reshape.h"
#include "support/redis_program.h"

static void hosts_up(void)
{
    cluster_up_with(&(struct cluster_options){.spread = true, .without_replicas = true});
}

static void partial_up(void)
{
    cluster_up_with(&(struct cluster_options){
        .spread = true, .without_replicas = true, .config = "cluster-require-full-coverage no"});
}

static void check_where(const hl_node *node, void *ret_slots)
{
    check_msg(node->slots > 5000 && node->slots < 6000, "%s has %u slots", node->address,
              (unsigned)node->slots);
    *(int *)ret_slots += 1;
}

static void expect_each_at_its_host(void)
{
    int nodes = 0;

    check_int(hl_client_nodes(holder, check_where, &nodes), MASTERS);
    check_int(stats_of(holder).master_changes, 0);
}

static bool says_no_name(struct redis_server *node)
{
    redisReply *reply = redis_command(node, "CLUSTER SLOTS");
    bool says = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                strcmp(reply->element[0]->element[2]->element[0]->str, "?") == 0;

    freeReplyObject(reply);
    return says;
}

/* First they shall be announced by name, and have none; then each gets one (its number, as there is
 * no name server); one after the other, as one changes a cluster that works. */
Test(cluster_hosts, that_get_names_are_the_nodes_that_they_were, .init = hosts_up,
     .fini = server_down)
{
    if (!redis_program_knows("cluster-preferred-endpoint-type hostname"))
        skip("nodes have no names");
    load_begin();
    for (int i = 0; i < MASTERS; i++) {
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-preferred-endpoint-type hostname");
        check(says_no_name(cluster_node(cluster, i)));
        cut_all();
        for (int n = 0; n < MASTERS; n++)
            expect_served(n);
    }
    expect_each_at_its_host();
    for (int i = 0; i < MASTERS; i++) {
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-announce-hostname %s",
                 redis_server_host(cluster_node(cluster, i)));
        cut_all();
        for (int n = 0; n < MASTERS; n++)
            expect_served(n);
    }
    expect_each_at_its_host();
    load_end(-1);
}

/* MOVED then says "?:port", and the map has the number. */
Test(cluster_hosts, without_names_are_found_when_slots_move, .init = hosts_up, .fini = server_down)
{
    if (!redis_program_knows("cluster-preferred-endpoint-type hostname"))
        skip("nodes have no names");
    for (int i = 0; i < MASTERS; i++)
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-preferred-endpoint-type hostname");
    load_begin();
    for (int i = 0; i < MASTERS; i++) {
        int slot = slot_of(spots[i].name);
        slot_move(cluster, slot, cluster_node(cluster, (i + 1) % MASTERS));
        expect_served(i);
        slot_move(cluster, slot, cluster_node(cluster, i));
        expect_served(i);
    }
    load_end(-1);
}

static bool has_no_address(void *node)
{
    return strstr(redis_str(node, "CLUSTER NODES"), "noaddr") != NULL;
}

/* A volume was lost: another node is at its address, and the old one has none until an operator
 * says CLUSTER FORGET. */
Test(cluster_hosts, of_which_one_is_started_empty_lose_its_slots_only, .init = partial_up,
     .fini = server_down)
{
    struct redis_server *lost = cluster_node(cluster, 1);
    hl_error err = HL_ERROR_INIT;

    load_begin();
    redis_server_kill(lost);
    start_empty(lost);
    for (int i = 0; i < MASTERS; i += 2) {
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-node-timeout %d",
                 (int)slow_ms(2000));
        check(wait_until(has_no_address, cluster_node(cluster, i), 60000));
    }
    cut_all();
    for (int i = 0; i < MASTERS; i += 2)
        expect_served(i);
    hl_client *late = open_client_at(cluster_url_of(cluster, 0, 1, NULL), NULL);
    expect_ok(hl_lock_try_acquire(new_lock(late, name_at(2, "late")), ERR));
    expect_outcome(hl_lock_try_acquire(new_lock(late, spots[1].name), &err), HL_ECONN);
    check_has(err.text, "is no address");
    load_end(1);
    close_client(other); /* whose waiter at the lost node waits on */
}

static void five_up(void)
{
    cluster_up_with(&(struct cluster_options){.spread = true,
                                              .masters = 5,
                                              .without_replicas = true,
                                              .config = "cluster-require-full-coverage no"});
}

static bool is_promoted(void *replica)
{
    return redis_is_master(replica) &&
           strstr(redis_str(replica, "CLUSTER INFO"), "cluster_state:ok");
}

/* The map has an entry without an address when a replica takes the place of a master. */
Test(cluster_hosts, of_which_one_is_started_empty_follow_a_failover, .init = five_up,
     .fini = server_down)
{
    struct redis_server *old = cluster_node(cluster, 0), *lost = cluster_node(cluster, 1);
    struct redis_server *replica = cluster_add_node(cluster, old);

    load_begin();
    check(redis_wait_replicas(old, 1, 30000));
    redis_server_kill(lost);
    start_empty(lost);
    check(wait_until(has_no_address, cluster_node(cluster, 2), 60000));
    check(wait_until(has_no_address, replica, 60000));
    atomic_store(&spots[0].may_overlap, true);
    redis_server_kill(old);
    cluster_notice_deaths(cluster);
    check(wait_until(is_promoted, replica, 60000));
    for (int i = 0; i < MASTERS; i += 2)
        expect_served(i);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    load_end(1);
    close_client(other); /* whose waiter at the lost node waits on */
}
