/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Holding through a failover to a replica that has not heard of the hold: failover_grace_ms with
 * Sentinel and with a cluster. The holds are not released before the failover, and are long enough
 * for it on a slow machine; so nobody waits for the end of a grace. */

#include "support/cluster_reshape.h"
#include "support/cluster_slot.h"
#include "support/events.h"
#include "support/grace.h"
#include "support/slot_move.h"
#include "support/topologies.h"

#include <hirelock/multi_lock.h>

#include <string.h>

#define LEASE_MS slow_ms(30000)

static const hl_client_options *graceful(struct events *events)
{
    static hl_client_options used;

    used = *CLIENT(.failover_grace_ms = LEASE_MS, .watchdog_timeout_ms = LEASE_MS,
                   .outage_timeout_ms = slow_ms(60000), .backoff_max_ms = 100,
                   .on_event = events ? count_event : NULL, .arg = events);
    return &used;
}

/* The hold went on, and nobody else gets the lock. */
static void expect_held_through(hl_client *client, hl_lock *lock, hl_client *other,
                                struct events *events)
{
    hl_lock *others = new_lock(other, hl_lock_name(lock, NULL));
    hl_error err = HL_ERROR_INIT;

    wait_stat(client, reclaims, 1);
    check(hl_lock_is_held(lock, NULL));
    expect_held_by(client, lock, 1);
    expect_outcome(hl_lock_try_acquire(others, &err), HL_EBUSY);
    check_has(err.text, "nobody acquires for ");
    check_int(events_told(events, HL_EVENT_LOST), 0);
    check(events_wait(events, HL_EVENT_GRACE, 1, 5000));
    check_int(events_told(events, HL_EVENT_GRACE), 1);
    expect_ok(hl_lock_release(lock, ERR));
    expect_free(lock);
}

TrioLaw(grace_failover, of_sentinels_loses_no_hold_that_the_replica_had_not_heard_of)
{
    static struct events events;
    struct redis_server *old = trio_master(trio);

    grace_serve(old, false);
    hl_client *client = open_client_at(trio_url(trio), graceful(&events));
    hl_client *other = open_client_at(trio_url(trio), graceful(NULL));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    check_int(events_told(&events, HL_EVENT_GRACE), 0);
    check(redis_wait_int(trio_replica(trio), 1, 20000, "EXISTS stock"));
    grace_forget(trio_replica(trio));
    redis_server_kill(old);
    server = trio_await_switch(trio, old);
    wait_stat(other, master_changes, 1);
    expect_held_through(client, lock, other, &events);
}

static void serve_all(void)
{
    for (int i = 0; i < cluster_masters(cluster); i++)
        grace_serve(cluster_node(cluster, i), true);
}

static void expect_cluster_holds(void (*fail_over)(struct redis_server *master,
                                                   struct redis_server *replica))
{
    static struct events events;

    serve_all();
    hl_client *client = open_client_at(cluster_url(cluster), graceful(&events));
    hl_client *other = open_client_at(cluster_url(cluster), graceful(NULL));
    struct redis_server *master = cluster_node(cluster, 0);
    struct redis_server *replica = cluster_replica_of(cluster, master);
    int slot = cluster_slot_at(master);
    hl_lock *lock = new_lock(client, cluster_name_at(master, "stock"));
    hl_lock *beside = new_lock(client, cluster_name_at(cluster_node(cluster, 1), "beside"));
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_acquire(beside, ERR));
    check_int(events_told(&events, HL_EVENT_GRACE), 0);
    grace_forget(replica);
    fail_over(master, replica);
    server = cluster_await_master(cluster, slot, master);
    wait_stat(other, master_changes, 1);
    expect_held_through(client, lock, other, &events);
    check(hl_lock_is_held(beside, NULL)); /* at a node without a new term everybody acquires */
    expect_ok(hl_lock_release(beside, ERR));
    expect_ok(hl_lock_try_acquire(beside, ERR));
    expect_ok(hl_lock_release(beside, ERR));
}

static void by_kill(struct redis_server *master, struct redis_server *replica)
{
    (void)replica;
    redis_server_kill(master);
}

static void by_takeover(struct redis_server *master, struct redis_server *replica)
{
    (void)master;
    redis_do(replica, "CLUSTER FAILOVER TAKEOVER");
}

ClusterLaw(grace_failover, of_a_cluster_loses_no_hold_that_the_replica_had_not_heard_of)
{
    expect_cluster_holds(by_kill);
}

ClusterLaw(grace_failover, by_a_takeover_loses_no_hold_that_the_replica_had_not_heard_of)
{
    expect_cluster_holds(by_takeover);
}

static hl_lock *new_pair(hl_client *client, int slot)
{
    hl_lock *members[] = {new_lock(client, cluster_name_in_slot(slot, "a")),
                          new_lock(client, cluster_name_in_slot(slot, "b"))};
    hl_lock *both = NULL;

    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, ERR));
    return keep_lock(both);
}

/* Each node has a term of its own, and a slot that moves to another one is no failover. */
ClusterLaw(grace_failover, is_none_when_the_slot_of_a_multi_lock_moves)
{
    serve_all();
    hl_client *client = open_client_at(cluster_url(cluster), graceful(NULL));
    int slot = cluster_slot_at(cluster_node(cluster, 0));
    hl_lock *both = new_pair(client, slot);

    expect_ok(hl_lock_acquire(both, ERR));
    slot_move(cluster, slot, cluster_node(cluster, 1));
    expect_ok(hl_lock_release(both, ERR));
    expect_ok(hl_lock_acquire(both, ERR));
    expect_ok(hl_lock_release(both, ERR));
    slot_move(cluster, slot, cluster_node(cluster, 2));
    expect_ok(hl_lock_acquire(both, ERR));
    expect_ok(hl_lock_release(both, ERR));
    check_int(stats_of(client).graces, 0);
    check_int(stats_of(client).losses, 0);
}

/* The slots in which the node's term stands. */
static int slots_of_term(struct redis_server *node, int slots[16])
{
    redisReply *keys = redis_command(node, "KEYS hirelock_term:*");
    int count = 0;

    check(keys && keys->type == REDIS_REPLY_ARRAY && keys->elements <= 16);
    for (size_t i = 0; i < keys->elements; i++)
        slots[count++] = cluster_slot(keys->element[i]->str, keys->element[i]->len);
    freeReplyObject(keys);
    return count;
}

/* A new client finds the node's term, or begins a grace. */
static void expect_greeted(struct redis_server *node, bool has_grace)
{
    hl_client *client = open_client_at(cluster_url(cluster), graceful(NULL));
    hl_lock *lock = new_lock(client, cluster_name_at(node, "stock"));

    expect_outcome(hl_lock_try_acquire(lock, NULL), has_grace ? HL_EBUSY : HL_OK);
    if (!has_grace)
        expect_ok(hl_lock_release(lock, ERR));
    check_int(stats_of(client).graces, has_grace);
    free_lock(lock);
    close_client(client);
}

/* The term is found as long as it stands in one slot of its node; else a grace begins anew. */
ClusterLaw(grace_failover, is_none_when_slots_of_a_term_move)
{
    struct redis_server *from = cluster_node(cluster, 0), *to = cluster_node(cluster, 1);
    int slots[16];

    serve_all();
    int count = slots_of_term(from, slots);
    check(count > 1);
    struct slot_move move = slot_move_begin(cluster, slots[1], to);
    check_int(slot_move_keys(&move), 1);
    expect_greeted(from, false);
    slot_move_end(&move);
    for (int i = 2; i < count; i++)
        slot_move(cluster, slots[i], to);
    expect_greeted(from, false);
    int again[16]; /* the client has written it into others of the node's slots */
    check_int(slots_of_term(from, again), count);
    for (int i = 0; i < count; i++)
        slot_move(cluster, again[i], to);
    expect_greeted(from, true);
    for (int i = 0; i < count; i++) {
        slot_move(cluster, slots[i], from);
        if (again[i] != slots[0])
            slot_move(cluster, again[i], from);
    }
}

/* Of a cluster with a fourth master, which serves this slot alone, or no slot. */
static struct redis_server *add_small_node(int slot)
{
    struct redis_server *node = cluster_add_node(cluster, NULL);

    if (slot >= 0)
        slot_move(cluster, slot, node);
    serve_all();
    grace_serve(node, true);
    return node;
}

ClusterLaw(grace_failover, of_a_node_with_one_slot_loses_no_hold)
{
    static struct events events;
    const int slot = 8;
    struct redis_server *node = add_small_node(slot);

    hl_client *client = open_client_at(cluster_url(cluster), graceful(&events));
    hl_client *other = open_client_at(cluster_url(cluster), graceful(NULL));
    hl_lock *lock = new_lock(client, cluster_name_in_slot(slot, "stock"));
    expect_ok(hl_lock_acquire(lock, ERR));
    redis_server_kill(node);
    redis_server_restart(node);
    server = node;
    wait_stat(other, graces, 1);
    expect_held_through(client, lock, other, &events);
}

/* It has the key by now, and loses it; what is not there, the other node sends to it. */
ClusterLaw(grace_failover, of_a_node_to_which_its_first_slot_is_on_its_way_loses_no_hold)
{
    static struct events events;
    struct redis_server *node = add_small_node(-1);
    int slot = cluster_slot_at(cluster_node(cluster, 0));
    const char *name = cluster_name_in_slot(slot, "stock");

    hl_client *client = open_client_at(cluster_url(cluster), graceful(&events));
    hl_client *other = open_client_at(cluster_url(cluster), graceful(NULL));
    hl_lock *lock = new_lock(client, name), *others = new_lock(other, name);
    expect_ok(hl_lock_acquire(lock, ERR));
    struct slot_move move = slot_move_begin(cluster, slot, node);
    check(slot_move_key(&move, name));
    redis_server_kill(node);
    redis_server_restart(node);
    cluster_await_whole(cluster);
    check(hl_lock_try_acquire(others, NULL) < 0);
    check(hl_lock_acquire_for(others, 500, NULL) < 0);
    check(hl_lock_is_held(lock, NULL));
    slot_move_end(&move);
    server = node;
    expect_held_through(client, lock, other, &events);
}

/* Of a program that counts errors, an operator asks why. */
ClusterLaw(grace_failover, is_asked_for_without_an_error)
{
    serve_all();
    for (int i = 0; i < cluster_masters(cluster); i++)
        redis_do(cluster_node(cluster, i), "CONFIG RESETSTAT");
    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_greeted(cluster_node(cluster, i), false);
    for (int i = 0; i < cluster_masters(cluster); i++) {
        check_has(redis_str(cluster_node(cluster, i), "INFO commandstats"), "cmdstat_eval:");
        check(!strstr(redis_str(cluster_node(cluster, i), "INFO errorstats"), "errorstat_ERR"));
    }
}

/* What is wrong with the settings of a master that may be cut off. */
static _Atomic(const char *) advised;

static void note_advice(hl_log_level level, const char *text, void *arg)
{
    static char kept[512];

    (void)arg;
    if (level != HL_LOG_WARN || strstr(text, "min-replicas") == NULL)
        return;
    snprintf(kept, sizeof kept, "%s", text);
    atomic_store(&advised, kept);
}

static const char *advice_for(int64_t old_master_ms)
{
    hl_client_options used = *graceful(NULL);

    atomic_store(&advised, NULL);
    used.old_master_ms = old_master_ms;
    used.failover_grace_ms += old_master_ms;
    used.on_log = note_advice;
    close_client(open_client_at(trio_url(trio), &used)); /* its callbacks have run then */
    return atomic_load(&advised);
}

TrioLaw(grace_failover, warns_of_a_master_that_nothing_stops_when_it_is_cut_off)
{
    struct redis_server *master = trio_master(trio);

    check_has(advice_for(0), "goes on for ever");
    redis_do(master, "CONFIG SET min-replicas-to-write 1");
    redis_do(master, "CONFIG SET min-replicas-max-lag 7");
    check_has(advice_for(6999), "old_master_ms is less than min-replicas-max-lag");
    check(advice_for(7000) == NULL);
}
