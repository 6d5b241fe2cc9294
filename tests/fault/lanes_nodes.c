/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Lanes at a master that Sentinels name, and at the nodes of a cluster. */

#include "lanes_kit.h"

#include "cluster_kit.h"
#include "lease/state/name.h"
#include "redis/lanes.h"
#include "sync/lock/lock.h"

static struct events events;
static char address[64];

static const char *address_of(const struct redis_server *node)
{
    snprintf(address, sizeof address, "127.0.0.1:%d", redis_server_port(node));
    return address;
}

static const hl_client_options *options(int connections)
{
    static hl_client_options used;

    used = *cluster_client(&events);
    used.connections = connections;
    used.poll_ms = 0;
    return &used;
}

/* Threads are at work with all lanes while the master changes. */
static void expect_switch(struct redis_server *(*begin)(void))
{
    static struct crowd_of_threads crowd = {.may_fail = true};
    hl_client *client = open_client_at(trio_url(trio), options(4));

    crowd_begin(&crowd, client, "stock");
    expect_lanes(client, NULL, 4);
    atomic_store(&crowd.is_calm, true);
    struct redis_server *old = begin();
    server = trio_await_switch(trio, old);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    expect_lanes(client, address_of(server), 4);
    int pairs = atomic_load(&crowd.pairs);
    while (atomic_load(&crowd.pairs) < pairs + 200)
        sched_yield();
    crowd_end(&crowd);
    check_int(events_told(&events, HL_EVENT_MASTER_CHANGED), 1);
    check_int(stats_of(client).master_changes, 1);
    if (redis_server_is_up(old))
        check_int(redis_clients(old, REDIS_NORMAL, "hirelock"), 0);
    hl_lock *lock = new_lock(client, "afterwards");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
}

static struct redis_server *begin_by_kill(void)
{
    struct redis_server *old = trio_master(trio);

    redis_server_kill(old);
    trio_start_failover(trio);
    return old;
}

static struct redis_server *begin_by_command(void)
{
    struct redis_server *old = trio_master(trio);

    trio_start_failover(trio);
    return old;
}

TrioLaw(lanes_nodes, follow_the_sentinels_together_from_a_killed_master)
{
    expect_switch(begin_by_kill);
}

TrioLaw(lanes_nodes, follow_the_sentinels_together_from_a_master_that_lives_on)
{
    expect_switch(begin_by_command);
}

/* The crowd's names are all in one slot. */
static void crowd_begin_at(struct crowd_of_threads *crowd, hl_client *client, int slot)
{
    crowd_begin(crowd, client, cluster_name_in_slot(slot, "stock"));
}

ClusterLaw(lanes_nodes, are_opened_at_the_node_where_threads_meet)
{
    static struct crowd_of_threads crowd;
    hl_client *client = open_client_at(cluster_url(cluster), options(2));

    crowd_begin_at(&crowd, client, 0);
    expect_lanes(client, address_of(cluster_node(cluster, 0)), 2);
    check_int(lanes_of(client, address_of(cluster_node(cluster, 1))), 1);
    check_int(lanes_of(client, address_of(cluster_node(cluster, 2))), 1);
    crowd_end(&crowd);
    check_int(stats_of(client).nodes_now, 3);
}

ClusterLaw(lanes_nodes, serve_names_whose_slot_moves_forth_and_back)
{
    static struct crowd_of_threads crowd;
    hl_client *client = open_client_at(cluster_url(cluster), options(2));

    crowd_begin_at(&crowd, client, 0);
    expect_lanes(client, address_of(cluster_node(cluster, 0)), 2);
    for (int i = 1; i <= 4; i++) {
        slot_move(cluster, 0, cluster_node(cluster, i % 2));
        int pairs = atomic_load(&crowd.pairs);
        while (atomic_load(&crowd.pairs) < pairs + 100)
            sched_yield();
    }
    crowd_end(&crowd);
    check(stats_of(client).redirects > 0);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

ClusterLaw(lanes_nodes, move_to_the_replica_of_a_killed_node)
{
    static struct crowd_of_threads crowd = {.may_fail = true};
    hl_client *client = open_client_at(cluster_url(cluster), options(2));

    crowd_begin_at(&crowd, client, 0);
    struct redis_server *old = cluster_node(cluster, 0);
    expect_lanes(client, address_of(old), 2);
    atomic_store(&crowd.is_calm, true);
    redis_server_kill(old);
    struct redis_server *heir = cluster_await_master(cluster, 0, old);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    expect_lanes(client, address_of(heir), 2);
    int pairs = atomic_load(&crowd.pairs);
    while (atomic_load(&crowd.pairs) < pairs + 200)
        sched_yield();
    crowd_end(&crowd);
}

static struct hli_name *watched; /* by __wrap_hli_client_slots_moved() */
static atomic_int walks, switches;

void __real_hli_client_slots_moved(void *client);
void __wrap_hli_client_slots_moved(void *client);

void __wrap_hli_client_slots_moved(void *client)
{
    struct hli_link *link = watched ? hli_name_link(watched) : NULL;

    __real_hli_client_slots_moved(client);
    if (watched && hli_name_link(watched) != link)
        atomic_fetch_add(&switches, 1);
    atomic_fetch_add(&walks, 1);
}

static bool was_walked(void *arg)
{
    return atomic_load(&walks) > *(int *)arg;
}

/* Held by a lane that is not the first one, while a crowd is at work. */
static hl_lock *hold_by_further_lane(hl_client *client, int slot)
{
    hl_lock *lock = new_lock(client, cluster_name_in_slot(slot, "held"));

    watched = NULL;
    for (;;) {
        expect_ok(hl_lock_acquire(lock, ERR));
        struct hli_link *link = hli_name_link(lock->handle.name);
        if (hli_link_first(link) != link)
            return lock;
        expect_ok(hl_lock_release(lock, ERR));
    }
}

/* The client hears of the move by MOVED, and reads the new map then. */
static void move_and_tell(hl_client *client, int slot, struct redis_server *to, hl_lock *held)
{
    int before = atomic_load(&walks);
    hl_lock *other = new_lock(client, cluster_name_in_slot(slot, "other"));

    watched = held->handle.name;
    atomic_store(&switches, 0);
    slot_move(cluster, slot, to);
    expect_ok(hl_lock_acquire(other, ERR));
    expect_ok(hl_lock_release(other, ERR));
    check(wait_until(was_walked, &before, slow_ms(30000)));
}

/* A request that is sent by another connection may overtake those that are on the way. */
ClusterLaw(lanes_nodes, keep_to_the_connection_that_a_moved_name_was_given_at_its_new_node)
{
    static struct crowd_of_threads here, there;
    hl_client *client = open_client_at(cluster_url(cluster), options(2));

    crowd_begin_at(&here, client, 0);
    crowd_begin_at(&there, client, 6000);
    expect_lanes(client, address_of(cluster_node(cluster, 0)), 2);
    expect_lanes(client, address_of(cluster_node(cluster, 1)), 2);
    hl_lock *held = hold_by_further_lane(client, 0);
    crowd_end(&here);
    crowd_end(&there);
    move_and_tell(client, 0, cluster_node(cluster, 1), held);
    check_int(atomic_load(&switches), 0);
    expect_ok(hl_lock_release(held, ERR));
}

ClusterLaw(lanes_nodes, that_open_are_not_taken_by_names_that_had_one_elsewhere)
{
    static struct crowd_of_threads here, there;
    hl_client *client = open_client_at(cluster_url(cluster), options(2));

    crowd_begin_at(&here, client, 0);
    expect_lanes(client, address_of(cluster_node(cluster, 0)), 2);
    hl_lock *held = hold_by_further_lane(client, 0);
    crowd_end(&here);
    move_and_tell(client, 0, cluster_node(cluster, 1), held);
    struct hli_link *link = hli_name_link(held->handle.name);
    crowd_begin_at(&there, client, 6000);
    expect_lanes(client, address_of(cluster_node(cluster, 1)), 2);
    crowd_end(&there);
    check(hli_name_link(held->handle.name) == link);
    expect_ok(hl_lock_release(held, ERR));
}
