/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A semaphore and a latch over a network that loses answers, keeps requests, and is cut. */
#ifndef HL_TEST_SEMAPHORE_SCENE_H
#define HL_TEST_SEMAPHORE_SCENE_H

#include "connection_fixture.h"

enum { PERMITS = 9 };

struct scene {
    struct connection c;
    hl_client *client;
    hl_semaphore *semaphore;
    hl_latch *latch;
};

static inline void scene_connect(struct scene *scene, int64_t outage_ms, int64_t request_ms)
{
    hl_client_options options = connection_options();
    options.outage_timeout_ms = outage_ms;
    options.request_timeout_ms = request_ms;
    scene->client = open_client_at(proxy_url(scene->c.proxy), &options);
    expect_ok(hl_semaphore_new(scene->client, "pool", &scene->semaphore, ERR));
    expect_ok(hl_latch_new(scene->client, "gate", &scene->latch, ERR));
}

/* Every script is loaded by then, so that none of what follows bounces. */
static inline void scene_warm_up(struct scene *scene)
{
    int64_t count;
    expect_ok(hl_semaphore_try_set_permits(scene->semaphore, 0, 0, ERR));
    expect_ok(hl_semaphore_add_permits(scene->semaphore, 3, ERR));
    expect_ok(hl_semaphore_acquire(scene->semaphore, 1, ERR));
    expect_ok(hl_semaphore_release(scene->semaphore, 1, ERR));
    expect_ok(hl_semaphore_drain(scene->semaphore, &count, ERR));
    expect_ok(hl_semaphore_available(scene->semaphore, &count, ERR));
    expect_ok(hl_latch_try_set_count(scene->latch, 2, ERR));
    expect_ok(hl_latch_count_down(scene->latch, ERR));
    expect_ok(hl_latch_delete(scene->latch, ERR));
    expect_ok(hl_latch_await(scene->latch, ERR));
    redis_do(scene->c.server, "SET pool %d", PERMITS);
}

static inline void scene_start(struct scene *scene)
{
    scene->c = connection_start(NULL);
    scene_connect(scene, slow_ms(20000), patience_ms(20000));
    scene_warm_up(scene);
}

/* To let a late command run, the server must be one that refuses CLIENT KILL. A request that the
 * network keeps is given up soon. */
static inline void scene_start_without_kill(struct scene *scene)
{
    scene->c = connection_start(NULL);
    redis_deny(scene->c.server, "default", "client|kill");
    scene_connect(scene, slow_ms(20000), patience_ms(1500));
    scene_warm_up(scene);
}

/* An answer that is held back is waited for. */
static inline void scene_start_patient(struct scene *scene)
{
    scene->c = connection_start(NULL);
    scene_connect(scene, slow_ms(30000), patience_ms(20000));
    scene_warm_up(scene);
}

static inline void scene_stop(struct scene *scene)
{
    hl_semaphore_free(scene->semaphore);
    hl_latch_free(scene->latch);
    close_client(scene->client);
    connection_stop(&scene->c);
}

static inline void expect_permits(struct scene *scene, int permits)
{
    check_int(redis_int(scene->c.server, "GET pool"), permits);
}

static inline void wait_permits(struct scene *scene, int permits)
{
    check(redis_wait_int(scene->c.server, permits, 5000, "GET pool"));
}

/* The answer of what is asked next is lost, and the connection with it. */
static inline void lose_answer(struct scene *scene)
{
    proxy_cut_once(scene->c.proxy, connection_of_commands(&scene->c), PROXY_DOWN, 1, PROXY_RST);
}

static inline void expect_reconnects(struct scene *scene, int count)
{
    wait_stat(scene->client, reconnects, (uint64_t)count);
    check_int(stats_of(scene->client).reconnects, count);
}

static inline bool is_delivered(void *arg)
{
    struct scene *scene = arg;
    return proxy_kept(scene->c.proxy, PROXY_EVERY, PROXY_UP) == 0;
}

/* What the network kept of a connection that was given up arrives, and runs. */
static inline void deliver(struct scene *scene)
{
    int64_t ran = redis_evalsha_calls(scene->c.server);
    check(proxy_kept(scene->c.proxy, PROXY_EVERY, PROXY_UP) > 0);
    proxy_release(scene->c.proxy, PROXY_EVERY, PROXY_UP);
    check(wait_until(is_delivered, scene, 5000));
    check(redis_wait_clients(scene->c.server, REDIS_NORMAL, 1, 5000));
    check(redis_evalsha_calls(scene->c.server) > ran);
}

struct posted {
    atomic_int done;
    atomic_int code;
};

static inline void posted_done(int code, const hl_error *err, void *arg)
{
    struct posted *posted = arg;
    (void)err;
    atomic_store(&posted->code, code);
    atomic_fetch_add(&posted->done, 1);
}

static inline bool posted_are_done(void *arg)
{
    return atomic_load(&((struct posted *)arg)->done) > 0;
}

static inline void posted_wait(struct posted *posted, int code)
{
    check(wait_until(posted_are_done, posted, 5000));
    check_int(atomic_load(&posted->done), 1);
    check_int(atomic_load(&posted->code), code);
}

#endif
