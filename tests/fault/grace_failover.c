/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Holding through a failover to a replica that has not heard of the hold: failover_grace_ms with
 * Sentinel and with a cluster. The holds are not released before the failover, and are long enough
 * for it on a slow machine; so nobody waits for the end of a grace. */

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

ClusterLaw(grace_failover, is_none_when_the_slot_of_a_term_moves)
{
    struct redis_server *from = cluster_node_of(cluster, "hirelock_term:{0}");
    struct redis_server *to = cluster_node(cluster, from == cluster_node(cluster, 0) ? 1 : 0);

    serve_all();
    slot_move(cluster, (int)redis_int(from, "CLUSTER KEYSLOT hirelock_term:{0}"), to);
    hl_client *client = open_client_at(cluster_url(cluster), graceful(NULL));
    for (int i = 0; i < cluster_masters(cluster); i++) {
        hl_lock *lock = new_lock(client, cluster_name_at(cluster_node(cluster, i), "stock"));
        expect_ok(hl_lock_try_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
    }
    check_int(stats_of(client).graces, 0);
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
