/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A connection that nobody uses and that has died without a word: found by the client's PINGs. */

#include "connection_fixture.h"

enum { PING_EVERY_MS = 5000 };

static void check_idle(int which, enum proxy_direction direction)
{
    hl_client_options options = connection_options();
    struct connection c = connection_start(NULL);
    hl_client *client = connection_open(proxy_url(c.proxy), &options);
    proxy_hold(c.proxy, which, direction);
    int64_t begin_ms = now_ms();
    check(connection_wait_for(client, connection_reconnects, 1,
                              PING_EVERY_MS + CONNECTION_PATIENCE_MS + 1000));
    check(now_ms() - begin_ms > CONNECTION_PATIENCE_MS);
    expect_code(hl_client_ping(client, -1, err), HL_OK);
    check_int(hl_client_close(client), HL_OK);
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

/* While somebody waits for a message on it: subscribed again, and asked, long before the poll. */
Test(connection_idle, a_dead_pubsub_link_keeps_no_waiter)
{
    hl_client_options options = connection_options();
    struct connection c = connection_start(NULL);
    struct connection_call call;
    options.poll_ms = slow_ms(60000);
    hl_client *client = connection_open(proxy_url(c.proxy), &options);
    hl_client *other = connection_open(redis_server_url(c.server), &options);
    hl_lock *lock = connection_lock(client, "idle"), *others_lock = connection_lock(other, "idle");
    expect_code(hl_lock_acquire(others_lock, err), HL_OK);
    connection_call_start(&call, lock, slow_ms(30000));
    check(redis_wait_subscribers(c.server, "redisson_lock__channel:{idle}", 1, 5000));
    proxy_hold(c.proxy, 1, PROXY_DOWN);
    expect_code(hl_lock_release(others_lock, err), HL_OK);
    connection_join(&call);
    check_msg(call.code == HL_OK && call.lasted_ms < slow_ms(PING_EVERY_MS + 2000), "%lld ms: %s",
              (long long)call.lasted_ms, call.err.text);
    hl_lock_free(lock);
    hl_lock_free(others_lock);
    check_int(hl_client_close(client), HL_OK);
    check_int(hl_client_close(other), HL_OK);
    connection_stop(&c);
}
