/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* An idle connection that has died silently: the client's PINGs find it. */

#include "connection_fixture.h"

enum { PING_EVERY_MS = 5000 };

static void check_idle(int which, enum proxy_direction direction)
{
    hl_client_options options = connection_impatient_options();
    struct connection c = connection_start(NULL);
    hl_client *client = open_client_at(proxy_url(c.proxy), &options);
    proxy_hold(c.proxy, which, direction);
    int64_t begin_ms = now_ms();
    wait_stat(client, reconnects, 1);
    check(now_ms() - begin_ms > CONNECTION_PATIENCE_MS);
    expect_ok(hl_client_ping(client, -1, ERR));
    close_client(client);
    connection_stop(&c);
}

Test(connection_idle, a_dead_command_link_is_found)
{
    check_idle(0, PROXY_DOWN);
}

Test(connection_idle, a_dead_pubsub_link_is_found)
{
    check_idle(1, PROXY_DOWN);
}

Test(connection_idle, a_pubsub_link_that_sends_into_the_void_is_found)
{
    check_idle(1, PROXY_UP);
}

/* While a call waits for a message on it: subscribed again, and asked, long before the poll. */
Test(connection_idle, a_dead_pubsub_link_keeps_no_waiter)
{
    hl_client_options options = connection_impatient_options(), others = connection_options();
    struct connection c = connection_start(NULL);
    struct connection_call call;
    options.poll_ms = slow_ms(60000);
    hl_client *client = open_client_at(proxy_url(c.proxy), &options);
    hl_client *other = open_client_at(redis_server_url(c.server), &others);
    hl_lock *lock = new_lock(client, "idle"), *others_lock = new_lock(other, "idle");
    expect_ok(hl_lock_acquire(others_lock, ERR));
    connection_call_start(&call, lock, slow_ms(30000));
    check(redis_wait_subscribers(c.server, "redisson_lock__channel:{idle}", 1, 5000));
    proxy_hold(c.proxy, 1, PROXY_DOWN);
    expect_ok(hl_lock_release(others_lock, ERR));
    connection_join(&call);
    check_msg(call.code == HL_OK && call.lasted_ms < slow_ms(PING_EVERY_MS + 15000), "%lld ms: %s",
              (long long)call.lasted_ms, call.err.text);
    free_lock(lock);
    free_lock(others_lock);
    close_client(client);
    close_client(other);
    connection_stop(&c);
}

static bool idle_has_gone(void *arg)
{
    (void)arg;
    return redis_clients(server, REDIS_PUBSUB, "hirelock") == 0 &&
           redis_clients(server, REDIS_NORMAL, "hirelock") == 0;
}

/* A replica answers scripts that only read, too: only the keepalive asks for the role. */
Test(connection_idle, a_master_that_became_a_replica_is_found)
{
    hl_client_options options = connection_options();
    server = redis_server_start(NULL);
    hl_client *client = open_client_at(redis_server_url(server), &options);
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    check(wait_until(idle_has_gone, NULL, PING_EVERY_MS + 3000));
    redis_do(server, "REPLICAOF NO ONE");
    wait_stat(client, reconnects, 1);
    close_client(client);
    redis_server_stop(server);
}

/* Within a time in which the usual keepalive would come too late. */
static bool reconnects_soon(hl_client *client)
{
    uint64_t before = stats_of(client).reconnects;
    struct deadline deadline = deadline_in(8000);
    while (stats_of(client).reconnects == before && !deadline_is_over(deadline))
        deadline_nap();
    return stats_of(client).reconnects > before;
}

/* The server closes the first connection; a faster keepalive, each second, preserves the next one.
 * That of a busy machine may be too late, too, but not each time. */
Test(connection_idle, a_server_that_closes_idle_connections_soon_does_so_once)
{
    hl_client_options options = connection_options();
    server = redis_server_start(NULL);
    hl_client *client = open_client_at(redis_server_url(server), &options);
    redis_do(server, "CONFIG SET timeout 3");
    wait_stat(client, reconnects, 1);
    struct deadline deadline = deadline_of_wait(60000);
    while (reconnects_soon(client))
        check(!deadline_is_over(deadline));
    close_client(client);
    redis_server_stop(server);
}
