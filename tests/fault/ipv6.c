/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Servers at ::1: in the URL with brackets, in what nodes and sentinels announce without. */

#include "cluster_kit.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_ipv6(void)
{
    const struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0)
        close(fd);
    if (!is_there)
        skip("this machine has no ::1");
}

static const char *url_at(const char *format, const struct redis_server *at)
{
    static char url[128];

    snprintf(url, sizeof url, format, redis_server_port(at));
    return url;
}

static void expect_address(const hl_node *node, void *arg)
{
    (void)arg;
    check(node->is_connected);
    check_msg(strncmp(node->address, "[::1]:", strlen("[::1]:")) == 0, "%s", node->address);
}

static void expect_works(hl_client *client, const char *name)
{
    hl_lock *lock = new_lock(client, name);

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(30000)), ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    check(hl_client_nodes(client, expect_address, NULL) > 0);
    free_lock(lock);
}

static void server_up_ipv6(void)
{
    expect_ipv6();
    server_up_with(
        &(struct redis_options){.tcp = true, .plain = true, .config = "bind 127.0.0.1 ::1"});
}

Test(ipv6, of_a_server_stands_in_brackets, .init = server_up_ipv6, .fini = server_down)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_works(open_client_at(url_at("redis://[::1]:%d", server), NULL), "stock");
    expect_outcome(hl_client_open("redis://[::1]:1", NULL, &client, &err), HL_ECONN);
    check_str(err.text, "connect [::1]:1: connection refused");
}

static void cluster_up_ipv6(void)
{
    expect_ipv6();
    cluster_up_with(&(struct cluster_options){.host = "::1"});
}

Test(ipv6, of_the_nodes_of_a_cluster_is_read_in_maps_and_redirections, .init = cluster_up_ipv6,
     .fini = server_down)
{
    static struct events events;
    hl_client *client =
        open_client_at(url_at("redis-cluster://[::1]:%d", server), cluster_client(&events));
    hl_client *other =
        open_client_at(url_at("redis-cluster://[::1]:%d", server), cluster_client(NULL));
    const char *name = name_at(0, "stock");

    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, name_at(i, "stock"));
    slot_move(cluster, slot_of(name), cluster_node(cluster, 1));
    expect_handed_over(client, other, name);
    struct redis_server *old = cluster_node(cluster, 2);
    const char *moved = name_at(2, "stock");
    redis_server_kill(old);
    server = cluster_await_master(cluster, slot_of(moved), old);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    expect_works(client, moved);
}

static void trio_up_ipv6(void)
{
    expect_ipv6();
    trio_up_with(&(struct trio_options){.host = "::1"});
}

Test(ipv6, of_sentinels_and_masters_is_followed, .init = trio_up_ipv6, .fini = server_down)
{
    static struct events events;
    struct redis_server *old = trio_master(trio);
    hl_client *client =
        open_client_at(url_at("redis-sentinel://[::1]:%d/mymaster", trio_sentinel(trio, 0)),
                       cluster_client(&events));

    expect_works(client, "stock");
    redis_server_kill(trio_sentinel(trio, 0)); /* the others are known by what it told */
    trio_start_failover(trio);
    server = trio_await_switch(trio, old);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    expect_works(client, "stock");
}
