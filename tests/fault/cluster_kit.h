/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What the tests at a cluster share: clients whose outages outlive an election, names by node, and
 * a lock that goes from hand to hand. */
#ifndef HL_TEST_CLUSTER_KIT_H
#define HL_TEST_CLUSTER_KIT_H

#include "support/actor.h"
#include "support/events.h"
#include "support/slot_move.h"
#include "support/topologies.h"

#include <string.h>

/* No poll comes within a test: who gets a lock was told of it. events may be NULL. */
static inline const hl_client_options *cluster_client(struct events *events)
{
    static hl_client_options used;

    used = *CLIENT(.poll_ms = slow_ms(60000), .outage_timeout_ms = slow_ms(60000),
                   .on_event = events ? count_event : NULL, .arg = events);
    return &used;
}

static inline const char *name_at(int node, const char *prefix)
{
    return cluster_name_at(cluster_node(cluster, node), prefix);
}

static inline int slot_of(const char *name)
{
    return cluster_slot(name, strlen(name));
}

/* What a waiter needs that was told of a release, not what a lease or a poll needs. */
static inline void expect_told(struct actor *actor)
{
    expect_ok(actor_end(actor));
    check_msg(actor_took_ms(actor) < slow_ms(20000), "it waited for %d ms",
              (int)actor_took_ms(actor));
}

/* A hold, a waiter of another client that is woken by the release, and the waiter's release. */
static inline void expect_handed_over(hl_client *client, hl_client *other, const char *name)
{
    hl_lock *lock = new_lock(client, name), *others = new_lock(other, name);

    server = cluster_node_of(cluster, name);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_held_by(client, lock, 1);
    struct actor *actor = actor_start_acquire(others, ACQUIRE(.wait_ms = -1));
    expect_waiters(other, 1);
    expect_ok(hl_lock_release(lock, ERR));
    expect_told(actor);
    expect_held_by(other, others, 1);
    expect_ok(actor_release(actor, others, NULL));
    expect_free(others);
    actor_stop(actor);
    free_lock(lock);
    free_lock(others);
}

#endif
