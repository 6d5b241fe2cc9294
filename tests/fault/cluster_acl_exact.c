/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The rights of docs/cluster.md are all used: without any one of them something is denied. */

#include "cluster_acl_kit.h"

/* Goes on only as long as nothing is denied. */
static void use_all(const struct page *page, struct scene *scene)
{
    page->use(scene);
    if (!scene_is_over(scene))
        use_moving_slot(scene);
    if (!scene_is_over(scene)) {
        lose_connections(scene);
        page->use(scene);
    }
}

static void expect_used(const struct page *page, const char *right)
{
    give_rights(page, false, right);
    struct scene scene = acl_scene("lock:stock", false);
    if (scene.client && scene.other && scene.third)
        use_all(page, &scene);
    scene_close(&scene);
    check_msg(is_denied(NULL), "%s: nothing is denied without %s", page->name, right);
}

static void expect_each_used(const struct page *page, const char *const *rights)
{
    for (; *rights; rights++)
        if (acl_is_asked(*rights))
            expect_used(page, *rights);
}

/* A subscription to the channel of a fair lock ends with its wait; to another's, seconds later. */
static void expect_all_used(void)
{
    expect_each_used(&page_of_locks, cluster_rights);
    expect_each_used(&page_of_fair_locks, message_rights);
    expect_each_used(&page_of_locks, lock_rights);
    expect_each_used(&page_of_locks, grant_rights);
    for (int i = 0; i < PAGES; i++)
        expect_each_used(pages[i], pages[i]->rights);
    expect_each_used(&page_of_tags, holder_rights);
}

Test(cluster_acl_exact, with_sharded_messages_has_nothing_that_is_not_used, .init = sharded_up,
     .fini = server_down)
{
    expect_all_used();
}

static void plain_7_up(void)
{
    if (!redis_program_is_7())
        skip("the log of denials names subcommands since Redis 7.0");
    plain_up();
}

Test(cluster_acl_exact, with_messages_to_all_nodes_has_nothing_that_is_not_used, .init = plain_7_up,
     .fini = server_down)
{
    expect_all_used();
}
