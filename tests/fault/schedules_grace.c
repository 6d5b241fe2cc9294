/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A thread that decides to send a request in one term of the server, loses its core, and sends it
 * in the next one: the linker puts a stop in front of hli_link_send() for it.
 */
#include "lease/state/grace.h"
#include "stop_before_sending.h"
#include "support/actor.h"
#include "support/grace.h"

hli_ns __real_hli_grace_until(const struct hli_name *name, hli_ns now);
hli_ns __wrap_hli_grace_until(const struct hli_name *name, hli_ns now);

static _Thread_local bool is_to_stop_there;

/* The thread has looked whether there is a grace, and stops before it acts upon that. */
hli_ns __wrap_hli_grace_until(const struct hli_name *name, hli_ns now)
{
    hli_ns until = __real_hli_grace_until(name, now);
    bool stops = is_to_stop_there;

    is_to_stop_there = false;
    if (stops) {
        has_stopped = true;
        wait_until(is_set, &may_go_on, 60000);
        has_sent = true; /* soon */
    }
    return until;
}

static hl_client *client;
static hl_lock *lock;

static const hl_client_options *graceful(void)
{
    static hl_client_options used;

    used = *CLIENT(.failover_grace_ms = slow_ms(4000), .watchdog_timeout_ms = slow_ms(4000),
                   .backoff_max_ms = 100, .outage_timeout_ms = slow_ms(60000),
                   .request_timeout_ms = slow_ms(20000));
    return &used;
}

static void graceful_up(void)
{
    server_up_with(&(struct redis_options){0});
    grace_serve(server, false);
    client = open_client(graceful());
    lock = new_lock(client, "stock");
}

static void job_acquire(void *arg)
{
    (void)arg;
    is_to_stop = true;
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

static void job_look(void *arg)
{
    (void)arg;
    is_to_stop_there = true;
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

/* Whose hold it is, the data set knows that comes back; its release is decided before. */
static void job_release(void *arg)
{
    (void)arg;
    is_to_stop = true;
    expect_ok(hl_lock_release(lock, ERR));
}

/* How the next term begins. A thread that stops with a name's mutex holds up the loop, if that is
 * to tell of a failed attempt to connect: so there the server goes on. */
enum next { EMPTY, OLD_DATA, NEW_TERM };

/* The request that this job decides is sent in the next term. */
static void begin(struct actor *actor, void (*job)(void *arg), enum next next)
{
    has_stopped = may_go_on = has_sent = false;
    actor_begin(actor, job, NULL);
    check(wait_until(is_set, &has_stopped, 20000));
    if (next == NEW_TERM) {
        grace_new_term(server);
    } else {
        redis_server_kill(server);
        if (next == EMPTY)
            redis_server_wipe(server);
        redis_server_restart(server);
    }
    wait_stat(client, graces, 1);
}

/* The server knows the script, as when another client has used it. */
static void go_on(void)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE);

    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    may_go_on = true;
    check(wait_until(is_set, &has_sent, 20000));
    expect_ok(hl_client_ping(client, -1, NULL)); /* what was sent has run */
}

#define GraceLaw(...) Test(schedules_grace, __VA_ARGS__, .init = graceful_up, .fini = server_down)

GraceLaw(a_request_that_was_decided_before_takes_nothing_in_the_grace)
{
    struct actor *actor = actor_start();

    begin(actor, job_acquire, EMPTY);
    go_on();
    check_int(redis_int(server, "EXISTS stock"), 0);
    check(!actor_is_done(actor));
    actor_await(actor); /* the grace is over */
    expect_free(lock);
}

GraceLaw(a_request_that_was_judged_before_takes_nothing_in_the_grace)
{
    struct actor *actor = actor_start();

    begin(actor, job_look, NEW_TERM);
    go_on();
    check_int(redis_int(server, "EXISTS stock"), 0);
    check(!actor_is_done(actor));
    actor_await(actor);
    expect_free(lock);
}

/* A waiter stands in the queue of the data set that comes back, and listens. */
GraceLaw(a_release_that_was_decided_before_grants_nothing_in_the_grace)
{
    hl_client *other = open_client(graceful());
    struct actor *holder = actor_start();
    struct actor *waiter;
    char mailbox[64];

    expect_ok(actor_acquire(holder, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER)));
    waiter = actor_start_acquire(new_lock(other, "stock"), ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_int(server, 1, 20000, "ZCARD hirelock_queue:{stock}"));
    redis_do(server, "SAVE");
    begin(holder, job_release, OLD_DATA);
    check_int(redis_int(server, "ZCARD hirelock_queue:{stock}"), 1);
    snprintf(mailbox, sizeof mailbox, "hirelock:%s", hl_client_id(other));
    check(redis_wait_subscribers(server, mailbox, 1, 20000));
    go_on();
    actor_await(holder);
    check_int(redis_int(server, "EXISTS stock"), 0);
    check(!actor_is_done(waiter));
    expect_ok(actor_end(waiter));
    check_int(stats_of(client).losses, 0);
}

static void job_only_release(void *arg)
{
    (void)arg;
    expect_ok(hl_lock_release(lock, ERR));
}

static void server_learns(hli_script_id id)
{
    const struct hli_script *script = hli_script_get(id);

    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
}

static bool has_released(void *arg)
{
    (void)arg;
    return redis_evalsha_calls(server) > 1; /* the reclaim was the first one */
}

/* The loop's thread has decided to reclaim the hold, and another thread releases it meanwhile: when
 * the server did not know the script at first. */
GraceLaw(a_reclaim_that_its_release_has_overtaken_writes_nothing)
{
    struct actor *holder = actor_start();

    expect_ok(actor_acquire(holder, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER)));
    has_stopped = may_go_on = has_sent = false;
    sends_to_pass = 1;
    script_to_stop = HLI_SCRIPT_LOCK_RECLAIM;
    redis_server_kill(server);
    redis_server_wipe(server);
    redis_server_restart(server);
    check(wait_until(is_set, &has_stopped, 20000));
    server_learns(HLI_SCRIPT_LOCK_RELEASE);
    server_learns(HLI_SCRIPT_LOCK_RECLAIM);
    actor_begin(holder, job_only_release, NULL);
    check(wait_until(has_released, NULL, 20000));
    may_go_on = true;
    actor_await(holder);
    expect_ok(hl_client_ping(client, -1, NULL)); /* what was sent has run */
    check_int(redis_int(server, "EXISTS stock"), 0);
    check_int(stats_of(client).reclaims, 0);
}
