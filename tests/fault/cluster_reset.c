/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A cluster all of whose nodes were reset, so that none has the id that it had: a fake one, since
 * the client takes a minute to believe it. */

#include "cluster_fake.h"

#include "base/clock.h"
#include "support/cluster_slot.h"
#include "support/recorder.h"

static void say_map(struct fake_node *node, int id, int port)
{
    char text[256];

    snprintf(text, sizeof text,
             "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$40\r\n%040d\r\n", port,
             id);
    fake_node_set_slots(node, text);
}

static void expect_works(hl_client *client)
{
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(20000)), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

static hl_client *client;

/* The line in the log comes a moment before the new map is used. */
static bool works_at(void *node)
{
    expect_works(client);
    return fake_server_count(((struct fake_node *)node)->server, "EVALSHA") > 0;
}

static struct recorder lines = RECORDER_INIT;

static bool has_changed(void *arg)
{
    (void)arg;
    return recorder_says(&lines, "the addresses of the URL lead to another cluster now");
}

Test(cluster_reset, of_all_nodes_is_believed_after_a_minute, .fini = server_down)
{
    struct fake_node *node = new_fake_node(), *next = new_fake_node();

    say_map(node, 1, fake_node_port(node));
    client = open_client_at(fake_cluster_url(node, NULL),
                            CLIENT(.on_log = record_log, .log_level = HL_LOG_INFO, .arg = &lines));
    expect_works(client);
    say_map(node, 2, fake_node_port(next));
    fake_node_set_info(node, "cluster_state:ok\r\ncluster_current_epoch:0\r\n");
    fake_node_set_script(node, "-CLUSTERDOWN The cluster is down\r\n");
    hli_ns began = hli_now();
    expect_outcome(hl_lock_try_acquire(new_lock(client, "look"), NULL), HL_ESERVER);
    fake_node_set_script(node, "");
    check(wait_until(has_changed, NULL, 200000));
    check(hli_now() - began >= HLI_MS(60000));
    check(wait_until(works_at, next, 20000));
}
