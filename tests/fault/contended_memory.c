/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Allocations that fail while two threads pass a lock between them and a third, of another client,
 * takes its turns: whatever is not done for want of memory, nobody is let in beside another, and
 * nobody is forgotten. */
#include "memory_kit.h"

#include "support/kinds.h"
#include <sched.h>
#include <semaphore.h>

enum { THREADS = 3, TURNS = 5, STORM_MS = 1000, WAIT_MS = 5000 };

static int files_before;

static void start(void)
{
    memory_up();
    redis_do(server, "PING");
    files_before = census_files();
}

static int64_t lease_ms(void)
{
    return slow_ms(900) + 1100;
}

struct scene {
    hl_client *client[2];
    atomic_int inside;
    atomic_bool is_over;
    uint64_t passes, grants, retained; /* in all runs */
    sem_t may_go;
    struct runner {
        struct scene *scene;
        hl_lock *lock;
        int turns; /* 0: until it is over */
        atomic_int entered;
        pthread_t thread;
    } runner[THREADS];
};

/* Without memory nothing was sent, and it is held still. */
static void runner_release(struct runner *runner)
{
    int code;
    do {
        code = hl_lock_release(runner->lock, NULL);
    } while (code == HL_ENOMEM);
    check_msg(code == HL_OK || (runner->turns == 0 && (code == HL_ELOST || code == HL_EINDOUBT)),
              "%s", hl_err_name(code));
}

/* A look at the hold, last: what was lost for want of a renewal is believed no more. */
static void runner_hold(struct runner *runner)
{
    int others = atomic_fetch_add(&runner->scene->inside, 1);
    sched_yield();
    check_msg(others == 0 || !hl_lock_is_held(runner->lock, NULL), "%d others are inside", others);
    atomic_fetch_add(&runner->entered, 1);
    atomic_fetch_sub(&runner->scene->inside, 1);
    runner_release(runner);
}

static bool runner_goes_on(const struct runner *runner)
{
    return runner->turns > 0 ? atomic_load(&runner->entered) < runner->turns
                             : !atomic_load(&runner->scene->is_over);
}

static void *runner_run(void *arg)
{
    struct runner *runner = arg;
    while (sem_wait(&runner->scene->may_go) != 0)
        ;
    while (runner_goes_on(runner)) {
        int code = hl_lock_acquire_for(runner->lock, slow_ms(WAIT_MS), NULL);
        check_msg(code == HL_OK || code == HL_ENOMEM || (runner->turns == 0 && code == HL_ECONN),
                  "%s", hl_err_name(code));
        if (code == HL_OK)
            runner_hold(runner);
    }
    return NULL;
}

static hl_lock *scene_lock(hl_client *client)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *lock = NULL;
    options.flags = HL_LOCK_ASYNC_RELEASE;
    options.retain_ms = 5;
    expect_ok(lock_new_with(client, "passed", &options, &lock, ERR));
    return lock;
}

static void scene_start(struct scene *scene, int turns)
{
    hl_client_options options = kit_options(lease_ms(), NULL);
    sem_init(&scene->may_go, 0, 0);
    for (int i = 0; i < 2; i++)
        scene->client[i] = open_client(&options);
    for (int i = 0; i < THREADS; i++) {
        struct runner *runner = &scene->runner[i];
        *runner = (struct runner){.scene = scene, .turns = turns};
        runner->lock = scene_lock(scene->client[i / 2]);
        runner->thread = kit_thread(runner_run, runner);
    }
}

static void scene_go(struct scene *scene)
{
    for (int i = 0; i < THREADS; i++)
        sem_post(&scene->may_go);
}

static void scene_join(struct scene *scene)
{
    for (int i = 0; i < THREADS; i++)
        check_int(pthread_join(scene->runner[i].thread, NULL), 0);
}

/* Nothing is left, at the latest when a lease and a place in the queue have ended by themselves. */
static void scene_end(struct scene *scene)
{
    for (int i = 0; i < 2; i++) {
        hl_stats stats = stats_of(scene->client[i]);
        scene->passes += stats.passes;
        scene->grants += stats.grants;
        scene->retained += stats.retained;
    }
    for (int i = 0; i < THREADS; i++)
        free_lock(scene->runner[i].lock);
    for (int i = 0; i < 2; i++)
        close_client(scene->client[i]);
    kit_expect_no_threads();
    check_int(census_files(), files_before);
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
}

static void sweep_prepare(void *arg)
{
    scene_start(arg, TURNS);
}

static void sweep_run(void *arg)
{
    scene_go(arg);
    scene_join(arg);
}

static void sweep_verify(void *arg, bool failed)
{
    (void)failed;
    scene_end(arg);
}

Test(contended_memory, one_failure_costs_no_waiter_a_turn, .init = start, .fini = memory_down)
{
    struct scene scene = {.passes = 0};
    long failures = failing_malloc_sweep(&(struct failing_scenario){.scope = FAILING_PROCESS,
                                                                    .prepare = sweep_prepare,
                                                                    .run = sweep_run,
                                                                    .verify = sweep_verify,
                                                                    .arg = &scene});
    check(failures >= 20);
    check_msg(scene.passes > 0 && scene.grants > 0, "%d passes, %d grants", (int)scene.passes,
              (int)scene.grants);
}

struct turn {
    struct runner *runner;
    int entered;
};

static bool turn_has_come(void *arg)
{
    const struct turn *turn = arg;
    return atomic_load(&turn->runner->entered) >= turn->entered;
}

/* Afterwards each has its turn, at the latest when a lease is over whose release was lost. */
Test(contended_memory, a_time_without_memory_forgets_no_waiter, .init = start, .fini = memory_down)
{
    struct scene scene = {.passes = 0};
    struct deadline deadline = deadline_in(STORM_MS);
    scene_start(&scene, 0);
    scene_go(&scene);
    while (!deadline_is_over(deadline)) {
        failing_malloc_arm(FAILING_PROCESS, 0);
        deadline_nap();
    }
    failing_malloc_disarm();
    for (int i = 0; i < THREADS; i++) {
        struct runner *runner = &scene.runner[i];
        struct turn turn = {runner, atomic_load(&runner->entered) + 2};
        check_msg(wait_until(turn_has_come, &turn, 900 + 1500), "thread %d waits", i);
    }
    atomic_store(&scene.is_over, true);
    scene_join(&scene);
    scene_end(&scene);
    check(scene.passes + scene.grants + scene.retained > 0);
}
