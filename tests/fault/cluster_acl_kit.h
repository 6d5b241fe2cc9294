/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A cluster's user `locker` with the rights that docs/cluster.md lists, or all of them but one, and
 * what the nodes denied to it. */
#ifndef HL_TEST_CLUSTER_ACL_KIT_H
#define HL_TEST_CLUSTER_ACL_KIT_H

#include "acl_pages.h"

#include "support/redis_program.h"
#include "support/slot_move.h"
#include "support/topologies.h"

static const char *const *message_rights;
static const char *asked; /* whether messages are sharded, by a user who may not; or NULL */

static inline void acl_cluster_up(const char *const *messages)
{
    message_rights = messages;
    cluster_up_with(&(struct cluster_options){.without_replicas = true});
}

static inline void sharded_up(void)
{
    if (!redis_program_is_7())
        skip("sharded messages are new in Redis 7.0");
    acl_cluster_up(sharded_rights);
}

static inline void plain_up(void)
{
    asked = redis_program_is_7() ? "pubsub|shardnumsub" : "pubsub";
    acl_cluster_up(plain_rights);
}

static inline void give_rights(const struct page *page, bool is_braced, const char *but)
{
    const char *const *const lists[] = {cluster_rights,
                                        message_rights,
                                        page->rights,
                                        page->is_lock ? lock_rights : no_rights,
                                        page->is_lock ? grant_rights : no_rights,
                                        NULL};

    for (int i = 0; i < cluster_nodes(cluster); i++) {
        acl_give(cluster_node(cluster, i), lists, is_braced, but);
        redis_do(cluster_node(cluster, i), "FLUSHALL");
    }
}

static inline const char *denied(void)
{
    const char *object = NULL;

    for (int i = 0; i < cluster_nodes(cluster) && !object; i++)
        object = acl_denied_at(cluster_node(cluster, i), asked);
    return object;
}

static inline bool is_denied(void *arg)
{
    (void)arg;
    return denied() != NULL;
}

/* `server` is the node of its name. */
static inline struct scene acl_scene(const char *name, bool is_strict)
{
    const char *url = cluster_url_of(cluster, 0, 3, "locker:password");
    struct scene scene = {.name = name, .url = url, .is_strict = is_strict, .is_over = is_denied};

    server = cluster_node_of(cluster, name);
    scene.client = scene_open(url, is_strict);
    scene.other = scene_open(url, is_strict);
    scene.third = scene_open(url, is_strict);
    return scene;
}

/* Behind ASKING, as the key is not there. */
static inline void use_moving_slot(struct scene *scene)
{
    hl_lock *lock = scene_lock(scene->client, HL_LOCK_REENTRANT, 0, scene->name);
    struct redis_server *to = cluster_node(cluster, server == cluster_node(cluster, 0));
    struct slot_move move =
        slot_move_begin(cluster, cluster_slot(scene->name, strlen(scene->name)), to);

    scene_ok(scene, hl_lock_acquire_for(lock, scene_wait_ms(scene), ERR));
    scene_ok(scene, hl_lock_release(lock, ERR));
    slot_move_undo(&move);
    hl_lock_free(lock);
}

static inline void lose_connections(const struct scene *scene)
{
    for (int i = 0; i < cluster_nodes(cluster); i++)
        redis_kill_named(cluster_node(cluster, i), REDIS_NORMAL, "hirelock");
    scene_await_links(scene);
}

#endif
