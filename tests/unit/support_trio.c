/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Sentinels of the tests elect a master, restart, are replaced and become stale. */

#include "support/raw_client.h"
#include "support/redis_probe.h"
#include "support/topologies.h"

TrioLaw(support_trio, has_a_master_with_a_replica_that_all_sentinels_name)
{
    struct redis_server *master = trio_master(trio);
    check(master == trio_node(trio, 0));
    for (int i = 0; i < TRIO_SENTINELS; i++) {
        check(trio_named_by(trio, i) == master);
        check(sentinel_has_quorum(trio_sentinel(trio, i)));
    }
    redis_do(master, "SET k v");
    check_int(redis_int(master, "WAIT 1 0"), 1);
    check_str(redis_str(trio_replica(trio), "GET k"), "v");
}

TrioLaw(support_trio, has_urls_of_all_sentinels_and_of_some)
{
    int ports[TRIO_SENTINELS];
    char expected[128];
    for (int i = 0; i < TRIO_SENTINELS; i++)
        ports[i] = redis_server_port(trio_sentinel(trio, i));
    snprintf(expected, sizeof expected,
             "redis-sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster", ports[0], ports[1],
             ports[2]);
    check_str(trio_url(trio), expected);
    snprintf(expected, sizeof expected, "redis-sentinel://:pw@127.0.0.1:%d,127.0.0.1:%d/mymaster",
             ports[2], ports[0]);
    check_str(trio_url_of(trio, 2, 2, "pw"), expected);
    snprintf(expected, sizeof expected, "redis-sentinel://me:pw@127.0.0.1:%d/mymaster", ports[1]);
    check_str(trio_url_of(trio, 1, 1, "me:pw"), expected);
}

struct replication {
    struct redis_server *replica, *master;
};

static bool is_linked(void *replication)
{
    struct replication *pair = replication;

    return redis_replicates(pair->replica, redis_server_port(pair->master));
}

/* Soon: the link of a node that was demoted a moment ago may be made anew once more. */
static void expect_replicates(struct redis_server *replica, struct redis_server *master)
{
    struct replication pair = {replica, master};

    check(wait_until(is_linked, &pair, 60000));
}

static void two_replicas_up(void)
{
    trio_up_with(&(struct trio_options){.replicas = 2});
}

Test(support_trio, elects_a_replica_when_the_master_is_killed, .init = two_replicas_up,
     .fini = server_down)
{
    struct redis_server *old = trio_master(trio);
    redis_do(old, "SET k v");
    check_int(redis_int(old, "WAIT 2 0"), 2);
    redis_server_kill(old);
    struct redis_server *master = trio_await_switch(trio, old);
    check(master != old);
    check_str(redis_str(master, "GET k"), "v");
    trio_await_whole(trio);
    redis_server_restart(old);
    trio_await_whole(trio);
    expect_replicates(old, master);
    check_str(redis_str(old, "GET k"), "v");
}

TrioLaw(support_trio, elects_a_replica_when_the_master_is_frozen_and_demotes_it_when_thawed)
{
    struct redis_server *old = trio_master(trio);
    redis_server_freeze(old);
    struct redis_server *master = trio_await_switch(trio, old);
    redis_server_thaw(old);
    trio_await_whole(trio);
    expect_replicates(old, master);
}

TrioLaw(support_trio, fails_over_as_it_is_told_and_back)
{
    struct redis_server *first = trio_master(trio);
    trio_start_failover(trio);
    struct redis_server *second = trio_await_switch(trio, first);
    check(second == trio_node(trio, 1));
    trio_await_whole(trio);
    trio_start_failover(trio);
    check(trio_await_switch(trio, second) == first);
}

static void unhurried_up(void)
{
    trio_up_with(&(struct trio_options){.unhurried = true});
}

Test(support_trio, leaves_the_old_master_writable_for_a_while_when_unhurried, .init = unhurried_up,
     .fini = server_down)
{
    trio_start_failover(trio);
    struct redis_server *master = trio_await_switch(trio, server);
    redis_do(server, "SET k old");
    redis_do(master, "SET k new");
    check(redis_is_master(server) && redis_is_master(master));
}

TrioLaw(support_trio, keeps_its_master_while_sentinels_die_and_restart)
{
    struct redis_server *first = trio_master(trio);
    redis_server_kill(trio_sentinel(trio, 0));
    trio_start_failover(trio);
    struct redis_server *second = trio_await_switch(trio, first);
    trio_restart_sentinel(trio, 0);
    trio_await_whole(trio);
    check(trio_named_by(trio, 0) == second);
    redis_server_freeze(trio_sentinel(trio, 1));
    check(trio_master(trio) == second);
    redis_server_thaw(trio_sentinel(trio, 1));
    trio_await_whole(trio);
}

struct named {
    int sentinel;
    const struct redis_server *node;
};

static bool named_is_another(void *arg)
{
    const struct named *named = arg;
    return trio_named_by(trio, named->sentinel) != named->node;
}

TrioLaw(support_trio, has_a_stale_sentinel_that_names_the_old_master_until_it_hears)
{
    struct redis_server *old = trio_master(trio);
    struct named named = {1, old};
    trio_begin_stale(trio, 1);
    redis_server_kill(old);
    struct redis_server *master = trio_await_switch(trio, old);
    redis_server_restart(old);
    trio_await_whole(trio);
    redis_server_thaw(trio_sentinel(trio, 1));
    check(!wait_until(named_is_another, &named, 900));
    expect_replicates(old, master);
    check(trio_master(trio) == master);
    trio_end_stale(trio, 1);
    trio_await_whole(trio);
    check(trio_named_by(trio, 1) == master);
}

TrioLaw(support_trio, has_frozen_sentinels_that_hear_of_a_failover_when_thawed)
{
    struct redis_server *old = trio_master(trio);
    struct named named = {2, old};
    redis_server_freeze(trio_sentinel(trio, 2));
    redis_server_kill(old);
    struct redis_server *master = trio_await_switch(trio, old);
    redis_server_thaw(trio_sentinel(trio, 2));
    check(wait_until(named_is_another, &named, 5000));
    check(trio_master(trio) == master);
}

TrioLaw(support_trio, can_have_all_its_sentinels_replaced)
{
    struct redis_server *old = trio_master(trio);
    int first_ports[TRIO_SENTINELS];
    for (int i = 0; i < TRIO_SENTINELS; i++)
        first_ports[i] = redis_server_port(trio_sentinel(trio, i));
    for (int i = 0; i < TRIO_SENTINELS; i++)
        trio_replace_sentinel(trio, i);
    for (int i = 0; i < TRIO_SENTINELS; i++) {
        check(redis_server_port(trio_sentinel(trio, i)) != first_ports[i]);
        check_int(sentinel_others(trio_sentinel(trio, i)), 2);
    }
    redis_server_kill(old);
    trio_await_switch(trio, old);
}

static void passwords_up(void)
{
    trio_up_with(&(struct trio_options){.password = "secret", .sentinel_password = "watcher"});
}

Test(support_trio, has_passwords_for_nodes_and_for_sentinels, .init = passwords_up,
     .fini = server_down)
{
    struct redis_server *old = trio_master(trio);
    redisContext *node = raw_connect(redis_server_port(old));
    redisContext *sentinel = raw_connect(redis_server_port(trio_sentinel(trio, 0)));
    check_str(raw_ask(node, "GET k"), "NOAUTH Authentication required.");
    check_str(raw_ask(node, "AUTH secret"), "OK");
    check_str(raw_ask(sentinel, "SENTINEL MASTERS"), "NOAUTH Authentication required.");
    check_str(raw_ask(sentinel, "AUTH watcher"), "OK");
    redisFree(node);
    redisFree(sentinel);
    redis_server_kill(old);
    trio_await_switch(trio, old);
    redis_server_restart(old);
    trio_restart_sentinel(trio, 0);
    trio_await_whole(trio);
}

TrioLaw(support_trio, is_stopped_behind_the_clients_of_its_law)
{
    hl_client *client = open_client(NULL);
    check(server == trio_master(trio));
    expect_ok(hl_lock_acquire(new_lock(client, "stock"), ERR));
    check(redis_wait_int(trio_replica(trio), 1, 5000, "EXISTS stock"));
}

TrioLaw(support_trio, is_joined_by_its_word_and_left_alone_by_that_who_leaves)
{
    char word[TRIO_WORD];
    trio_word(trio, word);
    struct trio *joined = trio_join(word);
    check_str(trio_url(joined), trio_url(trio));
    check_str(redis_server_url(trio_master(joined)), redis_server_url(server));
    redis_do(trio_master(joined), "SET stock any");
    trio_stop(joined);
    check_str(redis_str(trio_master(trio), "GET stock"), "any");
}
