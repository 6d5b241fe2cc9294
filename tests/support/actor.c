/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Threads that do as they are told. */

#include "actor.h"

#include "test.h"

#include <pthread.h>

enum { ACTORS = 256 };

struct actor {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the next group */
    pthread_cond_t cond;
    void (*job)(void *arg); /* NULL: it has none */
    void *arg;
    bool is_stopping;

    hl_lock *lock; /* of the call under way */
    hl_acquire_options options;
    uint64_t token;
    hl_owner *owner;
    int code;
    bool holds;
    hl_error err;
    int64_t began_ns, ended_ns;
};

static struct actor *actors[ACTORS];

static void *actor_run(void *arg)
{
    struct actor *actor = arg;
    pthread_mutex_lock(&actor->mutex);
    while (!actor->is_stopping || actor->job) {
        if (!actor->job) {
            pthread_cond_wait(&actor->cond, &actor->mutex);
            continue;
        }
        pthread_mutex_unlock(&actor->mutex);
        actor->job(actor->arg);
        pthread_mutex_lock(&actor->mutex);
        actor->job = NULL;
        pthread_cond_broadcast(&actor->cond);
    }
    pthread_mutex_unlock(&actor->mutex);
    return NULL;
}

struct actor *actor_start(void)
{
    struct actor *actor = calloc(1, sizeof *actor);
    check(actor != NULL);
    pthread_mutex_init(&actor->mutex, NULL);
    pthread_cond_init(&actor->cond, NULL);
    check_int(pthread_create(&actor->thread, NULL, actor_run, actor), 0);
    for (int i = 0; i < ACTORS; i++)
        if (!actors[i]) {
            actors[i] = actor;
            return actor;
        }
    check_msg(false, "more than %d actors", ACTORS);
    return NULL;
}

void actor_stop(struct actor *actor)
{
    for (int i = 0; i < ACTORS; i++)
        if (actors[i] == actor)
            actors[i] = NULL;
    pthread_mutex_lock(&actor->mutex);
    actor->is_stopping = true;
    pthread_cond_broadcast(&actor->cond);
    pthread_mutex_unlock(&actor->mutex);
    pthread_join(actor->thread, NULL);
    pthread_cond_destroy(&actor->cond);
    pthread_mutex_destroy(&actor->mutex);
    free(actor);
}

void actors_stop(void)
{
    for (int i = 0; i < ACTORS; i++)
        if (actors[i])
            actor_stop(actors[i]);
}

void actor_begin(struct actor *actor, void (*job)(void *arg), void *arg)
{
    pthread_mutex_lock(&actor->mutex);
    check(actor->job == NULL);
    actor->job = job;
    actor->arg = arg;
    pthread_cond_broadcast(&actor->cond);
    pthread_mutex_unlock(&actor->mutex);
}

bool actor_is_done(struct actor *actor)
{
    pthread_mutex_lock(&actor->mutex);
    bool done = actor->job == NULL;
    pthread_mutex_unlock(&actor->mutex);
    return done;
}

void actor_await(struct actor *actor)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += slow_ms(60000) / 1000;
    pthread_mutex_lock(&actor->mutex);
    while (actor->job && rc == 0)
        rc = pthread_cond_timedwait(&actor->cond, &actor->mutex, &until);
    check_msg(!actor->job, "the actor is still at its job");
    pthread_mutex_unlock(&actor->mutex);
}

void actor_do(struct actor *actor, void (*job)(void *arg), void *arg)
{
    actor_begin(actor, job, arg);
    actor_await(actor);
}

static void job_acquire(void *arg)
{
    struct actor *actor = arg;
    actor->err = (hl_error)HL_ERROR_INIT;
    actor->began_ns = now_ns();
    actor->code = hl_lock_acquire_with(actor->lock, &actor->options, &actor->err);
    actor->ended_ns = now_ns();
    actor->token = hl_lock_token(actor->lock, actor->options.owner);
}

static void job_release(void *arg)
{
    struct actor *actor = arg;
    actor->err = (hl_error)HL_ERROR_INIT;
    actor->began_ns = now_ns();
    actor->code = hl_lock_release_as(actor->lock, actor->owner, &actor->err);
    actor->ended_ns = now_ns();
}

static void job_look(void *arg)
{
    struct actor *actor = arg;
    actor->holds = hl_lock_is_held(actor->lock, actor->owner);
}

void actor_begin_acquire(struct actor *actor, hl_lock *lock, const hl_acquire_options *options)
{
    actor->lock = lock;
    actor->options = *options;
    actor_begin(actor, job_acquire, actor);
}

struct actor *actor_start_acquire(hl_lock *lock, const hl_acquire_options *options)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, options);
    return actor;
}

int actor_end(struct actor *actor)
{
    actor_await(actor);
    return actor->code;
}

const char *actor_error(struct actor *actor)
{
    actor_await(actor);
    return actor->err.text;
}

int64_t actor_ended_ns(struct actor *actor)
{
    actor_await(actor);
    return actor->ended_ns;
}

int64_t actor_took_ms(struct actor *actor)
{
    actor_await(actor);
    return (actor->ended_ns - actor->began_ns) / 1000000;
}

uint64_t actor_token(struct actor *actor)
{
    actor_await(actor);
    return actor->token;
}

const hl_lock_info *actor_busy(struct actor *actor)
{
    actor_await(actor);
    return &actor->err.busy;
}

int actor_acquire(struct actor *actor, hl_lock *lock, const hl_acquire_options *options)
{
    actor_begin_acquire(actor, lock, options);
    return actor_end(actor);
}

int actor_release(struct actor *actor, hl_lock *lock, hl_owner *owner)
{
    actor->lock = lock;
    actor->owner = owner;
    actor_do(actor, job_release, actor);
    return actor->code;
}

bool actor_holds(struct actor *actor, hl_lock *lock, const hl_owner *owner)
{
    actor->lock = lock;
    actor->owner = (hl_owner *)(uintptr_t)owner;
    actor_do(actor, job_look, actor);
    return actor->holds;
}
