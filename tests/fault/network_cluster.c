/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Nodes of a real cluster that are announced by name, in a network of the test's own, where the
 * hosts file says which address a name has. Under load. */

#include "cluster_round.h"
#include "network_kit.h"

#include "support/redis_program.h"

enum { UNNAMED = 2 }; /* the one that has no name: maps say "?" and its number */

static const char *name_of(int node)
{
    static char names[4][32];

    snprintf(names[node], sizeof names[node], "node-%d.test", node);
    return names[node];
}

/* Each node's name is its address, but that of `moved` is this one. */
static void put_names(int moved, const char *address)
{
    char text[512] = "127.0.0.1 localhost\n";

    for (int i = 0; i < MASTERS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %s\n",
                 i == moved ? address : redis_server_host(cluster_node(cluster, i)), name_of(i));
    umount2("/etc/hosts", MNT_DETACH); /* the file of before; at first there is none */
    network_put_file("/etc/hosts", text);
}

static void named_up(void)
{
    if (!redis_program_knows("cluster-preferred-endpoint-type hostname"))
        skip("nodes have no names");
    network_leave();
    cluster_up_with(&(struct cluster_options){
        .spread = true,
        .without_replicas = true,
        .config = "cluster-require-full-coverage no\ncluster-preferred-endpoint-type hostname"});
    put_names(-1, NULL);
}

static bool tells_names(void *node)
{
    const char *said = redis_str(node, "CLUSTER NODES");

    return strstr(said, name_of(0)) && strstr(said, name_of(1));
}

/* The names go round by gossip. */
static void name_nodes(void)
{
    for (int i = 0; i < MASTERS; i++)
        if (i != UNNAMED)
            redis_do(cluster_node(cluster, i), "CONFIG SET cluster-announce-hostname %s",
                     name_of(i));
    for (int i = 0; i < MASTERS; i++)
        check(wait_until(tells_names, cluster_node(cluster, i), 60000));
}

static const char *url_by_names(void)
{
    static char url[96];

    snprintf(url, sizeof url, "redis-cluster://%s:%d,%s:%d", name_of(0),
             redis_server_port(cluster_node(cluster, 0)), name_of(1),
             redis_server_port(cluster_node(cluster, 1)));
    return url;
}

static void count_where(const hl_node *node, void *ret_counts)
{
    int *counts = ret_counts;

    for (int i = 0; i < MASTERS; i++) {
        const char *is = i == UNNAMED ? redis_server_host(cluster_node(cluster, i)) : name_of(i);
        counts[i] += node->slots > 0 && strncmp(node->address, is, strlen(is)) == 0 &&
                     node->address[strlen(is)] == ':';
    }
}

static bool each_is_at_its_name(void *arg)
{
    int counts[MASTERS] = {0};

    (void)arg;
    hl_client_nodes(holder, count_where, counts);
    return counts[0] == 1 && counts[1] == 1 && counts[UNNAMED] == 1;
}

static void expect_all_served(void)
{
    for (int i = 0; i < MASTERS; i++)
        expect_served(i);
}

Test(network_cluster, of_nodes_with_names_and_one_without_is_reached_by_them, .init = named_up,
     .fini = server_down)
{
    name_nodes();
    load_begin_by(url_by_names());
    check(each_is_at_its_name(NULL));
    cut_all();
    expect_all_served();
    slot_move(cluster, slot_of(spots[0].name), cluster_node(cluster, UNNAMED));
    expect_served(0); /* MOVED says "?" */
    slot_move(cluster, slot_of(spots[0].name), cluster_node(cluster, 0));
    expect_served(0); /* MOVED says the name */
    load_end(-1);
}

/* A cluster that works is changed: first all are announced by number, then by name. */
Test(network_cluster, of_nodes_that_get_names_goes_on_by_them, .init = named_up,
     .fini = server_down)
{
    struct deadline deadline = deadline_of_wait(60000);

    load_begin();
    name_nodes();
    while (!each_is_at_its_name(NULL)) { /* a connection may be back before the map is read */
        check(!deadline_is_over(deadline));
        cut_all();
        expect_all_served();
    }
    check_int(stats_of(holder).master_changes, 0);
    load_end(-1);
}

/* An old entry of a name server, or a name that means something else here: at the address is
 * another cluster's node, which serves the same slots. */
Test(network_cluster, of_nodes_whose_name_leads_to_another_cluster_takes_nothing_there,
     .init = named_up, .fini = server_down)
{
    static const char elsewhere[] = "127.0.9.9";

    name_nodes();
    load_begin_by(url_by_names());
    struct redis_server *stranger =
        new_stranger(elsewhere, redis_server_port(cluster_node(cluster, 0)), NULL);
    put_names(1, elsewhere);
    redis_kill_clients(cluster_node(cluster, 1), REDIS_NORMAL);
    check(wait_until(has_met_stranger, NULL, 60000));
    expect_served(0);
    expect_served(UNNAMED);
    expect_says(1, HL_ECONN, "is there, and not node");
    expect_untouched(stranger);
    put_names(-1, NULL);
    expect_all_served();
    load_end(-1);
}
