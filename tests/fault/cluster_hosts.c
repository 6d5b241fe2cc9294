/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Clusters whose nodes have an address each and one port, as on hosts of their own: so the host
 * that was asked is the wrong one for all others. Under load: at each master a lock is held and
 * waited for, and another goes round among threads of two clients. */

#include "cluster_kit.h"

#include "support/cluster_reshape.h"
#include "support/redis_program.h"

#include <stdatomic.h>
#include <unistd.h>

enum { MASTERS = 3, WORKERS = 2 };

/* At one master. */
struct spot {
    char name[64], held_name[64];
    hl_lock *held;
    struct actor *waiter;
    hl_lock *wanted;
    struct actor *worker[WORKERS];
    atomic_int inside, served;
    atomic_bool may_overlap; /* its master fails over, and its replica may lack the last grant */
};

static struct spot spots[MASTERS];
static atomic_bool is_over;
static struct events events;
static hl_client *client, *other;

static void work(void *arg)
{
    struct spot *spot = arg;
    static atomic_uint turn;
    hl_lock *lock = new_lock(atomic_fetch_add(&turn, 1) % 2 ? client : other, spot->name);

    while (!atomic_load(&is_over)) {
        if (hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 200), NULL) != HL_OK)
            continue;
        int others = atomic_fetch_add(&spot->inside, 1);
        check(others == 0 || atomic_load(&spot->may_overlap));
        atomic_fetch_sub(&spot->inside, 1);
        if (hl_lock_release(lock, NULL) == HL_OK)
            atomic_fetch_add(&spot->served, 1);
    }
}

static bool is_served(void *served_before)
{
    const int *before = served_before;

    return atomic_load(&spots[before[0]].served) >= before[1] + 4;
}

static void expect_served(int master)
{
    int before[] = {master, atomic_load(&spots[master].served)};

    check_msg(wait_until(is_served, before, 60000), "the threads at master %d are not served",
              master);
}

static void load_begin_at(int master)
{
    struct spot *spot = &spots[master];

    snprintf(spot->name, sizeof spot->name, "%s", name_at(master, "work"));
    snprintf(spot->held_name, sizeof spot->held_name, "%s", name_at(master, "held"));
    spot->held = new_lock(client, spot->held_name);
    spot->wanted = new_lock(other, spot->held_name);
    expect_ok(hl_lock_acquire(spot->held, ERR));
    spot->waiter = actor_start_acquire(spot->wanted, ACQUIRE(.wait_ms = -1));
    for (int i = 0; i < WORKERS; i++) {
        spot->worker[i] = actor_start();
        actor_begin(spot->worker[i], work, spot);
    }
}

static void load_begin(void)
{
    client = open_client_at(cluster_url(cluster), cluster_client(&events));
    other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    for (int i = 0; i < MASTERS; i++)
        load_begin_at(i);
    expect_waiters(other, MASTERS);
    for (int i = 0; i < MASTERS; i++)
        expect_served(i);
}

/* But at this master (-1: at none), what was held is held, and the waiter gets it. */
static void load_end(int but)
{
    atomic_store(&is_over, true);
    for (int i = 0; i < MASTERS; i++)
        for (int n = 0; n < WORKERS; n++)
            actor_await(spots[i].worker[n]);
    for (int i = 0; i < MASTERS; i++) {
        if (i == but)
            continue;
        check_msg(hl_lock_is_held(spots[i].held, NULL), "the hold at master %d is lost", i);
        expect_ok(hl_lock_release(spots[i].held, ERR));
        expect_ok(actor_end(spots[i].waiter));
        expect_ok(actor_release(spots[i].waiter, spots[i].wanted, NULL));
    }
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

static void cut_all(void)
{
    for (int i = 0; i < cluster_nodes(cluster); i++)
        if (redis_server_is_up(cluster_node(cluster, i)))
            redis_kill_clients(cluster_node(cluster, i), REDIS_NORMAL);
}

static void hosts_up(void)
{
    cluster_up_with(&(struct cluster_options){.spread = true, .without_replicas = true});
}

static void partial_up(void)
{
    cluster_up_with(&(struct cluster_options){
        .spread = true, .without_replicas = true, .config = "cluster-require-full-coverage no"});
}

static void disk_up(void)
{
    cluster_up_with(&(struct cluster_options){
        .spread = true, .without_replicas = true, .config = "appendonly yes\nappendfsync always"});
}

static void check_where(const hl_node *node, void *ret_slots)
{
    check_msg(node->slots > 5000 && node->slots < 6000, "%s has %u slots", node->address,
              (unsigned)node->slots);
    *(int *)ret_slots += 1;
}

static void expect_each_at_its_host(void)
{
    int nodes = 0;

    check_int(hl_client_nodes(client, check_where, &nodes), MASTERS);
    check_int(stats_of(client).master_changes, 0);
}

static bool says_no_name(struct redis_server *node)
{
    redisReply *reply = redis_command(node, "CLUSTER SLOTS");
    bool says = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                strcmp(reply->element[0]->element[2]->element[0]->str, "?") == 0;

    freeReplyObject(reply);
    return says;
}

/* First they shall be announced by name, and have none; then each gets one (its number, as there is
 * no name server); one after the other, as one changes a cluster that works. */
Test(cluster_hosts, that_get_names_are_the_nodes_that_they_were, .init = hosts_up,
     .fini = server_down)
{
    if (!redis_program_knows("cluster-preferred-endpoint-type hostname"))
        skip("nodes have no names");
    load_begin();
    for (int i = 0; i < MASTERS; i++) {
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-preferred-endpoint-type hostname");
        check(says_no_name(cluster_node(cluster, i)));
        cut_all();
        for (int n = 0; n < MASTERS; n++)
            expect_served(n);
    }
    expect_each_at_its_host();
    for (int i = 0; i < MASTERS; i++) {
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-announce-hostname %s",
                 redis_server_host(cluster_node(cluster, i)));
        cut_all();
        for (int n = 0; n < MASTERS; n++)
            expect_served(n);
    }
    expect_each_at_its_host();
    load_end(-1);
}

/* MOVED then says "?:port", and the map has the number. */
Test(cluster_hosts, without_names_are_found_when_slots_move, .init = hosts_up, .fini = server_down)
{
    if (!redis_program_knows("cluster-preferred-endpoint-type hostname"))
        skip("nodes have no names");
    for (int i = 0; i < MASTERS; i++)
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-preferred-endpoint-type hostname");
    load_begin();
    for (int i = 0; i < MASTERS; i++) {
        int slot = slot_of(spots[i].name);
        slot_move(cluster, slot, cluster_node(cluster, (i + 1) % MASTERS));
        expect_served(i);
        slot_move(cluster, slot, cluster_node(cluster, i));
        expect_served(i);
    }
    load_end(-1);
}

static bool has_no_address(void *node)
{
    return strstr(redis_str(node, "CLUSTER NODES"), "noaddr") != NULL;
}

static void start_empty(struct redis_server *killed)
{
    char path[128];

    redis_server_wipe(killed);
    snprintf(path, sizeof path, "%s/nodes.conf", redis_server_dir(killed));
    check_int(unlink(path), 0);
    redis_server_restart(killed);
}

/* A volume was lost: another node is at its address, and the old one has none until an operator
 * says CLUSTER FORGET. */
Test(cluster_hosts, of_which_one_is_started_empty_lose_its_slots_only, .init = partial_up,
     .fini = server_down)
{
    struct redis_server *lost = cluster_node(cluster, 1);
    hl_error err = HL_ERROR_INIT;

    load_begin();
    redis_server_kill(lost);
    start_empty(lost);
    for (int i = 0; i < MASTERS; i += 2) {
        redis_do(cluster_node(cluster, i), "CONFIG SET cluster-node-timeout %d",
                 (int)slow_ms(2000));
        check(wait_until(has_no_address, cluster_node(cluster, i), 60000));
    }
    cut_all();
    for (int i = 0; i < MASTERS; i += 2)
        expect_served(i);
    hl_client *late = open_client_at(cluster_url_of(cluster, 0, 1, NULL), NULL);
    expect_ok(hl_lock_try_acquire(new_lock(late, name_at(2, "late")), ERR));
    expect_outcome(hl_lock_try_acquire(new_lock(late, spots[1].name), &err), HL_ECONN);
    check_has(err.text, "is no address");
    load_end(1);
    close_client(other); /* whose waiter at the lost node waits on */
}

static void five_up(void)
{
    cluster_up_with(&(struct cluster_options){.spread = true,
                                              .masters = 5,
                                              .without_replicas = true,
                                              .config = "cluster-require-full-coverage no"});
}

static bool is_promoted(void *replica)
{
    return redis_is_master(replica) &&
           strstr(redis_str(replica, "CLUSTER INFO"), "cluster_state:ok");
}

/* The map has an entry without an address when a replica takes the place of a master. */
Test(cluster_hosts, of_which_one_is_started_empty_follow_a_failover, .init = five_up,
     .fini = server_down)
{
    struct redis_server *old = cluster_node(cluster, 0), *lost = cluster_node(cluster, 1);
    struct redis_server *replica = cluster_add_node(cluster, old);

    load_begin();
    check(redis_wait_replicas(old, 1, 30000));
    redis_server_kill(lost);
    start_empty(lost);
    check(wait_until(has_no_address, cluster_node(cluster, 2), 60000));
    check(wait_until(has_no_address, replica, 60000));
    atomic_store(&spots[0].may_overlap, true);
    redis_server_kill(old);
    cluster_notice_deaths(cluster);
    check(wait_until(is_promoted, replica, 60000));
    for (int i = 0; i < MASTERS; i += 2)
        expect_served(i);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    load_end(1);
    close_client(other); /* whose waiter at the lost node waits on */
}

static bool is_down(void *node)
{
    return strstr(redis_str(node, "CLUSTER INFO"), "cluster_state:fail") != NULL;
}

/* Nobody serves any slot while one has no node; then all go on, and what was held is held. */
Test(cluster_hosts, that_want_all_slots_go_on_when_the_last_one_is_back, .init = disk_up,
     .fini = server_down)
{
    load_begin();
    redis_server_kill(cluster_node(cluster, 1));
    cluster_notice_deaths(cluster);
    check(wait_until(is_down, cluster_node(cluster, 0), 60000));
    check(wait_until(is_down, cluster_node(cluster, 2), 60000));
    redis_server_restart(cluster_node(cluster, 1));
    cluster_await_whole(cluster);
    for (int i = 0; i < MASTERS; i++)
        expect_served(i);
    load_end(-1);
}
