/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Requests and the slots of their names, at a real cluster: each request goes to the node of its
 * slot at once, and has names of one slot only, also when the slot has moved; and a slot that moves
 * away disturbs no subscription of another. */

#include "cluster_kit.h"

#include "support/proxy.h"
#include "support/redis_program.h"

#include <hirelock/multi_lock.h>

#include <stdio.h>

/* No node was asked for names of several slots by one request. */
static void expect_no_crossing(void)
{
    for (int i = 0; i < cluster_masters(cluster); i++) {
        const char *errors = redis_str(cluster_node(cluster, i), "INFO errorstats");
        check_msg(strstr(errors, "CROSSSLOT") == NULL, "node %d: %s", i, errors);
    }
}

static void expect_used(hl_client *client, const char *name)
{
    hl_lock *lock = new_lock(client, name);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

ClusterLaw(cluster_slots, are_those_of_tags_so_no_request_goes_astray)
{
    static const char *const names[] = {"stock",    "{stock}", "a{stock}", "{stock}a", "{a}{b}",
                                        "}{stock}", "a{b}c}",  "{a{b}",    "{a}{",     "a b"};
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    char name[64];

    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "stock-%d{tag-%d}", i % 4, i);
        expect_used(client, name);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect_used(client, names[i]);
    check_int(stats_of(client).redirects, 0);
}

static hl_client *open_short(struct events *events)
{
    hl_client_options options = *cluster_client(events);
    options.watchdog_timeout_ms = slow_ms(1500);
    return open_client_at(cluster_url(cluster), &options);
}

/* The first renewal behind the move may go to the old node; those after it do not. */
ClusterLaw(cluster_slots, that_move_have_their_holds_renewed_at_the_new_node)
{
    static struct events events;
    hl_client *client = open_short(&events);
    const char *name = name_at(0, "stock");
    hl_lock *lock = new_lock(client, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(client, renewals, 1);
    for (int i = 1; i <= 2; i++) {
        server = cluster_node(cluster, i);
        slot_move(cluster, slot_of(name), server);
        wait_stat(client, renewals, stats_of(client).renewals + 3);
        uint64_t redirects = stats_of(client).redirects;
        wait_stat(client, renewals, stats_of(client).renewals + 3);
        check_int(stats_of(client).redirects, redirects);
        expect_held_by(client, lock, 1);
    }
    expect_ok(hl_lock_release(lock, ERR));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

/* They are all due together when the connection is there again. */
ClusterLaw(cluster_slots, of_one_node_have_their_holds_renewed_one_slot_after_the_other)
{
    enum { HOLDS = 40 };
    static struct events events;
    hl_client *client = open_short(&events);
    hl_lock *lock[HOLDS];
    int slot = cluster_slot_at(cluster_node(cluster, 0));

    for (int i = 0; i < HOLDS; i++) {
        lock[i] = new_lock(client, cluster_name_in_slot(slot + i, "stock"));
        expect_ok(hl_lock_acquire(lock[i], ERR));
    }
    redis_kill_clients(cluster_node(cluster, 0), REDIS_NORMAL);
    wait_stat(client, renewals, stats_of(client).renewals + 2 * HOLDS);
    for (int i = 0; i < HOLDS; i++)
        expect_ok(hl_lock_release(lock[i], ERR));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_no_crossing();
}

/* Two names in a slot, one in another slot of the same node, and one at another node. */
ClusterLaw(cluster_slots, of_a_multi_lock_are_asked_one_after_the_other)
{
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    int slot = cluster_slot_at(cluster_node(cluster, 0));
    const char *const names[] = {cluster_name_in_slot(slot, "a"), cluster_name_in_slot(slot, "b"),
                                 cluster_name_in_slot(slot + 1, "c"), name_at(1, "d")};
    enum { NAMES = sizeof names / sizeof names[0] };
    hl_lock *member[NAMES], *multi = NULL;

    for (int i = 0; i < NAMES; i++)
        member[i] = new_lock(client, names[i]);
    expect_ok(hl_multi_lock_new(member, NAMES, NULL, &multi, ERR));
    keep_lock(multi);
    for (int round = 0; round < 3; round++) {
        expect_ok(hl_lock_acquire(multi, ERR));
        for (int i = 0; i < NAMES; i++) {
            server = cluster_node_of(cluster, names[i]);
            expect_held_by(client, member[i], 1);
        }
        expect_ok(hl_lock_release(multi, ERR));
        for (int i = 0; i < NAMES; i++) {
            server = cluster_node_of(cluster, names[i]);
            expect_free(member[i]);
        }
    }
    check_int(stats_of(client).redirects, 0);
    expect_no_crossing();
}

/* --- the subscriptions of a slot that moves --- */

/* `other` reaches the first node by the proxy only. */
static hl_client *client, *other;
static struct events others_events;
static struct proxy *proxy;
static struct redis_server *node;

static void map_to_proxy(hl_address *address, void *arg)
{
    (void)arg;
    if (address->port == redis_server_port(node))
        address->port = proxy_port(proxy);
}

static void shards_up(void)
{
    if (!redis_program_is_7())
        skip("sharded messages are new in Redis 7.0");
    cluster_up();
    node = server;
    proxy = new_proxy();
    client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    hl_client_options options = *cluster_client(&others_events);
    options.request_timeout_ms = slow_ms(60000);
    options.address_map = map_to_proxy;
    other = open_client_at(cluster_url(cluster), &options);
}

#define ShardLaw(suite, ...) Test(suite, __VA_ARGS__, .init = shards_up, .fini = server_down)

/* A lock of `client`, and a waiter of `other` that is subscribed to its channels. */
struct wish {
    hl_lock *lock, *others;
    struct actor *actor;
};

static struct wish wish_begin(int slot)
{
    const char *name = cluster_name_in_slot(slot, "stock");
    struct wish wish = {.lock = new_lock(client, name), .others = new_lock(other, name)};
    char channel[128];

    snprintf(channel, sizeof channel, "redisson_lock__channel:%s", name);
    expect_ok(hl_lock_acquire(wish.lock, ERR));
    wish.actor = actor_start_acquire(wish.others, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(cluster_node_of(cluster, name), channel, 1, 20000));
    return wish;
}

static void wish_end(const struct wish *wish)
{
    expect_ok(hl_lock_release(wish->lock, ERR));
    expect_told(wish->actor);
    expect_ok(actor_release(wish->actor, wish->others, NULL));
}

/* What the first node wrote before is read now, for the message stands behind it. */
static void expect_heard(int slot)
{
    struct wish wish = wish_begin(slot);
    wish_end(&wish);
}

/* A request for a slot that is elsewhere by now. */
static bool has_refused_to_unsubscribe(void *arg)
{
    redisReply *stats = redis_command(arg, "INFO commandstats");
    const char *line = stats ? strstr(stats->str, "cmdstat_sunsubscribe:") : NULL;
    bool has = line && strncmp(strstr(line, "rejected_calls="), "rejected_calls=0", 16) != 0;
    freeReplyObject(stats);
    return has;
}

/* From now on `other` hears nothing of the first node, of which that slot moves away. Returns the
 * number of the connection that is kept back. */
static int move_unheard(int slot)
{
    int subscriptions = proxy_find(proxy, "SSUBSCRIBE");

    check(subscriptions >= 0);
    proxy_hold(proxy, subscriptions, PROXY_DOWN);
    slot_move(cluster, slot, cluster_node(cluster, 1));
    return subscriptions;
}

/* Another request is answered by MOVED, so `other` ends its subscription at the first node, whose
 * word that it is over is still on the way. */
static void unsubscribe_what_moved(int slot)
{
    expect_ok(hl_lock_try_acquire(new_lock(other, cluster_name_in_slot(slot, "beside")), ERR));
    check(wait_until(has_refused_to_unsubscribe, node, 20000));
}

static void expect_no_reconnect(void)
{
    check_int(stats_of(other).reconnects, 0);
    check_int(events_told(&others_events, HL_EVENT_DISCONNECTED), 0);
}

ShardLaw(cluster_slots, that_move_while_they_are_unsubscribed_leave_the_connection_alone)
{
    int slot = cluster_slot_at(node);
    struct wish moved = wish_begin(slot);

    expect_heard(slot + 1);
    int subscriptions = move_unheard(slot);
    unsubscribe_what_moved(slot);
    proxy_release(proxy, subscriptions, PROXY_DOWN);
    expect_heard(slot + 2);
    wish_end(&moved);
    expect_no_reconnect();
}

/* In flight are SUNSUBSCRIBE and SSUBSCRIBE of another slot. The node's words are the end of the
 * subscription, which seems to answer the first, MOVED for the first, and the answer to the second.
 */
ShardLaw(cluster_slots, that_move_while_they_are_unsubscribed_answer_for_no_other)
{
    int slot = cluster_slot_at(node);
    struct wish moved = wish_begin(slot);

    expect_heard(slot + 1);
    int subscriptions = move_unheard(slot);
    unsubscribe_what_moved(slot);
    struct wish next = wish_begin(slot + 2);
    proxy_release(proxy, subscriptions, PROXY_DOWN);
    expect_heard(slot + 3);
    wish_end(&next);
    wish_end(&moved);
    expect_no_reconnect();
}

/* The same in the other order: the end of the subscription stands before the answer to SSUBSCRIBE,
 * and MOVED behind it. */
ShardLaw(cluster_slots, that_move_while_another_is_subscribed_answer_for_no_other)
{
    int slot = cluster_slot_at(node);
    struct wish moved = wish_begin(slot);

    expect_heard(slot + 1);
    int subscriptions = move_unheard(slot);
    struct wish next = wish_begin(slot + 2);
    unsubscribe_what_moved(slot);
    proxy_release(proxy, subscriptions, PROXY_DOWN);
    expect_heard(slot + 3);
    wish_end(&next);
    wish_end(&moved);
    expect_no_reconnect();
}
