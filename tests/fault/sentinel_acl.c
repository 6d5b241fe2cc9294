/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A user of the servers behind Sentinel with the rights that docs/semantics.md and docs/sentinel.md
 * list: they are enough over a failover, and each of them is used. */

#include "acl_pages.h"

#include "support/events.h"
#include "support/topologies.h"

static const char *url_of_user(int database)
{
    static char url[256];

    snprintf(url, sizeof url, "%s?db=%d", trio_url_of(trio, 0, 3, "locker:password"), database);
    return url;
}

static const char *denied(void)
{
    const char *object = NULL;

    for (int i = 0; i < trio_nodes(trio) && !object; i++)
        object = acl_denied_at(trio_node(trio, i), NULL);
    return object;
}

static bool is_denied(void *arg)
{
    (void)arg;
    return denied() != NULL;
}

static void give_rights(const struct page *page, const char *but)
{
    const char *const *const lists[] = {lock_rights, plain_rights, server_rights, page->rights,
                                        NULL};

    for (int i = 0; i < trio_nodes(trio); i++)
        acl_give(trio_node(trio, i), lists, false, but);
    redis_do(server, "FLUSHALL");
}

/* Locks are in a database for which the client needs SELECT. */
static struct scene open_scene(const struct page *page, bool is_strict)
{
    const char *url = url_of_user(page == &page_of_locks);
    struct scene scene = {
        .name = "lock:stock", .url = url, .is_strict = is_strict, .is_over = is_denied};

    scene.client = scene_open(url, is_strict);
    scene.other = scene_open(url, is_strict);
    scene.third = scene_open(url, is_strict);
    return scene;
}

static void use_twice(const struct page *page, struct scene *scene)
{
    page->use(scene);
    if (scene_is_over(scene))
        return;
    redis_kill_named(server, REDIS_NORMAL, "hirelock");
    scene_await_links(scene);
    page->use(scene);
}

TrioLaw(sentinel_acl, of_the_servers_is_enough_for_a_failover)
{
    static struct events events;
    struct redis_server *old = trio_master(trio);

    give_rights(&page_of_locks, NULL);
    struct scene scene = open_scene(&page_of_locks, true);
    use_twice(&page_of_locks, &scene);
    hl_client *holder =
        open_client_at(url_of_user(0), CLIENT(.outage_timeout_ms = slow_ms(60000),
                                              .on_event = count_event, .arg = &events));
    hl_lock *held = new_lock(holder, "lock:held");
    expect_ok(hl_lock_acquire(held, ERR));
    check(redis_wait_replicas(old, 1, 30000));
    trio_start_failover(trio);
    server = trio_await_switch(trio, old);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    check_int(events_told(&events, HL_EVENT_MASTER_CHANGED), 1);
    check(wait_until(is_renewed_or_lost, holder, 60000));
    expect_held_or_lost(holder, held, &events);
    trio_await_whole(trio);
    scene_await_links(&scene);
    use_twice(&page_of_locks, &scene);
    scene_close(&scene);
    check_msg(!is_denied(NULL), "%s is denied", denied());
}

static void expect_each_used(const struct page *page, const char *const *rights)
{
    for (; *rights; rights++) {
        if (!acl_is_asked(*rights))
            continue;
        give_rights(page, *rights);
        struct scene scene = open_scene(page, false);
        if (scene.client && scene.other && scene.third)
            use_twice(page, &scene);
        scene_close(&scene);
        check_msg(is_denied(NULL), "nothing is denied without %s", *rights);
    }
}

/* A subscription to the channel of a fair lock ends with its wait; to another's, seconds later. */
TrioLaw(sentinel_acl, of_the_servers_has_nothing_that_is_not_used)
{
    expect_each_used(&page_of_locks, server_rights);
    expect_each_used(&page_of_locks, lock_rights);
    expect_each_used(&page_of_fair_locks, plain_rights);
    expect_each_used(&page_of_tags, holder_rights);
}
