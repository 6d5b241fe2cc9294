/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Cables that are pulled, and hosts that are not there: no packet says that anything is wrong. */

#include "network_kit.h"

static void cable_pull(void)
{
    check(network_run("ip link set here down"));
}

static void cable_plug(void)
{
    check(network_run("ip link set here up"));
}

Test(network_cable, a_pulled_cable_is_an_outage_and_no_more)
{
    struct network network;
    hl_client_options options = connection_impatient_options();
    hl_error told = HL_ERROR_INIT;
    network_start(&network);
    hl_client *client = open_client_at(network.url, &options);
    hl_lock *lock = new_lock(client, "cable");
    expect_ok(hl_lock_acquire(lock, ERR));
    cable_pull();
    int64_t begin_ms = now_ms();
    expect_outcome(hl_lock_release(lock, &told), HL_EINDOUBT);
    check(now_ms() - begin_ms < slow_ms(4000));
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(300), &told), HL_ECONN);
    check_msg(strlen(told.text) > 30, "%s", told.text);
    check(now_ms() - begin_ms < slow_ms(4500));
    cable_plug();
    expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), ERR));
    check_str(redis_str(network.server, "HVALS cable"), "1");
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
    network_stop(&network);
}

Test(network_cable, a_wait_goes_on_when_the_cable_is_back)
{
    struct network network;
    hl_client_options options = connection_impatient_options();
    struct connection_call call;
    options.outage_timeout_ms = -1;
    network_start(&network);
    hl_client *client = open_client_at(network.url, &options);
    hl_client *other = open_client_at(redis_server_url(network.server), &options);
    hl_lock *lock = new_lock(client, "cable"), *others = new_lock(other, "cable");
    expect_ok(hl_lock_acquire(others, ERR));
    connection_call_start(&call, lock, slow_ms(30000));
    check(redis_wait_subscribers(network.server, "redisson_lock__channel:{cable}", 1, 5000));
    cable_pull();
    expect_ok(hl_lock_release(others, ERR)); /* its message goes nowhere */
    expect_outcome(hl_client_ping(client, slow_ms(300), NULL), HL_ECONN); /* the link is given up */
    cable_plug();
    connection_join(&call);
    check_msg(call.code == HL_OK && call.release_code == HL_OK, "%s", call.err.text);
    check(call.lasted_ms < slow_ms(10000));
    free_lock(lock);
    free_lock(others);
    close_client(client);
    close_client(other);
    network_stop(&network);
}

static void check_unreachable(const char *url)
{
    hl_client_options options = connection_options();
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int64_t begin_ms = now_ms();
    options.connect_timeout_ms = slow_ms(250);
    expect_outcome(hl_client_open(url, &options, &client, &err), HL_ECONN);
    check(now_ms() - begin_ms < slow_ms(4000));
    check_msg(strncmp(err.text, "connect 10.77.0.", 16) == 0, "%s", err.text);
}

Test(network_cable, a_host_that_is_not_there_is_given_up_in_time)
{
    struct network network;
    network_start(&network);
    check(
        network_run("ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:99 nud permanent dev here"));
    check_unreachable("redis://10.77.0.9:6379"); /* packets go, and no host takes them */
    check_unreachable("redis://10.77.0.8:6379"); /* no host answers the ARP request */
    network_stop(&network);
}
