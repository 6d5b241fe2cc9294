/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Commands of the caller's own in a cluster whose slots move: they follow their key, and those for
 * one node go to no other. */

#include "support/cluster_slot.h"
#include "support/command.h"
#include "support/slot_move.h"
#include "support/topologies.h"

#include <stdio.h>

enum { SLOT = 1000 };

static hl_client *client;
static const char *key;
static struct redis_server *to; /* another master than that of the slot */

static void begin(void)
{
    client = open_client_at(cluster_url(cluster), CLIENT(.outage_timeout_ms = slow_ms(60000)));
    key = cluster_name_in_slot(SLOT, "stock");
    struct redis_server *from = cluster_node_of(cluster, key);
    to = cluster_node(cluster, 0) == from ? cluster_node(cluster, 1) : cluster_node(cluster, 0);
    reply_of(client, COMMAND(WORDS("SET", key, "5"), .key = key));
}

static void expect_five(void)
{
    check_str(reply_of(client, COMMAND(WORDS("GET", key), .key = key))->text, "5");
}

ClusterLaw(command_cluster, follows_a_slot_that_has_moved)
{
    begin();
    slot_move(cluster, SLOT, to);
    expect_five();
    expect_five();
}

ClusterLaw(command_cluster, is_answered_while_its_slot_moves)
{
    begin();
    struct slot_move move = slot_move_begin(cluster, SLOT, to);

    expect_five();
    check(slot_move_key(&move, key));
    expect_five();
    slot_move_end(&move);
    expect_five();
}

ClusterLaw(command_cluster, for_one_node_goes_to_no_other)
{
    hl_reply *reply = NULL;
    hl_error err = HL_ERROR_INIT;
    char where[64];

    begin();
    struct slot_move move = slot_move_begin(cluster, SLOT, to);
    snprintf(where, sizeof where, "127.0.0.1:%d", redis_server_port(move.from));
    const hl_command *get = COMMAND(WORDS("GET", key), .node = where);
    check_str(reply_of(client, get)->text, "5");
    check(slot_move_key(&move, key));
    expect_outcome(hl_client_command(client, get, &reply, &err), HL_ESERVER);
    check_has(err.text, "ASK 1000");
    slot_move_end(&move);
    expect_outcome(hl_client_command(client, get, &reply, &err), HL_ESERVER);
    check_has(err.text, "MOVED 1000");
    check(reply == NULL);
}

struct count {
    unsigned nodes, slots;
};

static void count_node(const hl_node *node, void *arg)
{
    struct count *count = arg;

    count->nodes++;
    count->slots += node->slots;
}

static struct count count_of(void)
{
    struct count count = {0};

    check(hl_client_nodes(client, count_node, &count) > 0);
    return count;
}

/* Locks find their nodes by the map, which a script of the program may not write. */
ClusterLaw(command_cluster, whose_script_says_moved_moves_no_slot)
{
    hl_reply *reply = NULL;
    hl_lock *lock = NULL;

    begin();
    struct count before = count_of();
    lock = new_lock(client, cluster_name_in_slot(SLOT, "lock"));
    expect_outcome(hl_client_command(client,
                                     COMMAND(WORDS("EVAL", "return redis.error_reply(ARGV[1])", "1",
                                                   key, "MOVED 1000 203.0.113.1:1"),
                                             .key = key, .timeout_ms = slow_ms(300)),
                                     &reply, NULL),
                   HL_ESERVER);
    check_int(count_of().nodes, before.nodes);
    check_int(count_of().slots, before.slots);
    uint64_t redirects = stats_of(client).redirects;
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    check_int(stats_of(client).redirects, redirects);
}
