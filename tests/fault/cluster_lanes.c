/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Lanes of a node of a cluster, whose map changes, or stays as it is. The nodes are fake; before
 * the first one there is a proxy. */
#include "cluster_fake.h"
#include "lanes_kit.h"

#include "support/cluster_slot.h"
#include "support/proxy.h"

enum { SLOT = 1000, OTHER = 9000 };

static struct fake_node *node[2];
static struct proxy *proxy;

/* The first node has all slots up to 8000 and those from 12001 on, but that one if it is away. */
static void set_map(bool is_away)
{
    int first = proxy_port(proxy), second = fake_node_port(node[1]);
    const struct fake_range ranges[] = {{0, SLOT - 1, first},
                                        {SLOT, SLOT, is_away ? second : first},
                                        {SLOT + 1, 8000, first},
                                        {8001, 12000, second},
                                        {12001, 16383, first}};
    fake_nodes_set_map(node, 2, ranges, sizeof ranges / sizeof ranges[0]);
}

static void nodes_up(void)
{
    for (int i = 0; i < 2; i++)
        node[i] = new_fake_node();
    proxy =
        stop_at_end(proxy_start(&(struct proxy_options){.server_port = fake_node_port(node[0])}),
                    (void (*)(void *))proxy_stop);
    set_map(false);
}

#define LaneLaw(...) Test(cluster_lanes, __VA_ARGS__, .init = nodes_up, .fini = server_down)

/* With two lanes at the first node. */
static hl_client *open_with_lanes(const hl_client_options *options)
{
    static struct crowd_of_threads crowd;
    char where[32];
    hl_client *client = open_client_at(fake_cluster_url(node[1], NULL), options);

    snprintf(where, sizeof where, "127.0.0.1:%d", proxy_port(proxy));
    crowd_begin(&crowd, client, cluster_name_in_slot(SLOT, "crowd"));
    expect_lanes(client, where, 2);
    crowd_end(&crowd);
    return client;
}

/* The newest connection to the first node, but for those that only read the map. */
static int further_lane(void)
{
    return proxy_find(proxy, "SETNAME");
}

static void expect_works(hl_client *client, int slot)
{
    hl_lock *lock = new_lock(client, cluster_name_in_slot(slot, "works"));

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(20000)), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

static atomic_int attempts_in_vain;

static void count_attempts(hl_log_level level, const char *text, void *arg)
{
    (void)level, (void)arg;
    if (strstr(text, "no connection"))
        atomic_fetch_add(&attempts_in_vain, 1);
}

static bool has_tried_often(void *arg)
{
    (void)arg;
    return atomic_load(&attempts_in_vain) >= 20;
}

static int looks(void)
{
    return fake_server_count(node[0]->server, "CLUSTER SLOTS") +
           fake_server_count(node[1]->server, "CLUSTER SLOTS");
}

/* As at a node that has all the clients that it allows (maxclients): all slots are served. A lane
 * that is not needed for the time of a lease is given up, so the lease is long. */
LaneLaw(that_do_not_come_back_do_not_make_the_client_read_the_map)
{
    hl_client *client = open_with_lanes(
        CLIENT(.connections = 2, .backoff_max_ms = 200, .watchdog_timeout_ms = slow_ms(60000),
               .on_log = count_attempts, .log_level = HL_LOG_DEBUG));

    proxy_refuse(proxy, true);
    int before = looks();
    proxy_kill(proxy, further_lane());
    check(wait_until(has_tried_often, NULL, 60000));
    check_msg(looks() <= before + 3, "%d looks at the map", looks() - before);
    expect_works(client, SLOT);
    expect_works(client, OTHER);
}

/* The second node, which serves this slot, makes the client read the map. */
static void read_map(hl_client *client)
{
    int before = fake_server_count(node[1]->server, "CLUSTER SLOTS");

    fake_node_redirect(node[1], "MOVED", OTHER, "127.0.0.1", fake_node_port(node[1]));
    expect_outcome(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(OTHER, "look")), NULL),
                   HL_ESERVER);
    fake_node_set_script(node[1], "");
    check(fake_server_wait_count(node[1]->server, "CLUSTER SLOTS", before + 1, 20000));
    expect_works(client, OTHER); /* behind the map */
}

static bool has_kept(void *lane)
{
    return proxy_kept(proxy, *(int *)lane, PROXY_UP) > 0;
}

/* The slot goes to the other node by one map, and comes back by the next. The release that undoes
 * the ACQUIRE must not overtake it. */
LaneLaw(of_a_name_whose_slot_comes_back_keep_the_order_of_its_requests)
{
    hl_client *client = open_with_lanes(CLIENT(.connections = 2, .poll_ms = slow_ms(60000),
                                               .request_timeout_ms = slow_ms(60000),
                                               .outage_timeout_ms = slow_ms(100000)));
    const char *name = cluster_name_in_slot(SLOT, "stock");
    hl_lock *lock = new_lock(client, name);
    hl_lock *busy = new_lock(client, cluster_name_in_slot(SLOT, "busy"));
    hl_cancel *cancel = new_cancel();
    int first = 0, lane = further_lane();

    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    struct actor *one = actor_start_acquire(busy, ACQUIRE(.wait_ms = -1));
    check(wait_until(has_kept, &first, 20000));
    struct actor *two = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    check(wait_until(has_kept, &lane, 20000));
    proxy_release(proxy, first, PROXY_UP);
    expect_ok(actor_end(one));
    set_map(true);
    read_map(client);
    set_map(false);
    read_map(client);
    fake_node_watch(node[0], name);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(two), HL_ECANCELED);
    expect_works(client, SLOT); /* behind a release by the first lane */
    check(!fake_node_has_released(node[0]) || proxy_kept(proxy, lane, PROXY_UP) == 0);
    proxy_pass(proxy);
}
