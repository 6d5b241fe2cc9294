/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The ways in which a master ends. Where a replica takes its place, the replica is cut off before:
 * the master refuses to be followed, so that it cannot catch up. Where the server starts again, it
 * has what it had at the cut.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scene.h"
#include "support/cluster_slot.h"
#include "support/redis_cluster.h"
#include "support/redis_link.h"
#include "support/redis_probe.h"
#include "support/sentinel_trio.h"
#include "support/test.h"

enum { CLUSTER_SLOT = 0, CUT_PATIENCE_MS = 60000 };

/* Of the one scene of this process. */
static struct trio *trio;
static struct redis_cluster *cluster;
static struct redis_server *old;  /* the master, or the one that failed last */
static struct redis_server *next; /* in its place; NULL before the first round */

static bool old_does(int64_t least, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redis_link_command(redis_server_link(old), format, args);
    va_end(args);
    bool does = reply && (reply->type == REDIS_REPLY_STATUS ||
                          (reply->type == REDIS_REPLY_INTEGER && reply->integer >= least));
    freeReplyObject(reply);
    return does;
}

/* What a replica has of this connection's, it has of everybody's before. */
static bool old_stops_replicating(const struct scene *scene)
{
    return old_does(0, "SET cut%s any", scene->tag) && old_does(1, "WAIT 1 5000") &&
           old_does(0, "ACL SETUSER default -psync -sync") &&
           old_does(1, "CLIENT KILL TYPE replica");
}

static void old_replicates_again(void)
{
    redis_do(old, "ACL SETUSER default +psync +sync");
}

static void old_is_killed(struct scene *scene)
{
    scene->unasked += !redis_is_master(old);
    redis_server_kill(old);
    scene_old_master_ended(scene);
}

static void old_is(struct scene *scene, struct redis_server *master)
{
    scene->unasked += next && master != next;
    old = next = master;
}

static void scene_begin(struct scene *scene, struct redis_server *master)
{
    old_is(scene, master);
    snprintf(scene->histories, sizeof scene->histories, "%s", redis_server_dir(master));
}

static void sentinel_start(struct scene *scene)
{
    trio = trio_start(&(struct trio_options){.down_after_ms = 1500});
    scene_begin(scene, trio_node(trio, 0));
    for (int i = 0; i < SCENE_PROCESSES; i++)
        scene_at(scene, i, trio_url_of(trio, i, TRIO_SENTINELS, NULL));
}

/* The node that was killed starts as a replica, as it would if it had its configuration anew. */
static void sentinel_settle(struct scene *scene)
{
    struct redis_server *master = trio_master(trio);

    if (!redis_server_is_up(old)) {
        redis_server_restart(old);
        redis_do(old, "REPLICAOF 127.0.0.1 %d", redis_server_port(master));
    }
    old_replicates_again();
    trio_await_whole(trio);
    old_is(scene, trio_master(trio));
}

static void sentinel_fail(struct scene *scene)
{
    old_is_killed(scene);
    next = trio_await_switch(trio, old);
}

static void sentinel_stop(void)
{
    trio_stop(trio);
}

const struct ending sentinel_kill = {.title = "Sentinel, SIGKILL",
                                     .lease_ms = 4500,
                                     .start = sentinel_start,
                                     .settle = sentinel_settle,
                                     .cut = old_stops_replicating,
                                     .fail = sentinel_fail,
                                     .stop = sentinel_stop};

static void cluster_begin(struct scene *scene)
{
    cluster = cluster_start(NULL);
    scene_begin(scene, cluster_node_at(cluster, CLUSTER_SLOT));
    for (int i = 0; i < SCENE_PROCESSES; i++)
        scene_at(scene, i, cluster_url_of(cluster, i, cluster_nodes(cluster), NULL));
    snprintf(scene->tag, sizeof scene->tag, "%s", cluster_name_in_slot(CLUSTER_SLOT, ""));
}

static void cluster_settle(struct scene *scene)
{
    if (!redis_server_is_up(old))
        redis_server_restart(old);
    old_replicates_again();
    cluster_await_whole(cluster);
    old_is(scene, cluster_node_at(cluster, CLUSTER_SLOT));
}

static void cluster_fail(struct scene *scene)
{
    old_is_killed(scene);
    next = cluster_await_master(cluster, CLUSTER_SLOT, old);
}

static bool old_is_demoted(void *arg)
{
    (void)arg;
    return !redis_is_master(old);
}

static void cluster_take_over(struct scene *scene)
{
    scene->unasked += !redis_is_master(old);
    redis_do(cluster_replica_of(cluster, old), "CLUSTER FAILOVER TAKEOVER");
    check(wait_until(old_is_demoted, NULL, CUT_PATIENCE_MS));
    scene_old_master_ended(scene);
    next = cluster_await_master(cluster, CLUSTER_SLOT, old);
}

static void cluster_end(void)
{
    cluster_stop(cluster);
}

const struct ending cluster_kill = {.title = "Cluster, SIGKILL",
                                    .lease_ms = 6000,
                                    .start = cluster_begin,
                                    .settle = cluster_settle,
                                    .cut = old_stops_replicating,
                                    .fail = cluster_fail,
                                    .stop = cluster_end};

const struct ending cluster_takeover = {.title = "Cluster, TAKEOVER",
                                        .lease_ms = 3000,
                                        .old_master_ms = 1000,
                                        .start = cluster_begin,
                                        .settle = cluster_settle,
                                        .cut = old_stops_replicating,
                                        .fail = cluster_take_over,
                                        .stop = cluster_end};

static void single_begin(struct scene *scene, const struct redis_options *options)
{
    scene_begin(scene, redis_server_start(options));
    for (int i = 0; i < SCENE_PROCESSES; i++)
        scene_at(scene, i, redis_server_url(old));
}

static void single_start(struct scene *scene)
{
    single_begin(scene, &(struct redis_options){.tcp = true, .plain = true});
}

static void single_settle(struct scene *scene)
{
    (void)scene;
}

static void single_stop(void)
{
    redis_server_stop(old);
}

static bool single_cut(const struct scene *scene)
{
    (void)scene;
    return true;
}

static void single_fail(struct scene *scene)
{
    old_is_killed(scene);
    redis_server_restart(old);
}

const struct ending restart_empty = {.title = "restart, empty",
                                     .lease_ms = 3000,
                                     .start = single_start,
                                     .settle = single_settle,
                                     .cut = single_cut,
                                     .fail = single_fail,
                                     .stop = single_stop};

static bool single_save(const struct scene *scene)
{
    (void)scene;
    return old_does(0, "SAVE");
}

const struct ending restart_old = {.title = "restart, old RDB",
                                   .lease_ms = 3000,
                                   .start = single_start,
                                   .settle = single_settle,
                                   .cut = single_save,
                                   .fail = single_fail,
                                   .stop = single_stop};

static off_t aof_written; /* at the cut */

static void aof_path(char ret_path[128])
{
    snprintf(ret_path, 128, "%s/appendonlydir/appendonly.aof.1.incr.aof", redis_server_dir(old));
    if (access(ret_path, R_OK) != 0) /* before Redis 7 */
        snprintf(ret_path, 128, "%s/appendonly.aof", redis_server_dir(old));
}

static void aof_start(struct scene *scene)
{
    single_begin(scene, &(struct redis_options){.tcp = true,
                                                .plain = true,
                                                .appendonly = true,
                                                .config = "appendfsync everysec"});
}

static bool aof_cut(const struct scene *scene)
{
    (void)scene;
    char path[128];
    struct stat status;
    aof_path(path);
    check_int(stat(path, &status), 0);
    aof_written = status.st_size;
    return true;
}

/* As when the machine fails: what was not flushed to the disk is gone. */
static void aof_fail(struct scene *scene)
{
    char path[128];
    old_is_killed(scene);
    aof_path(path);
    check_int(truncate(path, aof_written), 0);
    redis_server_restart(old);
}

const struct ending restart_cut = {.title = "restart, AOF everysec",
                                   .lease_ms = 3000,
                                   .start = aof_start,
                                   .settle = single_settle,
                                   .cut = aof_cut,
                                   .fail = aof_fail,
                                   .stop = single_stop};
