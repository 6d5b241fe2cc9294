/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Races of an instruction or two, which no test can force: many rounds, so that a sanitizer, or a
 * call that never ends, shows them.
 */
#include "lease/calls/async.h"
#include "lease/calls/client.h"
#include "support/actor.h"
#include "support/kit.h"
#include "support/proxy.h"

struct cancelled {
    hl_cancel *cancel;
    atomic_int code; /* 1: not told yet */
};

static void free_its_cancel(int code, const hl_error *err, void *arg)
{
    struct cancelled *call = arg;
    (void)err;
    hl_cancel_free(call->cancel);
    call->code = code;
}

static bool is_told(void *arg)
{
    return ((struct cancelled *)arg)->code != 1;
}

static atomic_int looks;

static bool look_and_count(struct hli_wait *wait, hli_ns now)
{
    (void)wait, (void)now;
    looks++;
    return false;
}

static void nobody_finished(struct hli_wait *wait)
{
    (void)wait;
}

static void nothing_freed(struct hli_async *async)
{
    (void)async;
}

static void timer_passed(void *passed)
{
    *(atomic_bool *)passed = true;
}

static bool has_passed(void *passed)
{
    return *(atomic_bool *)passed;
}

/* The loop has run all tasks that were due before this. */
static void await_loop(hl_client *client)
{
    atomic_bool passed = false;
    struct hli_timer timer = {.run = timer_passed, .arg = &passed};
    hli_timer_set(client->loop, &timer, hli_now());
    check(wait_until(has_passed, &passed, 5000));
}

static void look_for_cancels(void *client)
{
    hli_waits_check(client);
}

/* As if its thread stood still between saying that the loop looks after it and setting the timer,
 * which alone has the reference that a look uses up. */
Law(schedules_races, a_cancel_sets_no_timer_that_its_call_has_not_set)
{
    hl_client *client = open_client(NULL);
    struct hli_task task = {.run = look_for_cancels, .arg = client};
    hl_cancel *cancel = new_cancel();
    struct hli_async async = {.has_timer = true};
    struct hli_wait wait;
    hli_wait_init(&wait, client, HL_WAIT_FOREVER, NULL);
    hli_async_init(&async, &wait, nothing_freed);
    wait.check = look_and_count;
    wait.finished = nobody_finished;
    wait.timer = &async.timer;
    hli_wait_attach(&wait, cancel);
    hl_cancel_fire(cancel);
    hli_loop_post(client->loop, &task);
    await_loop(client);
    await_loop(client);
    check_int(looks, 0);
    async.has_timer = false;
    hli_async_look_after(&async);
    await_loop(client);
    check(looks > 0); /* its own first look finds the cancel fired */
    hli_wait_detach(&wait);
    hli_timer_clear(client->loop, &async.timer);
}

/* How long the firing thread spins after the start, in rounds of a loop. */
static atomic_int fire_now, fire_after;
static hl_cancel *to_fire;

static void job_fire(void *arg)
{
    (void)arg;
    while (!fire_now)
        ;
    for (volatile int i = 0; i < fire_after; i++)
        ;
    hl_cancel_fire(to_fire);
}

static void cancel_at_any_moment(hl_lock *lock, hl_owner *owner, struct actor *actor, int round)
{
    struct cancelled call = {.code = 1};
    expect_ok(hl_cancel_new(&call.cancel));
    to_fire = call.cancel;
    fire_now = 0;
    fire_after = round % 200 * 20;
    actor_begin(actor, job_fire, NULL);
    fire_now = 1;
    expect_ok(hl_lock_acquire_async(
        lock, ACQUIRE(.owner = owner, .cancel = call.cancel, .wait_ms = HL_WAIT_FOREVER),
        free_its_cancel, &call));
    check(wait_until(is_told, &call, 10000));
    expect_outcome(call.code, HL_ECANCELED);
    actor_await(actor);
}

Law(schedules_races, a_cancel_fired_at_any_moment_ends_an_async_call)
{
    enum { ROUNDS = 1000 };
    hl_client *client = open_client(NULL), *other = open_client(NULL);
    hl_lock *lock = new_lock(client, "held");
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    expect_ok(hl_lock_acquire(new_lock(other, "held"), NULL));
    for (int round = 0; round < ROUNDS; round++)
        cancel_at_any_moment(lock, owner, actor, round);
    check_int(stats_of(client).cancels, ROUNDS);
}

static void greeted_up(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true, .password = "secret"});
}

static atomic_bool may_stop;
static atomic_int greeted_names;

static void job_take_new_names(void *arg)
{
    hl_client *client = arg;
    while (!may_stop) {
        hl_lock *lock = NULL;
        char name[32];
        snprintf(name, sizeof name, "n:%d", greeted_names++);
        expect_ok(hl_lock_new(client, name, &lock, NULL));
        hl_error err = HL_ERROR_INIT;
        int rc = hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 60000), &err);
        check_msg(rc != HL_EDENIED && rc != HL_ESERVER, "it was %s", err.text);
        free_lock(lock);
    }
}

Test(schedules_races, nothing_goes_out_on_a_new_connection_before_its_handshake, .init = greeted_up,
     .fini = server_down)
{
    enum { ACTORS = 8, KILLS = 60 };
    struct proxy *proxy = proxy_start_before(server);
    char url[128];
    snprintf(url, sizeof url, "redis://:secret@127.0.0.1:%d/5", proxy_port(proxy));
    hl_client *client = open_client_at(url, CLIENT(.backoff_min_ms = 1, .backoff_max_ms = 1));
    for (int i = 0; i < ACTORS; i++)
        actor_begin(actor_start(), job_take_new_names, client);
    proxy_delay(proxy, PROXY_EVERY, PROXY_UP, 2);
    for (uint64_t i = 1; i <= KILLS; i++) {
        proxy_kill_all(proxy);
        wait_stat(client, reconnects, i);
    }
    may_stop = true;
    actors_stop();
    check_int(redis_int(server, "DBSIZE"), 0); /* of database 0 */
    check(strstr(redis_str(server, "INFO keyspace"), "db5:") != NULL);
    close_client(client);
    proxy_stop(proxy);
}
