/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* min_replicas in a cluster: each master's own replica has the lock, also while its slot moves and
 * after the death of the master. */

#include "cluster_kit.h"

static struct redis_server *follower[3]; /* of each master */

static void followed_up(void)
{
    cluster_up();
    for (int i = 0; i < 3; i++)
        follower[i] = cluster_replica_of(cluster, cluster_node(cluster, i));
}

#define ReplicasLaw(name) Test(cluster_replicas, name, .init = followed_up, .fini = server_down)

static hl_client *open_replicated(int64_t watchdog_ms, struct events *events)
{
    hl_client_options options = *cluster_client(events);

    options.min_replicas = 1;
    options.replicas_timeout_ms = watchdog_ms == SHORT_MS ? SHORT_MS / 3 : slow_ms(2000);
    options.request_timeout_ms = slow_ms(4000);
    options.poll_ms = 1000;
    options.watchdog_timeout_ms = watchdog_ms;
    return open_client_at(cluster_url(cluster), &options);
}

/* KEYS is answered by replicas, too, and while the slot moves. */
static bool has(struct redis_server *node, const char *name)
{
    redisReply *keys = redis_command(node, "KEYS %s", name);
    bool is_there = keys->type == REDIS_REPLY_ARRAY && keys->elements == 1;

    freeReplyObject(keys);
    return is_there;
}

static void expect_confirmed(hl_lock *lock, struct redis_server *replica, const char *name)
{
    expect_ok(hl_lock_acquire(lock, ERR));
    check(has(replica, name));
    expect_ok(hl_lock_release(lock, ERR));
}

static void expect_unconfirmed(hl_lock *lock)
{
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_lock_acquire(lock, &err), HL_EREPLICAS);
    check_has(err.text, "0 of 1 replicas");
    check(!hl_lock_is_held(lock, NULL));
}

ReplicasLaw(are_those_of_the_master_that_serves_the_slot)
{
    hl_client *client = open_replicated(0, NULL);
    const char *name[3];
    hl_lock *lock[3];

    for (int i = 0; i < 3; i++)
        lock[i] = new_lock(client, name[i] = name_at(i, "stock"));
    for (int i = 0; i < 3; i++)
        expect_confirmed(lock[i], follower[i], name[i]);
    redis_server_freeze(follower[1]);
    expect_unconfirmed(lock[1]);
    check(redis_wait_int(cluster_node(cluster, 1), 0, 20000, "EXISTS %s", name[1]));
    expect_confirmed(lock[0], follower[0], name[0]);
    expect_confirmed(lock[2], follower[2], name[2]);
    redis_server_thaw(follower[1]);
    check(redis_wait_replicas(cluster_node(cluster, 1), 1, 60000));
    expect_confirmed(lock[1], follower[1], name[1]);
}

ReplicasLaw(of_one_slot_that_lag_let_the_holds_of_that_slot_end)
{
    static struct events events, others_events;
    hl_client *client = open_replicated(SHORT_MS, NULL);
    hl_lock *lock = new_lock(client, name_at(0, "stock"));
    hl_lock *other = new_lock(client, name_at(1, "stock"));

    expect_ok(
        hl_lock_acquire_with(lock, ACQUIRE(.on_event = count_event, .event_arg = &events), ERR));
    expect_ok(hl_lock_acquire_with(
        other, ACQUIRE(.on_event = count_event, .event_arg = &others_events), ERR));
    wait_stat(client, renewals, 2);
    redis_server_freeze(follower[0]);
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    wait_stat(client, renewals, stats_of(client).renewals + 3);
    check_int(events_told(&others_events, HL_EVENT_LOST), 0);
    redis_server_thaw(follower[0]);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_ok(hl_lock_release(other, ERR));
}

/* --- a slot that moves --- */

/* The old node sends the requests on (ASK): the lock is made at the new one, so that one's replica
 * must have it. */
ReplicasLaw(are_those_of_the_new_master_while_a_slot_moves)
{
    hl_client *client = open_replicated(0, NULL);
    const char *name = name_at(0, "stock"), *others = name_at(1, "other");
    hl_lock *lock = new_lock(client, name), *other = new_lock(client, others);
    struct slot_move move = slot_move_begin(cluster, slot_of(name), cluster_node(cluster, 1));

    expect_confirmed(lock, follower[1], name);
    uint64_t redirects = stats_of(client).redirects;
    check(redirects > 0);
    redis_server_freeze(follower[0]); /* it is not asked for */
    expect_confirmed(lock, follower[1], name);
    redis_server_thaw(follower[0]);
    redis_server_freeze(follower[1]);
    expect_unconfirmed(lock);
    expect_unconfirmed(other);
    check_int(stats_of(client).holds_now, 0);
    redis_server_thaw(follower[1]);
    check(redis_wait_replicas(cluster_node(cluster, 1), 1, 60000));
    slot_move_end(&move);
    expect_confirmed(lock, follower[1], name);
    expect_confirmed(other, follower[1], others);
}

/* Renewals follow the key, and count only if the new master's replica has them. */
ReplicasLaw(have_the_renewals_of_a_key_that_has_moved)
{
    static struct events events;
    hl_client *client = open_replicated(SHORT_MS, &events);
    const char *name = name_at(0, "stock");
    hl_lock *lock = new_lock(client, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    struct slot_move move = slot_move_begin(cluster, slot_of(name), cluster_node(cluster, 1));
    check(slot_move_key(&move, name));
    wait_stat(client, renewals, stats_of(client).renewals + 6);
    check(hl_lock_is_held(lock, NULL));
    check(stats_of(client).redirects > 0);
    redis_server_freeze(follower[1]);
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check(stats_of(client).unconfirmed > 0);
    redis_server_thaw(follower[1]);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    check(redis_wait_replicas(cluster_node(cluster, 1), 1, 60000));
    slot_move_end(&move);
}

/* Of the node to which a slot moves: the request that it was sent behind ASKING waits for its
 * replica. */
ReplicasLaw(hold_up_no_lock_of_the_node_to_which_a_slot_moves)
{
    hl_client_options options = *cluster_client(NULL);
    options.min_replicas = HL_REPLICAS_NONE;
    options.replicas_timeout_ms = slow_ms(30000);
    options.request_timeout_ms = slow_ms(60000);
    hl_client *client = open_client_at(cluster_url(cluster), &options);
    const char *name = name_at(0, "stock");
    hl_lock *waits = new_lock_with(
        client, name, &(hl_lock_options){.size = sizeof(hl_lock_options), .min_replicas = 1});
    hl_lock *other = new_lock(client, name_at(1, "other"));
    struct slot_move move = slot_move_begin(cluster, slot_of(name), cluster_node(cluster, 1));

    redis_server_freeze(follower[1]);
    struct actor *actor = actor_start_acquire(waits, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_int(move.to, 1, 20000, "EVAL %s 0",
                         "return tonumber(redis.call('INFO', 'clients')"
                         ":match('blocked_clients:(%d+)'))"));
    for (int i = 0; i < 20; i++) {
        expect_ok(hl_lock_acquire(other, ERR));
        expect_ok(hl_lock_release(other, ERR));
    }
    check(!actor_is_done(actor));
    redis_server_thaw(follower[1]);
    expect_ok(actor_end(actor));
    check(has(follower[1], name));
    expect_ok(actor_release(actor, waits, NULL));
    slot_move_end(&move);
}

/* --- a master that dies --- */

/* The new master has the lock, for it was a replica that had confirmed it. It has no replica itself
 * until the old one is back. */
ReplicasLaw(keep_a_hold_over_the_death_of_its_master)
{
    static struct events events;
    hl_client *client = open_replicated(slow_ms(60000), &events);
    const char *name = name_at(0, "stock"), *anothers = name_at(0, "another");
    hl_lock *lock = new_lock(client, name), *another = new_lock(client, anothers);
    struct redis_server *old = cluster_node(cluster, 0);

    expect_ok(hl_lock_acquire(lock, ERR));
    redis_server_kill(old);
    check(cluster_await_master(cluster, slot_of(name), old) == follower[0]);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    check(hl_lock_is_held(lock, NULL));
    check(has(follower[0], name));
    hl_client *plain = open_client_at(cluster_url(cluster), cluster_client(NULL));
    expect_outcome(hl_lock_try_acquire(new_lock(plain, name), ERR), HL_EBUSY);
    expect_unconfirmed(another);
    redis_server_restart(old);
    cluster_await_whole(cluster);
    check(redis_wait_replicas(follower[0], 1, 60000)); /* the master has heard of it, too */
    expect_confirmed(another, old, anothers);
    cluster_start_failover(old);
    check(cluster_await_master(cluster, slot_of(name), follower[0]) == old);
    cluster_await_whole(cluster);
    check(redis_wait_replicas(old, 1, 60000));
    expect_confirmed(another, follower[0], anothers);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}
