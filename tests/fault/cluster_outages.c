/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Outages of more than one node of a cluster: every node in turn, half of them at once, and all but
 * a minority. */

#include "cluster_kit.h"

#include "support/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cluster_up_on_disk(void)
{
    cluster_up_with(&(struct cluster_options){.config = "appendonly yes\nappendfsync always"});
}

static void expect_all_held(hl_client *client, hl_client *other, hl_lock *const *lock)
{
    hl_error err = HL_ERROR_INIT;

    wait_stat(other, nodes_now, cluster_masters(cluster));
    for (int i = 0; i < cluster_masters(cluster); i++) {
        const char *name = hl_lock_name(lock[i], NULL);
        server = cluster_node_of(cluster, name);
        check_msg(hl_lock_is_held(lock[i], NULL), "%s", name);
        expect_held_by(client, lock[i], 1);
        hl_lock *others = new_lock(other, name);
        expect_outcome(hl_lock_try_acquire(others, &err), HL_EBUSY);
        free_lock(others);
    }
}

/* Masters and replicas. A master that is away for too long is replaced, which is all the same to
 * its locks, since its replica has them. */
Test(cluster_outage, of_every_node_in_turn_loses_no_hold, .init = cluster_up_on_disk,
     .fini = server_down)
{
    static struct events events;
    hl_client *client = open_client_at(cluster_url(cluster), cluster_client(&events));
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    hl_lock *lock[3];

    for (int i = 0; i < 3; i++) {
        lock[i] = new_lock(client, name_at(i, "stock"));
        expect_ok(hl_lock_acquire(lock[i], ERR));
        check(redis_wait_replicas(cluster_node(cluster, i), 1, 30000));
    }
    for (int i = 0; i < cluster_nodes(cluster); i++) {
        redis_server_restart(cluster_node(cluster, i));
        cluster_await_whole(cluster);
        expect_all_held(client, other, lock);
    }
    for (int i = 0; i < 3; i++)
        expect_ok(hl_lock_release(lock[i], ERR));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    for (int i = 0; i < 3; i++)
        expect_handed_over(client, other, hl_lock_name(lock[i], NULL));
}

/* Each election has an epoch of its own. */
static int64_t elections(void)
{
    const char *info = redis_str(cluster_node(cluster, 1), "CLUSTER INFO");
    const char *epoch = strstr(info, "cluster_current_epoch:");
    check(epoch);
    return strtoll(epoch + strlen("cluster_current_epoch:"), NULL, 10);
}

/* One master and the replicas of the two others: all slots still have a node. A node that gets no
 * processor for long is replaced, too. */
ClusterLaw(cluster_outage, of_half_the_nodes_is_one_failover)
{
    static struct events events;
    hl_client_options options = *cluster_client(&events);
    options.watchdog_timeout_ms = slow_ms(120000); /* longer than any failover */
    hl_client *client = open_client_at(cluster_url(cluster), &options);
    hl_client *other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    hl_lock *lock[3];
    const int frozen[] = {0, 4, 5};

    for (int i = 0; i < 3; i++) {
        lock[i] = new_lock(client, name_at(i, "stock"));
        expect_ok(hl_lock_acquire(lock[i], ERR));
        check(redis_wait_replicas(cluster_node(cluster, i), 1, 30000));
    }
    int64_t before = elections();
    for (int i = 0; i < 3; i++)
        redis_server_freeze(cluster_node(cluster, frozen[i]));
    cluster_await_master(cluster, slot_of(hl_lock_name(lock[0], NULL)), cluster_node(cluster, 0));
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    expect_all_held(client, other, lock);
    for (int i = 0; i < 3; i++)
        redis_server_thaw(cluster_node(cluster, frozen[i]));
    cluster_await_whole(cluster);
    expect_all_held(client, other, lock);
    for (int i = 0; i < 3; i++)
        expect_ok(hl_lock_release(lock[i], ERR));
    check_msg(events_told(&events, HL_EVENT_MASTER_CHANGED) <= elections() - before,
              "%d changes, %lld elections", (int)events_told(&events, HL_EVENT_MASTER_CHANGED),
              (long long)(elections() - before));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

static bool has_failed(void *node)
{
    return strstr(redis_str(node, "CLUSTER INFO"), "cluster_state:fail") != NULL;
}

/* The client reaches the minority only: one master, which answers and serves nothing. */
ClusterLaw(cluster_minority, ends_a_hold_with_its_lease_and_says_why)
{
    static struct recorder story = RECORDER_INIT;
    hl_client_options options = *cluster_client(NULL);
    struct redis_server *minority = cluster_node(cluster, 0);
    hl_error err = HL_ERROR_INIT;

    options.watchdog_timeout_ms = slow_ms(3000);
    options.on_event = record_event;
    options.arg = &story;
    hl_client *client = open_client_at(cluster_url(cluster), &options);
    hl_lock *lock = new_lock(client, name_at(0, "stock"));
    hl_lock *free_one = new_lock(client, name_at(0, "free"));
    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 1; i < cluster_nodes(cluster); i++)
        if (i != 3)
            redis_server_freeze(cluster_node(cluster, i));
    cluster_notice_deaths(cluster);
    check(wait_until(has_failed, minority, 60000));
    check(recorder_wait_says(&story, "LOST"));
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_validity_ms(lock, NULL), 0);
    expect_outcome(hl_lock_try_acquire(free_one, &err), HL_ESERVER);
    check_has(err.text, "CLUSTERDOWN");
    expect_outcome(hl_lock_acquire_with(free_one, ACQUIRE(.wait_ms = slow_ms(1000)), &err),
                   HL_ESERVER);
    check_has(err.text, "CLUSTERDOWN");
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    for (int i = 1; i < cluster_nodes(cluster); i++)
        if (i != 3)
            redis_server_thaw(cluster_node(cluster, i));
    cluster_await_whole(cluster);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = -1), ERR));
    server = cluster_node_of(cluster, hl_lock_name(lock, NULL));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
}

/* --- what the log tells --- */

static void cluster_up_with_holes(void)
{
    cluster_up_with(&(struct cluster_options){
        .config = "appendonly yes\nappendfsync always\ncluster-require-full-coverage no",
        .without_replicas = true});
}

static hl_client *open_logged(struct recorder *lines)
{
    return open_client_at(cluster_url(cluster),
                          CLIENT(.outage_timeout_ms = slow_ms(60000), .on_log = record_log,
                                 .log_level = HL_LOG_WARN, .arg = lines));
}

static const char *line_of(const char *words, const struct redis_server *node, const char *rest)
{
    static char lines[8][128];
    static unsigned turn;
    char *line = lines[turn++ % 8];

    snprintf(line, sizeof lines[0], "%s127.0.0.1:%d%s", words, redis_server_port(node), rest);
    return line;
}

/* "no connection: connect 127.0.0.1:6379: connection refused", or another reason while the node
 * dies. */
static int count_failures(struct recorder *lines, const struct redis_server *node)
{
    int count = 0;

    for (int i = 0; i < recorder_count(lines); i++) {
        const char *said = recorder_entry(lines, i).said;
        count += strstr(said, "no connection: ") && strstr(said, line_of("", node, ": "));
    }
    return count;
}

struct failures {
    struct recorder *lines;
    const struct redis_server *node;
};

static bool has_failures(void *arg)
{
    const struct failures *wanted = arg;

    return count_failures(wanted->lines, wanted->node) > 0;
}

static void expect_lost(struct recorder *lines, const struct redis_server *node)
{
    check(recorder_wait_says(lines, line_of("connection lost: ", node, ": ")));
    check(wait_until(has_failures, &(struct failures){lines, node}, 30000));
}

/* Two are down, and come back one after the other, while the third loses a connection. */
Test(cluster_outage, of_one_node_is_told_whatever_becomes_of_the_others,
     .init = cluster_up_with_holes, .fini = server_down)
{
    static struct recorder lines = RECORDER_INIT;
    struct redis_server *first = cluster_node(cluster, 0), *second = cluster_node(cluster, 1);
    struct redis_server *third = cluster_node(cluster, 2);
    hl_client *client = open_logged(&lines);
    hl_lock *lock = new_lock(client, name_at(0, "stock"));

    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(client, nodes_now, 3);
    redis_server_kill(first);
    expect_lost(&lines, first);
    redis_server_kill(second);
    expect_lost(&lines, second);
    redis_kill_clients(third, REDIS_NORMAL);
    check(recorder_wait_says(&lines, line_of("connected again to ", third, " after ")));
    redis_server_restart(second);
    check(recorder_wait_says(&lines, line_of("connected again to ", second, " after ")));
    check(!recorder_says(&lines, line_of("connected again to ", first, " after ")));
    redis_server_restart(first);
    check(recorder_wait_says(&lines, line_of("connected again to ", first, " after ")));
    check_int(count_failures(&lines, first), 1);
    check_int(count_failures(&lines, second), 1);
    cluster_await_whole(cluster);
    server = first;
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
}

ClusterLaw(cluster_failover, is_told_in_order)
{
    static struct recorder lines = RECORDER_INIT;
    struct redis_server *old = cluster_node(cluster, 0);
    const char *name = name_at(0, "stock");

    wait_stat(open_logged(&lines), nodes_now, 3);
    redis_server_kill(old);
    server = cluster_await_master(cluster, slot_of(name), old);
    check(recorder_wait_says(&lines, line_of("connected again to ", server, " after ")));
    const char *const order[] = {line_of("connection lost: ", old, ": "),
                                 line_of("no connection: connect ", old, ": "),
                                 line_of("the master is ", server, ", no longer "),
                                 line_of("connected again to ", server, " after ")};
    const char *at = lines.text;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const char *next = strstr(at, order[i]);
        check_msg(next != NULL, "no '%s' behind it: %s", order[i], at);
        at = next;
    }
}
