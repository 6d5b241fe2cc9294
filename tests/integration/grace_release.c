/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Releases, and writes with them, of holds that the server lost at a restart. */

#include "grace_kit.h"
#include "support/actor.h"
#include "support/proxy.h"

#include <hirelock/fence.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GraceLaw(...) Test(grace_release, __VA_ARGS__, .init = graceful_up, .fini = server_down)

/* The holder ends its hold by this job while the server, which loses it, is down; the client knows
 * that by then, so nothing is sent to a server that does not answer. */
static void end_while_it_restarts(hl_client *client, struct actor *holder, void (*job)(void *lock),
                                  hl_lock *lock)
{
    redis_server_kill(server);
    redis_server_wipe(server);
    while (stats_of(client).nodes_now > 0)
        deadline_nap();
    actor_begin(holder, job, lock);
    while (stats_of(client).holds_now > 0)
        deadline_nap();
    redis_server_restart(server);
    actor_await(holder);
}

static void release_it(void *lock)
{
    expect_ok(hl_lock_release(lock, ERR));
}

/* The release is sent before the hold could be written anew. Nobody has taken the lock meanwhile,
 * so the hold lasted until then. */
GraceLaw(reports_a_release_of_a_hold_that_the_server_lost_as_one)
{
    hl_client *client = open_client(GRACEFUL());
    hl_lock *lock = new_lock(client, "stock");
    struct actor *holder = actor_start();

    await_grace(client);
    expect_ok(actor_acquire(holder, lock, WAITING));
    end_while_it_restarts(client, holder, release_it, lock);
    check_int(stats_of(client).reclaims, 0);
    check_int(stats_of(client).losses, 0);
}

static void write_it(void *lock)
{
    const hl_fenced_write write = {
        .size = sizeof write, .key = "data", .value = "7", .value_length = 1};

    expect_ok(hl_lock_set_and_release(lock, NULL, &write, ERR));
}

GraceLaw(writes_for_a_hold_that_the_server_lost)
{
    hl_client *client = open_client(GRACEFUL());
    hl_lock *lock = new_lock(client, "stock");
    struct actor *holder = actor_start();

    await_grace(client);
    expect_ok(actor_acquire(holder, lock, WAITING));
    end_while_it_restarts(client, holder, write_it, lock);
    check_int(redis_int(server, "GET data"), 7);
}

/* Of a release with a value that may come too late. */
static atomic_int write_code;

static void try_write(void *lock)
{
    const hl_fenced_write write = {
        .size = sizeof write, .key = "data", .value = "7", .value_length = 1};

    write_code = hl_lock_set_and_release(lock, NULL, &write, NULL);
}

static void try_write_late(void *lock)
{
    while (hl_lock_validity_ms(lock, NULL) > LEASE_MS / 4)
        deadline_nap();
    try_write(lock);
}

static void expect_written_by_next_only(hl_lock *others)
{
    const hl_fenced_write write = {
        .size = sizeof write, .key = "data", .value = "8", .value_length = 1};

    expect_ok(hl_lock_acquire(others, ERR));
    expect_ok(hl_lock_set_and_release(others, NULL, &write, ERR));
    redis_do(server, "SAVE");
    redis_server_restart(server);
}

/* The release was called while the hold lasted, without a connection; it is sent when the lease was
 * over before the failover, and another client has had the lock. */
GraceLaw(writes_nothing_for_a_hold_that_ended_before_the_failover)
{
    struct proxy *proxy = new_proxy();
    hl_client *client = open_client_at(proxy_url(proxy), GRACEFUL());
    hl_client *other = open_client(GRACEFUL());
    hl_lock *lock = new_lock(client, "stock");
    struct actor *holder = actor_start();

    await_grace(client);
    expect_ok(actor_acquire(holder, lock, ACQUIRE(.wait_ms = -1, .lease_ms = LEASE_MS)));
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    actor_begin(holder, try_write_late, lock);
    expect_written_by_next_only(new_lock(other, "stock"));
    proxy_refuse(proxy, false);
    actor_await(holder);
    check(write_code < 0);
    check_int(redis_int(server, "GET data"), 8);
}

/* The first copy of the release has run at the old server, and its answer was lost. */
GraceLaw(writes_nothing_for_a_hold_that_was_released_before_the_failover)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_FENCE_RELEASE);
    struct proxy *proxy = new_proxy();
    hl_client *client = open_client_at(proxy_url(proxy), GRACEFUL());
    hl_client *other = open_client(GRACEFUL());
    hl_lock *lock = new_lock(client, "stock");
    struct actor *holder = actor_start();

    await_grace(client);
    expect_ok(actor_acquire(holder, lock, WAITING));
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    actor_begin(holder, try_write, lock);
    check(redis_wait_int(server, 7, 20000, "GET data"));
    expect_written_by_next_only(new_lock(other, "stock"));
    proxy_kill_all(proxy); /* and the answer with it */
    proxy_pass(proxy);
    actor_await(holder);
    check_int(write_code, HL_EINDOUBT);
    check_int(redis_int(server, "GET data"), 8);
}

static hl_permits *permits;
static hl_permit taken[3];

static void release_two(void *arg)
{
    (void)arg;
    expect_ok(hl_permits_release_many(permits, taken, 2, ERR));
}

/* The data set has one of them. */
static void take_three(hl_client *client)
{
    expect_ok(hl_permits_new(client, "slots", &permits, ERR));
    free_at_end(permits, (void (*)(void *))hl_permits_free);
    expect_ok(hl_permits_set_total(permits, 3, 0, ERR));
    expect_ok(hl_permits_acquire(permits, &taken[0], ERR));
    redis_do(server, "SAVE");
    expect_ok(hl_permits_acquire_many(permits, 2, NULL, &taken[1], ERR));
}

static struct actor *give_two_back_in_an_outage(hl_client *client)
{
    struct actor *actor = actor_start();

    redis_server_kill(server);
    while (stats_of(client).nodes_now > 0)
        deadline_nap();
    actor_begin(actor, release_two, NULL);
    while (hl_permits_is_held(permits, &taken[0]) || hl_permits_is_held(permits, &taken[1]))
        deadline_nap();
    return actor;
}

static void expect_two_are_back(hl_client *client, struct actor *actor)
{
    int64_t count = 0;

    actor_await(actor);
    check_int(stats_of(client).losses, 0);
    wait_stat(client, reclaims, 3);
    check(hl_permits_is_held(permits, &taken[2]));
    expect_ok(hl_permits_available(permits, &count, ERR));
    check_int(count, 2);
    expect_ok(hl_permits_release(permits, &taken[2], ERR));
}

/* They are given back while the server is down; it comes back with one of them, and another one
 * that stays. */
GraceLaw(reports_a_release_of_several_permits_of_which_the_server_lost_one_as_one)
{
    hl_client *client = open_client(GRACEFUL());

    await_grace(client);
    take_three(client);
    struct actor *actor = give_two_back_in_an_outage(client);
    redis_server_restart(server);
    expect_two_are_back(client, actor);
}

/* The server that comes back knows the script of the release, and not yet that of the reclaim,
 * which therefore runs later than it was sent. */
GraceLaw(gives_several_permits_back_when_they_are_reclaimed_and_no_sooner)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_PERMIT_RELEASE);
    struct proxy *proxy = new_proxy();
    hl_client *client = open_client_at(proxy_url(proxy), GRACEFUL());

    await_grace(client);
    take_three(client);
    proxy_refuse(proxy, true);
    struct actor *actor = give_two_back_in_an_outage(client);
    redis_server_restart(server);
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    proxy_refuse(proxy, false);
    expect_two_are_back(client, actor);
}
