/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A cluster: locks at each node, a slot that moves, seeds that do not answer. */

#include "cluster_kit.h"

#include "support/actor.h"
#include "support/redis_program.h"

#include <stdio.h>

ClusterLaw(cluster, has_locks_at_each_node)
{
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));

    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, name_at(i, "stock"));
}

/* The slot of data is its own, whatever lock is held meanwhile. */
ClusterLaw(cluster, has_fenced_data_at_each_node)
{
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(NULL));

    for (int i = 0; i < cluster_masters(cluster); i++) {
        const char *key = name_at(i, "data");
        hl_fenced_write write = HL_FENCED_WRITE_INIT;
        uint64_t last = 0;
        write.key = key;
        write.value = "paid";
        write.value_length = strlen("paid");
        write.token = 33;
        expect_ok(hl_fence_set(client, &write, ERR));
        check_str(redis_str(cluster_node(cluster, i), "GET %s", key), "paid");
        expect_ok(hl_fence_token(client, key, 0, &last, ERR));
        check_int(last, 33);
    }
    check_int(stats_of(client).redirects, 0);
}

static void patient_cluster_up(void)
{
    cluster_up_with(&(struct cluster_options){.without_replicas = true});
}

struct opening {
    hl_client *client;
    uint64_t nodes; /* to which it is connected when the open returns */
};

static void open_job(void *arg)
{
    struct opening *opening = arg;
    opening->client = open_client_at(cluster_url_of(cluster, 0, 1, NULL), NULL);
    opening->nodes = stats_of(opening->client).nodes_now;
}

/* Else a call that does not wait would meet a node that is only about to be connected. */
Test(cluster_open, waits_for_all_nodes_that_can_be_reached, .init = patient_cluster_up,
     .fini = server_down)
{
    enum { LINK = 2 }; /* connections */
    struct opening opening = {0};
    struct actor *actor = actor_start();

    redis_server_freeze(cluster_node(cluster, 1));
    actor_begin(actor, open_job, &opening);
    check(redis_wait_clients(cluster_node(cluster, 2), REDIS_NORMAL, LINK, 10000));
    redis_server_thaw(cluster_node(cluster, 1));
    actor_await(actor);
    check_int(opening.nodes, 3);
    redis_server_kill(cluster_node(cluster, 1));
    open_job(&opening);
    check_int(opening.nodes, 2);
}

ClusterLaw(cluster, is_found_by_the_one_address_that_answers)
{
    char url[256];
    const char *only = cluster_url_of(cluster, cluster_masters(cluster), 1, NULL); /* a replica */

    snprintf(url, sizeof url, "redis-cluster://127.0.0.1:1,127.0.0.1:2,%s",
             only + strlen("redis-cluster://"));
    hl_client *client = open_client_at(url, cluster_client(NULL));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, name_at(i, "stock"));
}

ClusterLaw(cluster, that_is_none_is_named_as_such)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_open("redis-cluster://127.0.0.1:1", NULL, &client, &err), HL_ECONN);
    check_has(err.text, "connection refused");
    const char *node = redis_server_url(cluster_node(cluster, 0));
    expect_outcome(hl_client_open(node, NULL, &client, &err), HL_ENOTSUP);
    check_has(err.text, "redis-cluster://");
}

ClusterLaw(cluster_slot, that_moves_takes_its_holder_and_its_waiter_along)
{
    static struct events events;
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(&events));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    const char *name = name_at(0, "stock");
    hl_lock *lock = new_lock(client, name), *others = new_lock(other, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    struct actor *actor = actor_start_acquire(others, ACQUIRE(.wait_ms = -1));
    expect_waiters(other, 1);
    for (int i = 1; i <= 4; i++) {
        int to = i % cluster_masters(cluster);
        slot_move(cluster, slot_of(name), cluster_node(cluster, to));
        server = cluster_node(cluster, to);
        expect_held_by(client, lock, 1);
        check(hl_lock_is_held(lock, NULL));
    }
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(actor_end(actor));
    expect_held_by(other, others, 1);
    expect_ok(actor_release(actor, others, NULL));
    expect_free(others);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_handed_over(client, other, name);
}

static void cluster_up_with_password(void)
{
    cluster_up_with(&(struct cluster_options){.password = "secret", .without_replicas = true});
}

Test(cluster, with_a_password_is_told_it_by_every_connection, .init = cluster_up_with_password,
     .fini = server_down)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    const char *url = cluster_url_of(cluster, 0, 1, "secret");

    expect_outcome(hl_client_open(cluster_url(cluster), NULL, &client, &err), HL_EDENIED);
    check_has(err.text, "NOAUTH");
    expect_outcome(hl_client_open(cluster_url_of(cluster, 0, 1, "wrong"), NULL, &client, &err),
                   HL_EDENIED);
    check_has(err.text, "WRONGPASS");
    client = open_client_at(url, cluster_client(NULL));
    hl_client *other = open_client_at(url, cluster_client(NULL));
    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, name_at(i, "stock"));
}

static void cluster_up_with_names(void)
{
    if (!redis_program_is_7())
        skip("nodes announce host names since Redis 7.0");
    cluster_up_with(&(struct cluster_options){.config = "cluster-announce-hostname localhost\n"
                                                        "cluster-preferred-endpoint-type hostname",
                                              .without_replicas = true});
}

/* Its maps and redirections name localhost, not 127.0.0.1. */
Test(cluster, whose_nodes_announce_host_names_is_found_by_these, .init = cluster_up_with_names,
     .fini = server_down)
{
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    const char *name = name_at(0, "stock");

    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, name_at(i, "stock"));
    check_has(redis_str(server, "CLUSTER SLOTS"), "localhost");
    slot_move(cluster, slot_of(name), cluster_node(cluster, 1));
    expect_handed_over(client, other, name);
}
