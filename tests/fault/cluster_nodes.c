/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Nodes of a cluster that are killed, frozen, restarted, added and removed, while clients hold,
 * wait and release. */

#include "cluster_kit.h"

#include "lease/state/name.h"
#include "sync/lock/lock.h"

#include "support/cluster_reshape.h"

#include <stdio.h>

/* A node of the cluster says so. */
static void expect_said_by_node(struct events *told)
{
    char says[64];

    for (int i = 0; i < cluster_nodes(cluster); i++) {
        int port = redis_server_port(cluster_node(cluster, i));
        snprintf(says, sizeof says, "node 127.0.0.1:%d says so", port);
        if (strcmp(told->reason[HL_EVENT_MASTER_CHANGED], says) == 0)
            return;
    }
    check_msg(false, "told: %s", told->reason[HL_EVENT_MASTER_CHANGED]);
}

/* One holds and one waits at the node that fails over; others hold at the other nodes. */
static void expect_failover(struct redis_server *(*fail)(const char *name))
{
    static struct events events, others;
    hl_client *holder = open_client_at(cluster_url(cluster), cluster_client(&events));
    hl_client *waiter = open_client_at(cluster_url(cluster), cluster_client(&others));
    const char *name = name_at(0, "stock");
    hl_lock *held = new_lock(holder, name), *wanted = new_lock(waiter, name);
    hl_lock *beside = new_lock(holder, name_at(1, "beside"));

    expect_ok(hl_lock_acquire(held, ERR));
    expect_ok(hl_lock_acquire(beside, ERR));
    struct hli_link *old = hli_name_link(held->handle.name);
    struct actor *actor = actor_start_acquire(wanted, ACQUIRE(.wait_ms = -1));
    expect_waiters(waiter, 1);
    check(redis_wait_replicas(cluster_node(cluster, 0), 1, 30000));
    server = fail(name);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    check(events_wait(&others, HL_EVENT_MASTER_CHANGED, 1, 60000));
    expect_said_by_node(&events);
    expect_said_by_node(&others);
    check(wait_until(is_renewed_or_lost, holder, 60000));
    expect_held_or_lost(holder, held, &events);
    expect_told(actor);
    expect_held_by(waiter, wanted, 1);
    expect_ok(actor_release(actor, wanted, NULL));
    expect_free(wanted);
    check(hl_lock_is_held(beside, NULL));
    expect_ok(hl_lock_release(beside, ERR));
    expect_handed_over(holder, waiter, name);
    check_int(hli_link_problem(old, ERR), HL_ESERVER); /* and not HL_ECLOSED */
}

static struct redis_server *fail_by_kill(const char *name)
{
    struct redis_server *old = cluster_node_of(cluster, name);

    redis_server_kill(old);
    return cluster_await_master(cluster, slot_of(name), old);
}

ClusterLaw(cluster_failover, of_a_killed_master_lets_holders_and_waiters_go_on)
{
    expect_failover(fail_by_kill);
}

static struct redis_server *fail_by_command(const char *name)
{
    struct redis_server *old = cluster_node_of(cluster, name);

    cluster_start_failover(cluster_replica_of(cluster, old));
    return cluster_await_master(cluster, slot_of(name), old);
}

ClusterLaw(cluster_failover, on_command_lets_holders_and_waiters_go_on)
{
    expect_failover(fail_by_command);
}

static struct redis_server *fail_by_freeze(const char *name)
{
    struct redis_server *old = cluster_node_of(cluster, name);

    redis_server_freeze(old);
    return cluster_await_master(cluster, slot_of(name), old);
}

ClusterLaw(cluster_failover, of_a_frozen_master_lets_holders_and_waiters_go_on)
{
    struct redis_server *old = cluster_node(cluster, 0);

    expect_failover(fail_by_freeze);
    redis_server_thaw(old);
    cluster_await_whole(cluster);
}

static hl_owner *owner; /* of the hold that another thread releases */

static void release_in_time(void *lock)
{
    int code = hl_lock_release_as(lock, owner, NULL);
    check_msg(code == HL_OK || code == HL_EINDOUBT, "%s", hl_err_name(code));
}

/* The frozen master never answers. The client hears of the new one from the others, because it has
 * lost a connection there, and sends the release anew. */
ClusterLaw(cluster_failover, takes_a_release_in_flight_along)
{
    static struct events events;
    hl_client_options options = *cluster_client(&events);
    const char *name = name_at(0, "stock");
    struct redis_server *old = cluster_node(cluster, 0);
    struct actor *actor = actor_start();

    options.request_timeout_ms = slow_ms(8000);
    hl_client *client = open_client_at(cluster_url(cluster), &options);
    hl_lock *lock = new_lock(client, name);
    owner = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .wait_ms = -1), ERR));
    check(redis_wait_replicas(old, 1, 30000));
    redis_server_freeze(old);
    actor_begin(actor, release_in_time, lock);
    server = cluster_await_master(cluster, slot_of(name), old);
    redis_kill_clients(cluster_node(cluster, 1), REDIS_NORMAL);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    actor_await(actor);
    expect_free(lock);
    redis_server_thaw(old);
    cluster_await_whole(cluster);
}

/* Its keys are on disk; another client waits at it. */
static void expect_over_restart(hl_client *client, hl_client *other, int node)
{
    const char *name = name_at(node, "stock");
    hl_lock *lock = new_lock(client, name), *others = new_lock(other, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    struct actor *actor = actor_start_acquire(others, ACQUIRE(.wait_ms = -1));
    expect_waiters(other, 1);
    redis_server_restart(cluster_node(cluster, node));
    cluster_await_whole(cluster);
    expect_ok(hl_lock_release(lock, ERR));
    expect_told(actor);
    expect_ok(actor_release(actor, others, NULL));
    actor_stop(actor);
    expect_handed_over(client, other, name);
}

static void cluster_up_on_disk(void)
{
    cluster_up_with(&(struct cluster_options){.config = "appendonly yes\nappendfsync always",
                                              .without_replicas = true});
}

Test(cluster_restart, of_each_node_in_turn_loses_no_hold, .init = cluster_up_on_disk,
     .fini = server_down)
{
    static struct events events;
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(&events));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));

    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_over_restart(client, other, i);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

static bool has_failed(void *node)
{
    return strstr(redis_str(node, "CLUSTER INFO"), "cluster_state:fail") != NULL;
}

/* Two of three masters are dead, so the third does not serve its slots either. */
Test(cluster_minority, refuses_calls_until_the_others_are_back, .init = cluster_up_on_disk,
     .fini = server_down)
{
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    const char *names[] = {name_at(0, "stock"), name_at(1, "stock"), name_at(2, "stock")};
    hl_error err = HL_ERROR_INIT;

    for (int i = 1; i < 3; i++)
        redis_server_kill(cluster_node(cluster, i));
    cluster_notice_deaths(cluster);
    check(wait_until(has_failed, cluster_node(cluster, 0), 60000));
    expect_outcome(hl_lock_try_acquire(new_lock(client, names[0]), &err), HL_ESERVER);
    check_has(err.text, "CLUSTERDOWN");
    expect_outcome(hl_lock_try_acquire(new_lock(client, names[1]), &err), HL_ECONN);
    check_has(err.text, "connection refused");
    expect_outcome(
        hl_lock_acquire_with(new_lock(client, names[0]), ACQUIRE(.wait_ms = slow_ms(1000)), &err),
        HL_ESERVER);
    for (int i = 1; i < 3; i++)
        redis_server_restart(cluster_node(cluster, i));
    cluster_await_whole(cluster);
    for (int i = 0; i < 3; i++)
        expect_handed_over(client, other, names[i]);
}

static bool late_has_left(void *node)
{
    return redis_clients(node, REDIS_NORMAL, "late") == 0 &&
           redis_clients(node, REDIS_PUBSUB, "late") == 0;
}

/* A node that comes is used. A client that knew it by the map closes its connections as soon as it
 * knows that the node has no slots any more. */
ClusterLaw(cluster_nodes, come_and_go)
{
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    const char *name = name_at(0, "stock");
    struct redis_server *home = cluster_node(cluster, 0);
    hl_client_options options = *cluster_client(NULL);

    for (int i = 0; i < 2; i++) {
        struct redis_server *guest = cluster_add_node(cluster, NULL);
        slot_move(cluster, slot_of(name), guest);
        expect_handed_over(client, other, name);
        options.client_name = "late";
        hl_client *late = open_client_at(cluster_url(cluster), &options);
        expect_handed_over(client, late, name);
        check(redis_clients(guest, REDIS_NORMAL, "late") >= 1); /* a lane more, if it is busy */
        slot_move(cluster, slot_of(name), home);
        expect_handed_over(client, late, name);
        check(wait_until(late_has_left, guest, 20000));
        close_client(late);
        expect_handed_over(client, other, name);
        cluster_remove_node(cluster, guest);
        expect_handed_over(client, other, name);
    }
}
