/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A process of the load: threads that hold a name from one failover to behind the next, threads
 * that hold names for a moment, and one that takes names that nobody had before. While a thread
 * holds, it asks whether it still does, before each step of its work; what it believed is in the
 * history up to the last time at which the answer was yes.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "support/deadline.h"
#include "support/fatal.h"
#include "support/history.h"
#include "support/kinds.h"
#include "support/test.h"

enum {
    LOAD_THREADS = SCENE_LONG + SCENE_SHORT_THREADS + 1,
    LOAD_CALM_MS = 4, /* a step, while no master fails; else 1 ms, to see who holds beside */
    LOAD_STEPS = 4    /* of a short hold, at most */
};

struct load {
    struct scene *scene;
    int index; /* of the process */
    hl_client *client;
    struct history *history;
};

struct load_thread {
    struct load *load;
    int index;
    uint64_t dice;
    pthread_t thread;
};

struct load_hold {
    struct load_thread *thread;
    struct scene_name *name;
    hl_lock *lock;
    bool reads;
    struct history_record *record;
    int64_t since_ns;
    int64_t valid_ns; /* by its own clock, as last asked */
};

static unsigned load_roll(struct load_thread *thread, unsigned sides)
{
    thread->dice = thread->dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(thread->dice >> 33) % sides;
}

static void load_nap(const struct scene *scene)
{
    bool is_calm = atomic_load(&scene->fresh_ns) > atomic_load(&scene->began_ns);
    for (int i = 0; i < (is_calm ? LOAD_CALM_MS : 1); i++)
        deadline_nap();
}

static void load_strange(struct scene *scene, const char *what, int code, const char *text)
{
    if (atomic_fetch_add(&scene->strange, 1) == 0)
        snprintf(scene->strange_text, sizeof scene->strange_text, "%s: %s (%s)", what,
                 hl_err_name(code), text);
}

static hl_client *load_open(const struct scene *scene, const char *url)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    options.watchdog_timeout_ms = scene->lease_ms;
    options.outage_timeout_ms = slow_ms(120000);
    if (scene->has_grace) {
        options.old_master_ms = slow_ms(scene->ending->old_master_ms);
        options.failover_grace_ms = scene->lease_ms + options.old_master_ms;
    }
    if (hl_client_open(url, &options, &client, &err) != 0)
        fatal("open %s: %s", url, err.text);
    return client;
}

static hl_lock *load_lock(const struct load *load, const char *name, hl_lock_kind kind)
{
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;
    if (lock_new_of(load->client, LOCK_NAMED(kind, name), NULL, &lock, &err) != 0)
        fatal("%s: %s", name, err.text);
    return lock;
}

/* The time is taken before the question: a stop in between proves nothing too much. */
static bool load_believes(struct load_hold *hold)
{
    int64_t asked_ns = now_ns(), left_ms = hl_lock_validity_ms(hold->lock, NULL);

    if (left_ms == 0)
        return false;
    history_until(hold->record, asked_ns);
    hold->valid_ns = asked_ns + left_ms * 1000000;
    return true;
}

/* What is in the name was there before this owner is asked whether it holds. */
static void load_note_token(struct load_hold *hold)
{
    uint64_t token = hl_lock_token(hold->lock, NULL);
    uint64_t largest = atomic_load(&hold->name->token);

    if (token == 0 || !load_believes(hold))
        return;
    if (token <= largest)
        atomic_fetch_add(&hold->thread->load->scene->old_tokens, 1);
    while (token > largest)
        if (atomic_compare_exchange_weak(&hold->name->token, &largest, token))
            return;
}

/* False when it was not acquired, which is strange. */
static bool load_acquire(struct load_hold *hold)
{
    struct load_thread *thread = hold->thread;
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_acquire(hold->lock, &err);

    if (code != 0) {
        load_strange(thread->load->scene, "acquire", code, err.text);
        deadline_nap();
        return false;
    }
    uint64_t owner = (uint64_t)(thread->load->index * LOAD_THREADS + thread->index);
    uint32_t lock = (uint32_t)(hold->name - thread->load->scene->name);
    hold->record = hold->reads ? history_enter_shared(thread->load->history, lock, owner)
                               : history_enter(thread->load->history, lock, owner);
    history_until(hold->record, 1); /* nothing is believed yet */
    hold->since_ns = now_ns();
    atomic_fetch_add(&thread->load->scene->holds, 1);
    if (hold->name->kind == HL_LOCK_FENCED)
        load_note_token(hold);
    return true;
}

/* As a careful user works: it adds one to the counter, if it holds the name when it writes. */
static bool load_step(struct load_hold *hold)
{
    struct scene_name *name = hold->name;
    uint64_t counter = atomic_load(&name->counter);

    if (!load_believes(hold))
        return false;
    load_nap(hold->thread->load->scene);
    if (!load_believes(hold))
        return false;
    if (hold->reads)
        return true;
    atomic_store(&name->counter, counter + 1);
    atomic_fetch_add(&name->steps, 1);
    if (!load_believes(hold))
        atomic_fetch_add(&name->late, 1);
    return true;
}

static void load_release(struct load_hold *hold)
{
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_release(hold->lock, &err);

    if (code != 0 && code != HL_ELOST && code != HL_EINDOUBT)
        load_strange(hold->thread->load->scene, "release", code, err.text);
}

/* The old master granted nothing for longer than a lease behind its end. */
static bool load_is_the_next_masters(const struct scene *scene, int64_t valid_ns)
{
    int64_t ended_ns = atomic_load(&scene->ended_ns);
    return ended_ns > 0 && valid_ns > ended_ns + scene->lease_ms * 1000000;
}

/* Once for each failure of a master that came while it was held. */
static void seat_decide(struct scene_seat *seat, const struct load_hold *hold, bool is_held)
{
    struct scene *scene = hold->thread->load->scene;
    bool is_unheard = hold->name < scene->name + SCENE_UNHEARD;
    struct scene_fates *fates = is_unheard ? &scene->unheard : &scene->heard;
    uint32_t round = atomic_load(&scene->round);

    if (round == atomic_load(&seat->decided) || hold->since_ns > atomic_load(&scene->began_ns))
        return;
    if (is_held && !load_is_the_next_masters(scene, hold->valid_ns))
        return;
    atomic_fetch_add(is_held ? &fates->kept : &fates->lost, 1);
    atomic_store(&seat->decided, round);
}

static void seat_sit(struct scene_seat *seat, struct load_hold *hold)
{
    const struct scene *scene = hold->thread->load->scene;
    bool is_held = true;

    if (!load_acquire(hold))
        return;
    uint32_t turn = atomic_load(&hold->name->turn);
    atomic_store(&seat->since_ns, hold->since_ns);
    atomic_store(&hold->name->taken, turn);
    while (is_held && turn == atomic_load(&hold->name->turn) && !atomic_load(&scene->stops)) {
        is_held = load_step(hold);
        seat_decide(seat, hold, is_held);
    }
    load_release(hold);
    atomic_store(&seat->since_ns, 0);
}

static void load_be_long(struct load_thread *thread)
{
    struct scene *scene = thread->load->scene;
    struct scene_name *name = &scene->name[thread->index];
    hl_lock *lock = load_lock(thread->load, name->text, name->kind);
    hl_lock *reads =
        name->kind == HL_LOCK_WRITE ? load_lock(thread->load, name->text, HL_LOCK_READ) : NULL;

    while (!atomic_load(&scene->stops)) {
        bool is_reader = reads && load_roll(thread, 2) == 0;
        struct load_hold hold = {
            .thread = thread, .name = name, .lock = is_reader ? reads : lock, .reads = is_reader};
        seat_sit(&scene->seat[thread->load->index][thread->index], &hold);
    }
    hl_lock_free(reads);
    hl_lock_free(lock);
}

static void load_visit(struct load_hold *hold)
{
    if (!load_acquire(hold))
        return;
    for (unsigned i = load_roll(hold->thread, LOAD_STEPS) + 1; i > 0 && load_step(hold);)
        i--;
    load_release(hold);
}

static void load_be_short(struct load_thread *thread)
{
    struct scene *scene = thread->load->scene;
    hl_lock *lock[SCENE_SHORT], *reads[SCENE_SHORT];

    for (int i = 0; i < SCENE_SHORT; i++) {
        const struct scene_name *name = &scene->name[SCENE_LONG + i];
        lock[i] = load_lock(thread->load, name->text, name->kind);
        reads[i] = load_lock(thread->load, name->text,
                             name->kind == HL_LOCK_WRITE ? HL_LOCK_READ : name->kind);
    }
    while (!atomic_load(&scene->stops)) {
        unsigned i = load_roll(thread, SCENE_SHORT);
        struct scene_name *name = &scene->name[SCENE_LONG + i];
        bool is_reader = name->kind == HL_LOCK_WRITE && load_roll(thread, 2) == 0;
        load_visit(&(struct load_hold){.thread = thread,
                                       .name = name,
                                       .lock = is_reader ? reads[i] : lock[i],
                                       .reads = is_reader});
        load_nap(scene);
    }
    for (int i = 0; i < SCENE_SHORT; i++) {
        hl_lock_free(lock[i]);
        hl_lock_free(reads[i]);
    }
}

/* The first one that the next master gives is noted. */
static void load_take_fresh(struct load_thread *thread, const char *name)
{
    struct scene *scene = thread->load->scene;
    hl_lock *lock = load_lock(thread->load, name, HL_LOCK_REENTRANT);
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_acquire(lock, &err);

    if (code != 0)
        load_strange(scene, "acquire", code, err.text);
    int64_t at_ns = now_ns(), left_ms = hl_lock_validity_ms(lock, NULL);
    if (load_is_the_next_masters(scene, at_ns + left_ms * 1000000) &&
        atomic_load(&scene->fresh_ns) < atomic_load(&scene->began_ns))
        atomic_store(&scene->fresh_ns, at_ns);
    if (code == 0)
        hl_lock_release(lock, NULL);
    hl_lock_free(lock);
}

static void load_be_fresh(struct load_thread *thread)
{
    struct scene *scene = thread->load->scene;
    char name[48];

    for (unsigned i = 0; !atomic_load(&scene->stops); i++) {
        snprintf(name, sizeof name, "fresh-%d-%u%s", thread->load->index, i, scene->tag);
        load_take_fresh(thread, name);
        load_nap(scene);
    }
}

static void *load_thread_run(void *arg)
{
    struct load_thread *thread = arg;

    if (thread->index < SCENE_LONG)
        load_be_long(thread);
    else if (thread->index < SCENE_LONG + SCENE_SHORT_THREADS)
        load_be_short(thread);
    else
        load_be_fresh(thread);
    return NULL;
}

void load_history_path(const struct scene *scene, int index, char ret_path[128])
{
    snprintf(ret_path, 128, "%s/history-%d", scene->histories, index);
}

void load_run(struct process *self, void *arg)
{
    const struct load_job *job = arg;
    char path[128];
    load_history_path(job->scene, job->index, path);
    struct load load = {.scene = job->scene,
                        .index = job->index,
                        .client = load_open(job->scene, job->scene->url[job->index]),
                        .history = history_open(path, LOAD_RECORDS)};
    struct load_thread thread[LOAD_THREADS];

    process_tell(self, LOAD_HAS_BEGUN);
    for (int i = 0; i < LOAD_THREADS; i++) {
        thread[i] = (struct load_thread){.load = &load,
                                         .index = i,
                                         .dice = (uint64_t)now_ns() ^ (uint64_t)(i + 1) << 20 ^
                                                 (uint64_t)job->index << 40};
        must(pthread_create(&thread[i].thread, NULL, load_thread_run, &thread[i]) == 0);
    }
    for (int i = 0; i < LOAD_THREADS; i++)
        pthread_join(thread[i].thread, NULL);
    hl_client_close(load.client);
    history_close(load.history);
}
