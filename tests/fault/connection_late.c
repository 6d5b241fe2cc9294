/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Commands that arrive late: sent on a connection that the client has given up, kept by the
 * network, and delivered when the client has long been on another one.
 */

#include <stdatomic.h>

#include "connection_fixture.h"
#include "support/fake_server.h"

struct late {
    struct connection c;
    hl_client *client, *other;
    hl_lock *lock, *others_lock;
};

/* To let a late command run, the server must be one that refuses CLIENT KILL. */
enum kill { MAY_KILL, NO_KILL };

static void late_start(struct late *late, enum kill kill, int64_t lease_ms)
{
    hl_client_options options = connection_options();
    options.watchdog_timeout_ms = lease_ms;
    options.outage_timeout_ms = slow_ms(20000);
    options.request_timeout_ms = slow_ms(1500); /* what the tests hold back ends by it */
    late->c = connection_start(&(struct redis_options){.config = REDIS_LOGS_CALLS});
    if (kill == NO_KILL)
        redis_deny(late->c.server, "default", "client|kill");
    late->client = open_client_at(proxy_url(late->c.proxy), &options);
    late->other = open_client_at(redis_server_url(late->c.server), &options);
    late->lock = new_lock(late->client, "late");
    late->others_lock = new_lock(late->other, "late");
    expect_ok(hl_lock_acquire(late->lock, ERR)); /* the scripts are loaded */
    expect_ok(hl_lock_release(late->lock, ERR));
    expect_gone(late->c.server, "late");
}

static void late_stop(struct late *late)
{
    free_lock(late->lock);
    free_lock(late->others_lock);
    close_client(late->client);
    close_client(late->other);
    connection_stop(&late->c);
}

/* The kept bytes have arrived: the proxy has forwarded them, and the server has read them. */
static bool late_is_delivered(void *arg)
{
    struct late *late = arg;
    return proxy_kept(late->c.proxy, PROXY_EVERY, PROXY_UP) == 0;
}

static void late_deliver(struct late *late)
{
    check(proxy_kept(late->c.proxy, PROXY_EVERY, PROXY_UP) > 0);
    proxy_release(late->c.proxy, PROXY_EVERY, PROXY_UP);
    check(wait_until(late_is_delivered, late, 5000));
    check_int(redis_int(late->c.server, "EXISTS none"), 0);
    /* Two connections for each client, and none that is given up. */
    check(redis_wait_clients(late->c.server, REDIS_NORMAL, 2, 5000));
    check(redis_wait_clients(late->c.server, REDIS_PUBSUB, 2, 5000));
}

/* An acquire whose request the network keeps: asked again on a new connection, released. The first
 * request is still on its way then. */
static void late_acquire(struct late *late)
{
    proxy_hold(late->c.proxy, connection_of_commands(&late->c), PROXY_UP);
    expect_ok(hl_lock_acquire_for(late->lock, slow_ms(15000), ERR));
    check(stats_of(late->client).reconnects >= 1);
    expect_ok(hl_lock_release(late->lock, ERR));
    expect_gone(late->c.server, "late");
}

Test(connection_late, an_acquire_of_a_dropped_connection_never_runs)
{
    struct late late;
    late_start(&late, MAY_KILL, slow_ms(20000));
    int64_t killed = redis_subcommand_calls(late.c.server, "client", "kill");
    late_acquire(&late);
    /* Of each connection. */
    check(redis_subcommand_calls(late.c.server, "client", "kill") >= killed + 2);
    int64_t ran = redis_evalsha_calls(late.c.server);
    late_deliver(&late);
    check_int(redis_evalsha_calls(late.c.server), ran);
    expect_gone(late.c.server, "late");
    late_stop(&late);
}

Test(connection_late, an_orphan_is_gone_within_its_lease)
{
    struct late late;
    int64_t lease_ms = slow_ms(3000);
    late_start(&late, NO_KILL, lease_ms);
    late_acquire(&late);
    late_deliver(&late);
    check_msg(connection_key_is_of(late.c.server, "late", late.client), "no orphan came");
    int64_t begin_ms = now_ms();
    expect_ok(hl_lock_acquire_for(late.others_lock, slow_ms(15000), ERR));
    check(now_ms() - begin_ms <= lease_ms + slow_ms(12000));
    expect_ok(hl_lock_release(late.others_lock, ERR));
    late_stop(&late);
}

Test(connection_late, an_orphan_is_cleaned_by_the_client_that_meets_it)
{
    struct late late;
    late_start(&late, NO_KILL, slow_ms(20000));
    late_acquire(&late);
    late_deliver(&late);
    check_msg(connection_key_is_of(late.c.server, "late", late.client), "no orphan came");
    check(!hl_lock_is_held(late.lock, NULL));
    int64_t begin_ms = now_ms();
    expect_ok(hl_lock_acquire_for(late.lock, slow_ms(15000), ERR));
    check(now_ms() - begin_ms < slow_ms(14000)); /* its lease is longer */
    expect_ok(hl_lock_release(late.lock, ERR));
    expect_gone(late.c.server, "late");
    late_stop(&late);
}

/* The request of a release is kept; the call ends without an answer, and the release is repeated on
 * the new connection. */
static void late_release(struct late *late)
{
    expect_ok(hl_lock_acquire(late->lock, ERR));
    proxy_hold(late->c.proxy, connection_of_commands(&late->c), PROXY_UP);
    expect_released(hl_lock_release(late->lock, NULL), HL_EINDOUBT);
    check_int(hl_lock_hold_count(late->lock, NULL), 0);
    check(redis_wait_int(late->c.server, 0, 5000, "EXISTS late"));
}

Test(connection_late, a_release_does_not_free_a_newer_hold_of_its_thread)
{
    struct late late;
    late_start(&late, NO_KILL, slow_ms(20000));
    late_release(&late);
    expect_ok(hl_lock_acquire(late.lock, ERR));
    int64_t ran = redis_evalsha_calls(late.c.server);
    late_deliver(&late);
    check_msg(redis_evalsha_calls(late.c.server) > ran, "the late release did not run");
    check(hl_lock_is_held(late.lock, NULL));
    check(connection_key_is_of(late.c.server, "late", late.client));
    expect_ok(hl_lock_release(late.lock, ERR));
    late_stop(&late);
}

Test(connection_late, a_release_does_not_free_the_hold_of_another_client)
{
    struct late late;
    late_start(&late, NO_KILL, slow_ms(20000));
    late_release(&late);
    expect_ok(hl_lock_acquire(late.others_lock, ERR));
    late_deliver(&late);
    check(connection_key_is_of(late.c.server, "late", late.other));
    expect_ok(hl_lock_release(late.others_lock, ERR));
    late_stop(&late);
}

/* Ids begin at 1 again when a server starts: an old id would be another client's connection. */
Test(connection_late, no_connection_of_another_run_of_the_server_is_killed)
{
    server = redis_server_start(&(struct redis_options){.tcp = true, .config = REDIS_LOGS_CALLS});
    hl_client_options options = connection_options();
    hl_client *client = open_client_at(redis_server_url(server), &options);
    redis_server_restart(server);
    wait_stat(client, reconnects, 1);
    expect_ok(hl_client_ping(client, -1, ERR));
    check_int(redis_subcommand_calls(server, "client", "kill"), 0);
    close_client(client);
    redis_server_stop(server);
}

/* A connection that broke during its handshake never carried a command of ours; the connection to
 * be killed is still the one before it. */
struct killed {
    atomic_int times[8]; /* by id */
    atomic_int answers_left;
};

static bool run_id_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    static const char info[] = "redis_version:7.0.15\r\n"
                               "run_id:0123456789abcdef0123456789abcdef01234567\r\n";
    struct killed *killed = arg;
    if (resp_command_begins(command, "CLIENT KILL") && command->argc == 4)
        atomic_fetch_add(&killed->times[command->argv[3][0] & 7], 1);
    if (!resp_command_begins(command, "INFO"))
        return false;
    fake_reply_bulk(reply, info, sizeof info - 1);
    return true;
}

Test(connection_late, the_connection_to_be_killed_is_remembered_until_it_is)
{
    const struct fake_step steps[] = {{.expect = "CLIENT KILL", .answer = "", .then = FAKE_RESET},
                                      {.expect = "CLIENT KILL", .answer = "", .then = FAKE_RESET}};
    struct killed killed = {0};
    struct fake_server *fake = fake_server_start(run_id_answer, &killed);
    hl_client_options options = connection_options();
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    check_int(fake_server_count(fake, "CLIENT KILL"), 0);
    fake_server_play(fake, steps, 2); /* two attempts to connect break before they kill */
    fake_server_close_all(fake, FAKE_RESET);
    wait_stat(client, reconnects, 1);
    check(fake_server_wait_play(fake, 5000));
    for (int id = 1; id < 3; id++) /* again, if the other one's end came before the answer */
        check(atomic_load(&killed.times[id]) >= 1);
    for (int id = 3; id < 8; id++)
        check_int(atomic_load(&killed.times[id]), 0);
    close_client(client);
    fake_server_stop(fake);
}
