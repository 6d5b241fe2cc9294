/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A cluster's user with the rights of docs/cluster.md and no more: each primitive works, and
 * nothing is denied. */

#include "cluster_acl_kit.h"

static void expect_enough(const struct page *page, const char *name)
{
    give_rights(page, strchr(name, '{') != NULL, NULL);
    struct scene scene = acl_scene(name, true);
    page->use(&scene);
    if (page == &page_of_locks) {
        use_moving_slot(&scene);
        lose_connections(&scene);
        page->use(&scene);
    }
    check_msg(!is_denied(NULL), "%s: %s is denied", page->name, denied());
    scene_close(&scene);
}

/* A latch has no name with a brace. */
static void expect_all_enough(void)
{
    const char *braced = cluster_name_at(server, "lock:");

    for (int i = 0; i < PAGES; i++) {
        expect_enough(pages[i], "lock:stock");
        if (pages[i] != &page_of_latches)
            expect_enough(pages[i], braced);
    }
    expect_enough(&page_of_tags, "lock:stock");
    expect_enough(&page_of_tags, braced);
}

Test(cluster_acl, with_sharded_messages_has_all_that_is_needed, .init = sharded_up,
     .fini = server_down)
{
    expect_all_enough();
}

Test(cluster_acl, with_messages_to_all_nodes_has_all_that_is_needed, .init = plain_up,
     .fini = server_down)
{
    expect_all_enough();
}

static void expect_graceful(const char *but, int code)
{
    const char *const *const lists[] = {cluster_rights, lock_rights,          grant_rights,
                                        grace_rights,   grace_cluster_rights, NULL};
    const hl_client_options *options =
        CLIENT(.failover_grace_ms = slow_ms(5000), .watchdog_timeout_ms = slow_ms(5000));
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    for (int i = 0; i < cluster_nodes(cluster); i++)
        acl_give(cluster_node(cluster, i), lists, false, but);
    expect_outcome(
        hl_client_open(cluster_url_of(cluster, 0, 3, "locker:password"), options, &client, &err),
        code);
    if (code < 0)
        check_has(err.text, "failover_grace_ms: the server's term: ");
    else
        close_client(client);
}

Test(cluster_acl, of_a_grace_has_all_that_is_needed, .init = plain_up, .fini = server_down)
{
    expect_graceful(NULL, HL_OK);
    expect_graceful("+cluster|nodes", HL_EDENIED);
}
