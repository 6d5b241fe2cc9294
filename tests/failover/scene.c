/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The rounds of a scene, and its verdict. */
#include "scene.h"

#include <stdio.h>

#include "support/history.h"
#include "support/test.h"

enum { SCENE_PATIENCE_MS = 60000, SCENE_HOLDS = 20, /* of a stage, at least */ SCENE_TRIES = 10 };

static const hl_lock_kind scene_kinds[SCENE_NAMES] = {
    HL_LOCK_REENTRANT, HL_LOCK_FENCED, HL_LOCK_FAIR, HL_LOCK_WRITE, /* unheard */
    HL_LOCK_REENTRANT, HL_LOCK_WRITE,                               /* heard */
    HL_LOCK_REENTRANT, HL_LOCK_FENCED, HL_LOCK_FAIR, HL_LOCK_WRITE};

static void scene_name_all(struct scene *scene)
{
    for (int i = 0; i < SCENE_NAMES; i++) {
        scene->name[i].kind = scene_kinds[i];
        snprintf(scene->name[i].text, sizeof scene->name[i].text, "%s-%d%s",
                 i < SCENE_LONG ? "long" : "short", i, scene->tag);
    }
}

struct scene_stage {
    struct scene *scene;
    int names;      /* the long names that change hands in it */
    uint64_t holds; /* before it */
    int64_t end_ns; /* not before */
};

static bool stage_is_over(void *arg)
{
    const struct scene_stage *stage = arg;
    struct scene *scene = stage->scene;
    for (int i = 0; i < stage->names; i++)
        if (atomic_load(&scene->name[i].taken) != atomic_load(&scene->name[i].turn))
            return false;
    return atomic_load(&scene->holds) >= stage->holds + SCENE_HOLDS && now_ns() >= stage->end_ns;
}

/* The first long names change hands, and others are held and released meanwhile. */
static void scene_stage(struct scene *scene, int names, int64_t ms)
{
    struct scene_stage stage = {.scene = scene,
                                .names = names,
                                .holds = atomic_load(&scene->holds),
                                .end_ns = now_ns() + ms * 1000000};
    for (int i = 0; i < names; i++)
        atomic_fetch_add(&scene->name[i].turn, 1);
    check_msg(wait_until(stage_is_over, &stage, SCENE_PATIENCE_MS), "%s: a name is not taken",
              scene->ending->title);
}

static bool scene_gives_fresh(void *arg)
{
    struct scene *scene = arg;
    return atomic_load(&scene->fresh_ns) > atomic_load(&scene->began_ns);
}

/* Of every hold that was up when the master failed it is known what became of it. */
static bool scene_is_decided(void *arg)
{
    struct scene *scene = arg;
    for (int i = 0; i < SCENE_PROCESSES * SCENE_LONG; i++) {
        struct scene_seat *seat = &scene->seat[i / SCENE_LONG][i % SCENE_LONG];
        int64_t since_ns = atomic_load(&seat->since_ns);
        if (since_ns != 0 && since_ns < atomic_load(&scene->began_ns) &&
            atomic_load(&seat->decided) != atomic_load(&scene->round))
            return false;
    }
    return true;
}

void scene_old_master_ended(struct scene *scene)
{
    atomic_store(&scene->ended_ns, now_ns());
}

void scene_at(struct scene *scene, int i, const char *url)
{
    snprintf(scene->url[i], sizeof scene->url[i], "%s", url);
}

/* From here on the replica hears nothing more. */
static void scene_cut(struct scene *scene)
{
    for (int i = 0; i < SCENE_TRIES; i++) {
        scene->ending->settle(scene);
        scene_stage(scene, SCENE_LONG, 0);
        if (scene->ending->cut(scene))
            return;
    }
    check_msg(false, "%s: the master is replaced again and again", scene->ending->title);
}

static void scene_round(struct scene *scene)
{
    scene_cut(scene);
    scene_stage(scene, SCENE_UNHEARD, SCENE_UNHEARD_MS);
    if (atomic_load(&scene->round) == 0)
        check_int(atomic_load(&scene->old_tokens), 0);
    atomic_store(&scene->ended_ns, 0);
    atomic_store(&scene->began_ns, now_ns());
    uint32_t round = atomic_fetch_add(&scene->round, 1);
    scene->ending->fail(scene);
    check_msg(wait_until(scene_gives_fresh, scene, SCENE_PATIENCE_MS),
              "%s: the next master gives no name", scene->ending->title);
    check_msg(wait_until(scene_is_decided, scene, SCENE_PATIENCE_MS),
              "%s: a hold is neither kept nor lost", scene->ending->title);
    scene->without_ms[round] =
        (atomic_load(&scene->fresh_ns) - atomic_load(&scene->began_ns)) / 1000000;
}

static void scene_judge(struct scene *scene)
{
    struct history *history[SCENE_PROCESSES];
    struct history_overlap overlap = {.longest_ns = 0};
    char path[128];

    for (int i = 0; i < SCENE_PROCESSES; i++) {
        load_history_path(scene, i, path);
        history[i] = history_open(path, LOAD_RECORDS);
    }
    scene->doubles = history_check(history, SCENE_PROCESSES, &overlap);
    scene->longest_double_ns = overlap.longest_ns;
    for (int i = 0; i < SCENE_NAMES; i++) {
        const struct scene_name *name = &scene->name[i];
        uint64_t counter = atomic_load(&name->counter), steps = atomic_load(&name->steps);
        scene->lost_updates += steps > counter ? steps - counter : 0;
        scene->late += atomic_load(&name->late);
    }
    for (int i = 0; i < SCENE_PROCESSES; i++)
        history_close(history[i]);
}

void scene_run(struct process *self, void *arg)
{
    const struct scene_options *options = arg;
    struct scene *scene = process_shared(self);
    struct process *load[SCENE_PROCESSES];

    _Static_assert(sizeof(struct scene) <= PROCESS_SHARED, "it lies there");
    scene->ending = options->ending;
    scene->rounds = options->rounds;
    check(scene->rounds <= SCENE_ROUNDS);
    scene->has_grace = options->has_grace;
    scene->lease_ms = slow_ms(scene->ending->lease_ms);
    scene->ending->start(scene);
    scene_name_all(scene);
    for (int i = 0; i < SCENE_PROCESSES; i++)
        load[i] = process_start(load_run, &(struct load_job){.scene = scene, .index = i});
    for (int i = 0; i < SCENE_PROCESSES; i++)
        check(process_await(load[i], LOAD_HAS_BEGUN, 1, SCENE_PATIENCE_MS));
    for (int i = 0; i < scene->rounds; i++)
        scene_round(scene);
    atomic_store(&scene->stops, true);
    for (int i = 0; i < SCENE_PROCESSES; i++)
        check_int(process_finish(load[i], SCENE_PATIENCE_MS), 0);
    scene_judge(scene);
    scene->ending->stop();
    process_tell(self, SCENE_JUDGED);
}
