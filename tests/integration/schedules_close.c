/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Calls that meet a close: whatever the moment, each ends, and is told once. */

#include "lease/calls/call.h"
#include "lease/calls/client.h"
#include "support/actor.h"
#include "support/kit.h"
#include "support/recorder.h"
#include "timer_block.h"

#include <semaphore.h>

static struct recorder told = RECORDER_INIT;

static int inspected;

static void job_inspect(void *lock)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    inspected = hl_lock_inspect(lock, &info, NULL);
}

static void job_close(void *client)
{
    expect_ok(hl_client_close(client));
}

static bool is_closing(void *client)
{
    return atomic_load(&((hl_client *)client)->is_closed);
}

static bool has_two_calls(void *arg)
{
    hl_client *client = arg;
    const struct hli_call *call;
    int count = 0;
    pthread_mutex_lock(&client->calls_mutex);
    TAILQ_FOREACH (call, &client->calls, link)
        count++;
    pthread_mutex_unlock(&client->calls_mutex);
    return count == 2;
}

static bool is_retry_due(void *arg)
{
    return hli_now() >= ((hl_client *)arg)->calls_timer.node.at;
}

static void expect_cancelled_by_close(int64_t outage_timeout_ms)
{
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    struct timer_block block;
    struct actor *caller = actor_start(), *closer = actor_start();
    told.text[0] = '\0';
    expect_ok(hl_client_open(
        "unix:///nowhere/at/all.sock",
        CLIENT(.flags = HL_CLIENT_LAZY, .outage_timeout_ms = outage_timeout_ms), &client, NULL));
    expect_ok(hl_lock_new(client, "inspected", &lock, NULL));
    timer_block_begin(&block, client);
    actor_begin(caller, job_inspect, lock);
    expect_ok(hl_lock_inspect_async(lock, record_info, &told));
    check(wait_until(has_two_calls, client, 5000));
    actor_begin(closer, job_close, client);
    check(wait_until(is_closing, client, 5000));
    check(wait_until(is_retry_due, client, 5000));
    sem_post(&block.may_go);
    actor_await(closer);
    actor_await(caller);
    expect_outcome(inspected, HL_ECANCELED);
    expect_story(&told, "info HL_ECANCELED");
    hl_lock_free(lock);
    actor_stop(caller);
    actor_stop(closer);
}

Law(schedules_close, a_call_that_waits_for_a_server_ends_with_the_close)
{
    expect_cancelled_by_close(60000);
    expect_cancelled_by_close(-1);
}

static void job_inspect_async(void *lock)
{
    inspected = hl_lock_inspect_async(lock, record_info, &told);
}

static bool is_inside(void *arg)
{
    return atomic_load(&((hl_client *)arg)->inside) == 1;
}

struct last_task {
    struct hli_task task;
    sem_t ran;
};

static void last_task_run(void *arg)
{
    sem_post(&((struct last_task *)arg)->ran);
}

/* The call has begun, and is held up on its way until the close has ended all that it knew of. */
Law(schedules_close, a_call_that_was_about_to_be_sent_is_told_too)
{
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    struct last_task last = {.task = {.run = last_task_run, .arg = &last}};
    struct actor *caller = actor_start(), *closer = actor_start();
    expect_ok(hl_client_open(redis_server_url(server), NULL, &client, NULL));
    expect_ok(hl_lock_new(client, "inspected", &lock, NULL));
    sem_init(&last.ran, 0, 0);
    pthread_mutex_lock(&client->callbacks.mutex);
    actor_begin(caller, job_inspect_async, lock);
    check(wait_until(is_inside, client, 5000));
    actor_begin(closer, job_close, client);
    check(redis_wait_clients(server, REDIS_NORMAL, 0, 5000));
    hli_loop_post(client->loop, &last.task); /* behind the one that closes the link */
    while (sem_wait(&last.ran) != 0)
        ;
    pthread_mutex_unlock(&client->callbacks.mutex);
    actor_await(closer);
    actor_await(caller);
    expect_ok(inspected);
    expect_story(&told, "info HL_ECANCELED");
    hl_lock_free(lock);
}

struct storm {
    hl_client *client;
    hl_lock *lock;
    hl_owner *owner;
    atomic_int accepted, done;
    int first_kind;
};

static void storm_done(int code, const hl_error *err, void *arg)
{
    (void)code, (void)err;
    ((struct storm *)arg)->done++;
}

static void storm_info(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    (void)info;
    storm_done(code, err, arg);
}

static int storm_call(struct storm *storm, int kind)
{
    switch (kind % 4) {
    case 0:
        return hl_lock_acquire_async(storm->lock, ACQUIRE(.owner = storm->owner), storm_done,
                                     storm);
    case 1:
        return hl_lock_inspect_async(storm->lock, storm_info, storm);
    case 2:
        return hl_lock_release_async(storm->lock, storm->owner, storm_done, storm);
    default:
        return hl_lock_force_release_async(storm->lock, storm_done, storm);
    }
}

static void job_storm(void *arg)
{
    struct storm *storm = arg;
    int rc = 0;
    for (int kind = storm->first_kind; rc == 0; kind++) {
        storm->accepted++;
        rc = storm_call(storm, kind);
        if (rc < 0)
            storm->accepted--;
    }
    expect_outcome(rc, HL_ECLOSED);
}

static bool storm_is_at_work(void *arg)
{
    struct storm *storm = arg;
    return storm->accepted > storm->first_kind % 40;
}

Law(schedules_close, every_async_call_that_was_accepted_is_told_once)
{
    enum { ROUNDS = 200 };
    struct actor *actor = actor_start();
    for (int round = 0; round < ROUNDS; round++) {
        struct storm storm = {.first_kind = round};
        expect_ok(hl_client_open(redis_server_url(server), NULL, &storm.client, NULL));
        expect_ok(hl_lock_new(storm.client, "stormy", &storm.lock, NULL));
        expect_ok(hl_owner_new(storm.client, &storm.owner));
        actor_begin(actor, job_storm, &storm);
        check(wait_until(storm_is_at_work, &storm, 5000));
        expect_ok(hl_client_close(storm.client));
        actor_await(actor);
        check_int(storm.done, storm.accepted);
        hl_owner_free(storm.owner);
        hl_lock_free(storm.lock);
        redis_do(server, "FLUSHALL");
    }
}
