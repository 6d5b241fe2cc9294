/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A cluster of the tests serves its slots, moves them, loses masters, grows and shrinks. */

#include "support/cluster_reshape.h"
#include "support/ear.h"
#include "support/raw_client.h"
#include "support/redis_probe.h"
#include "support/redis_program.h"
#include "support/redis_shards.h"
#include "support/sentinel_view.h"
#include "support/slot_move.h"
#include "support/topologies.h"

/* A key of this name stands at its master; "v" is its value. */
static void expect_kept(const char *name)
{
    check_str(redis_str(cluster_node_of(cluster, name), "GET %s", name), "v");
}

static void put(const char *name)
{
    redis_do(cluster_node_of(cluster, name), "SET %s v", name);
}

ClusterLaw(support_cluster, serves_all_slots_with_three_masters_and_three_replicas)
{
    check_int(cluster_nodes(cluster), 6);
    for (int i = 0; i < cluster_masters(cluster); i++) {
        struct redis_server *master = cluster_node(cluster, i);
        check(cluster_node_at(cluster, CLUSTER_SLOTS * i / 3) == master);
        check(cluster_node_at(cluster, CLUSTER_SLOTS * (i + 1) / 3 - 1) == master);
        check(cluster_replica_of(cluster, master) == cluster_node(cluster, i + 3));
        const char *name = cluster_name_at(master, "stock");
        put(name);
        expect_kept(name);
        check(strncmp(redis_str(cluster_node(cluster, (i + 1) % 3), "GET %s", name), "MOVED ", 6) ==
              0);
    }
}

ClusterLaw(support_cluster, knows_the_slot_of_a_name_as_its_nodes_do)
{
    static const char *const names[] = {"",      "123456789", "stock", "{stock}",
                                        "a{b}c", "a{b}{c}",   "{}ab",  "a{}{b}",
                                        "a{b",   "a}b{c}",    "{{a}}", "hirelock:{n}:m"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check_int(cluster_slot(names[i], strlen(names[i])),
                  redis_int(server, "CLUSTER KEYSLOT %s", names[i]));
    check_int(cluster_slot("123456789", 9), 0x31C3);
    for (int slot = 0; slot < CLUSTER_SLOTS; slot += 1637)
        check_int(redis_int(server, "CLUSTER KEYSLOT %s", cluster_name_in_slot(slot, "stock")),
                  slot);
}

/* Names at all three masters. */
static const char *const apart[] = {"stock", "store", "jar"};

static void stand_for_the_cluster(struct redis_shards *shards)
{
    *shards = (struct redis_shards){.url = cluster_url(cluster), .count = 3};
    for (int i = 0; i < shards->count; i++)
        shards->shard[i] = cluster_node(cluster, i);
    redis_server_stand_for(server, shards);
}

ClusterLaw(support_shards, are_asked_for_the_keys_that_they_have)
{
    struct redis_shards shards;
    stand_for_the_cluster(&shards);
    check_str(redis_server_url(server), cluster_url(cluster));
    for (int i = 0; i < 3; i++) {
        redis_do(server, "SET %s %d", apart[i], i);
        check(redis_shards_of(&shards, apart[i]) == cluster_node(cluster, i));
        check_int(redis_int(server, "EVAL %s 1 %s", "return redis.call('GET', KEYS[1])", apart[i]),
                  i);
    }
    check_int(redis_int(server, "EXISTS stock store jar other"), 3);
    check_int(redis_int(server, "DBSIZE"), 3);
    check_str(redis_str(server, "KEYS *"), "stock store jar");
    check_int(redis_calls(server, "set"), 3);
    check_int(redis_int(server, "DEL stock jar"), 2);
    redis_do(server, "FLUSHALL");
    check_int(redis_int(server, "DBSIZE"), 0);
    check_has(redis_str(server, "CONFIG SET nonsense 1"), "ERR ");
    redis_server_stand_for(server, NULL);
    check_has(redis_str(server, "GET store"), "MOVED ");
}

ClusterLaw(support_shards, get_messages_of_commands_and_of_scripts)
{
    if (!redis_program_knows("enable-debug-command yes"))
        skip("%s has no sharded messages", redis_program());
    struct redis_shards shards;
    stand_for_the_cluster(&shards);
    shards.has_sharded_messages = true;
    for (int i = 0; i < 3; i++) {
        redisContext *ear = ear_open(apart[i]);
        check_int(redis_subscribers(server, apart[i]), 1);
        redis_do(server, "PUBLISH %s one", apart[i]);
        redis_do(server, "EVAL %s 1 %s", "return redis.call('PUBLISH', KEYS[1], 'two')", apart[i]);
        ear_check(ear, apart[i], "one");
        ear_check(ear, apart[i], "two");
        redisFree(ear);
    }
}

ClusterLaw(support_cluster, has_urls_of_all_nodes_and_of_some)
{
    char expected[128];
    int last = redis_server_port(cluster_node(cluster, 5)), first = redis_server_port(server);
    snprintf(expected, sizeof expected, "redis-cluster://127.0.0.1:%d,127.0.0.1:%d", last, first);
    check_str(cluster_url_of(cluster, 5, 2, NULL), expected);
    snprintf(expected, sizeof expected, "redis-cluster://:pw@127.0.0.1:%d", first);
    check_str(cluster_url_of(cluster, 0, 1, "pw"), expected);
    check_has(cluster_url(cluster), cluster_url_of(cluster, 0, 5, NULL));
}

ClusterLaw(support_cluster, replaces_a_master_that_is_killed_and_takes_it_back_as_a_replica)
{
    const char *name = cluster_name_at(server, "stock");
    int slot = cluster_slot_at(server);
    struct redis_server *replica = cluster_replica_of(cluster, server);
    put(name);
    check_int(redis_int(server, "WAIT 1 0"), 1);
    redis_server_kill(server);
    check(cluster_await_master(cluster, slot, server) == replica);
    expect_kept(name);
    redis_server_restart(server);
    cluster_await_whole(cluster);
    check(cluster_replica_of(cluster, replica) == server);
}

ClusterLaw(support_cluster, lets_a_replica_take_over_from_a_living_master_and_back)
{
    int slot = cluster_slot_at(server);
    struct redis_server *replica = cluster_replica_of(cluster, server);
    const char *name = cluster_name_at(server, "stock");
    put(name);
    cluster_start_failover(replica);
    check(cluster_await_master(cluster, slot, server) == replica);
    expect_kept(name);
    cluster_await_whole(cluster);
    cluster_start_failover(server);
    check(cluster_await_master(cluster, slot, replica) == server);
    expect_kept(name);
}

ClusterLaw(support_cluster, moves_a_slot_with_its_keys)
{
    struct redis_server *to = cluster_node(cluster, 1);
    int slot = cluster_slot_at(server);
    for (int i = 0; i < 250; i++) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "stock%d", i);
        redis_do(server, "SET %s v", cluster_name_in_slot(slot, prefix));
    }
    slot_move(cluster, slot, to);
    check(cluster_node_at(cluster, slot) == to);
    check_int(redis_int(to, "CLUSTER COUNTKEYSINSLOT %d", slot), 250);
    expect_kept(cluster_name_in_slot(slot, "stock249"));
    slot_move(cluster, slot, server);
    check(cluster_node_at(cluster, slot) == server);
}

ClusterLaw(support_cluster, holds_a_slot_open_between_two_masters)
{
    struct redis_server *to = cluster_node(cluster, 1);
    int slot = cluster_slot_at(server);
    const char *moved = cluster_name_in_slot(slot, "moved");
    const char *kept = cluster_name_in_slot(slot, "kept");
    redisContext *link = raw_connect(redis_server_port(to));
    char get[64], ask[64];
    put(moved);
    put(kept);
    struct slot_move move = slot_move_begin(cluster, slot, to);
    check(slot_move_key(&move, moved));
    check(!slot_move_key(&move, moved));
    snprintf(ask, sizeof ask, "ASK %d 127.0.0.1:%d", slot, redis_server_port(to));
    check_str(redis_str(server, "GET %s", moved), ask);
    check_str(redis_str(server, "GET %s", kept), "v");
    const char *answer = redis_str(server, "MGET %s %s", kept, moved);
    check(strstr(answer, "TRYAGAIN ") || strstr(answer, "ASK ")); /* of 7; of 6.2 */
    snprintf(get, sizeof get, "GET %s", moved);
    check(strncmp(raw_ask(link, get), "MOVED ", 6) == 0);
    check_str(raw_ask(link, "ASKING"), "OK");
    check_str(raw_ask(link, get), "v");
    check(cluster_node_at(cluster, slot) == server);
    slot_move_end(&move);
    expect_kept(moved);
    expect_kept(kept);
    redisFree(link);
}

ClusterLaw(support_cluster, takes_a_slot_back_that_was_to_be_moved)
{
    const char *name = cluster_name_at(server, "stock");
    struct slot_move move =
        slot_move_begin(cluster, cluster_slot_at(server), cluster_node(cluster, 1));
    check(strncmp(redis_str(server, "GET %s", name), "ASK ", 4) == 0);
    slot_move_undo(&move);
    check_str(redis_str(server, "GET %s", name), "(nil)");
}

ClusterLaw(support_cluster, is_resharded_there_and_back)
{
    struct redis_server *to = cluster_node(cluster, 1);
    const char *name = cluster_name_at(server, "stock");
    put(name);
    struct cluster_reshard reshard = cluster_start_reshard(cluster, server, to, 40);
    cluster_await_reshard(&reshard);
    check(cluster_reshard_is_over(&reshard));
    check(cluster_node_of(cluster, name) == to);
    check_int(cluster_slot_at(server), 40);
    expect_kept(name);
    cluster_reshard(cluster, to, server, 40);
    check(cluster_node_of(cluster, name) == server);
    expect_kept(name);
}

static void masters_up(void)
{
    cluster_up_with(&(struct cluster_options){.without_replicas = true, .password = "secret"});
}

Test(support_cluster, grows_and_shrinks, .init = masters_up, .fini = server_down)
{
    const char *name = cluster_name_at(server, "stock");
    check_int(cluster_nodes(cluster), 3);
    put(name);
    struct redis_server *added = cluster_add_node(cluster, NULL);
    check_int(cluster_slot_at(added), -1);
    struct redis_server *replica = cluster_add_node(cluster, server);
    check(cluster_replica_of(cluster, server) == replica);
    cluster_reshard(cluster, server, added, 3);
    check(cluster_node_of(cluster, name) == added);
    cluster_reshard(cluster, added, server, 3);
    cluster_remove_node(cluster, added);
    cluster_remove_node(cluster, replica);
    check_int(cluster_nodes(cluster), 3);
    check_has(redis_str(server, "CLUSTER INFO"), "cluster_known_nodes:3");
    expect_kept(name);
}

Test(support_cluster, has_a_password, .init = masters_up, .fini = server_down)
{
    redisContext *link = raw_connect(redis_server_port(server));
    check_str(raw_ask(link, "CLUSTER SLOTS"), "NOAUTH Authentication required.");
    check_str(raw_ask(link, "AUTH secret"), "OK");
    redisFree(link);
}

ClusterLaw(support_cluster, is_joined_by_its_word_and_left_alone_by_that_who_leaves)
{
    char word[CLUSTER_WORD];
    cluster_word(cluster, word);
    struct redis_cluster *joined = cluster_join(word);
    check_int(cluster_nodes(joined), cluster_nodes(cluster));
    check_str(cluster_url(joined), cluster_url(cluster));
    struct redis_server *node = cluster_node_of(joined, "stock");
    check_int(redis_server_pid(node), redis_server_pid(cluster_node_of(cluster, "stock")));
    redis_do(node, "SET stock any");
    cluster_stop(joined);
    check_str(redis_str(cluster_node_of(cluster, "stock"), "GET stock"), "any");
}
