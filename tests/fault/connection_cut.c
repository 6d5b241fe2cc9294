/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A connection cut after some of the bytes; connection_cut_everywhere.c has them all. */

#include "connection_cut.h"

Test(connection_cut, acquire_and_release)
{
    cut_sweep(cut_plain, 23);
}

Test(connection_cut, a_nested_acquire_that_extends)
{
    cut_sweep(cut_nested, 61);
}

Test(connection_cut, a_renewal)
{
    cut_sweep(cut_renewed, 97);
}

Test(connection_cut, a_longer_lease)
{
    cut_sweep(cut_updated, 37);
}

Test(connection_cut, a_wait_and_its_subscription)
{
    cut_sweep(cut_waiting, 67);
}

Test(connection_cut, a_handshake)
{
    cut_sweep(cut_handshake, 101);
}

Test(connection_cut, a_handshake_of_a_lazy_client)
{
    cut_sweep(cut_handshake_lazily, 101);
}

/* The user may not send INFO, CLIENT, ROLE and PING: its handshake has each of these refused. */
Test(connection_cut, a_handshake_of_the_least_user_ends_no_wait)
{
    struct connection c = connection_start(&(struct redis_options){
        .tcp = true,
        .config = "user locker on >pw ~* &* -@all +evalsha +script|load +hget +hset +hincrby "
                  "+hgetall +del +pttl +pexpire +time +zadd +zpopmin +zcard +zrem +publish "
                  "+subscribe +unsubscribe +pubsub|numsub +exists"});
    hl_client_options options = connection_options();
    struct connection_call call;
    options.outage_timeout_ms = slow_ms(10000);
    hl_client *other = open_client_at(redis_server_url(c.server), &options);
    options.username = "locker";
    options.password = "pw";
    hl_client *client = open_client_at(proxy_url(c.proxy), &options);
    hl_lock *held = new_lock(other, "cut"), *lock = new_lock(client, "cut");
    expect_ok(hl_lock_acquire(held, ERR));
    connection_call_start(&call, lock, HL_WAIT_FOREVER);
    check(redis_wait_subscribers(c.server, "redisson_lock__channel:{cut}", 1, 5000));
    int next = proxy_accepted(c.proxy);
    proxy_cut_after(c.proxy, next, PROXY_DOWN, 150, PROXY_FIN);
    proxy_kill_all(c.proxy);
    wait_stat(client, reconnects, 1);
    check(proxy_cuts(c.proxy) > 0);
    check(redis_wait_subscribers(c.server, "redisson_lock__channel:{cut}", 1, 5000));
    check_int(stats_of(client).waiters_now, 1);
    expect_ok(hl_lock_release(held, ERR));
    connection_join(&call);
    check_msg(call.code == HL_OK, "%s", call.err.text);
    free_lock(held);
    free_lock(lock);
    close_client(client);
    close_client(other);
    connection_stop(&c);
}

Test(connection_cut, acquire_and_release_with_scripts_to_load)
{
    cut_sweep(cut_loading, 301);
}
