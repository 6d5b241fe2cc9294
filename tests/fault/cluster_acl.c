/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A cluster's user who has the rights of docs/cluster.md and no more: locks, waiters, a slot that
 * moves; and nothing is denied. */

#include "support/actor.h"
#include "support/redis_program.h"
#include "support/slot_move.h"
#include "support/topologies.h"

#include <stdio.h>
#include <string.h>

/* The names have braces of their own, so those keys and channels get no others. */
static void user_up(void)
{
    bool has_shards = redis_program_is_7();

    cluster_up();
    for (int i = 0; i < cluster_nodes(cluster); i++) {
        struct redis_server *node = cluster_node(cluster, i);
        redis_do(node, "ACL SETUSER locker on >password resetkeys ~lock:* ~hirelock_queue:lock:* "
                       "resetchannels &redisson_lock__channel:lock:* &hirelock:* "
                       "-@all +evalsha +script|load +hget +hset +hincrby +hrandfield +del +pttl "
                       "+pexpire +time +zadd +zpopmin +zcard +zrem +publish +subscribe "
                       "+unsubscribe +pubsub|numsub +ping +info +role +select +client|setname "
                       "+client|id +client|kill +pexpireat +cluster|slots +cluster|info +asking "
                       "+pubsub|shardnumsub");
        if (has_shards)
            redis_do(node, "ACL SETUSER locker +spublish +ssubscribe +sunsubscribe");
    }
}

static void expect_nothing_denied(void)
{
    for (int i = 0; i < cluster_nodes(cluster); i++)
        check_str(redis_str(cluster_node(cluster, i), "ACL LOG"), "");
}

static void expect_handed_over(hl_client *client, hl_client *other, const char *name)
{
    hl_lock *lock = new_lock(client, name), *others = new_lock(other, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    struct actor *actor = actor_start_acquire(others, ACQUIRE(.wait_ms = -1));
    expect_waiters(other, 1);
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(actor_end(actor));
    expect_ok(actor_release(actor, others, NULL));
    actor_stop(actor);
    free_lock(lock);
    free_lock(others);
}

Test(cluster_acl, has_all_that_locks_need_and_no_more, .init = user_up, .fini = server_down)
{
    const char *url = cluster_url_of(cluster, 0, 3, "locker:password");
    hl_client *client = open_client_at(url, CLIENT(.poll_ms = 30000));
    hl_client *other = open_client_at(url, CLIENT(.poll_ms = 30000));

    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, cluster_name_at(cluster_node(cluster, i), "lock:"));

    const char *name = cluster_name_at(server, "lock:");
    hl_lock *lock = new_lock(client, name);
    struct slot_move move =
        slot_move_begin(cluster, cluster_slot(name, strlen(name)), cluster_node(cluster, 1));
    expect_ok(hl_lock_acquire(lock, ERR)); /* behind ASKING, as the key is not there */
    expect_ok(hl_lock_release(lock, ERR));
    slot_move_end(&move);
    expect_handed_over(client, other, name);
    expect_nothing_denied();
}
