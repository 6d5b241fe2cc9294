/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Acquire and release by one thread, of kinds that take and give back by one command each, beside
 * the plain lock. */
#include "cores.h"
#include "instant.h"
#include "must.h"
#include "rounds.h"
#include "scenario.h"

#include <stdio.h>

enum { KINDS_ROUND_MS = 50, KINDS_PERMITS = 3 };

/* The sides, in the order in which the rounds go. */
enum { KINDS_LOCK, KINDS_FENCED, KINDS_SEMAPHORE, KINDS_SIDES };

static const struct kinds_side {
    const char *text, *figure;
} kinds_sides[KINDS_SIDES] = {
    [KINDS_LOCK] = {"lock", NULL},
    [KINDS_FENCED] = {"fenced lock", "fenced_pair_vs_lock_pair"},
    [KINDS_SEMAPHORE] = {"semaphore", "semaphore_pair_vs_lock_pair"},
};

static uint64_t kinds_lock(void *arg, int64_t until)
{
    uint64_t done = 0;

    do {
        scenario_acquire(arg);
        scenario_release(arg);
        done++;
    } while (instant_now() < until);
    return done;
}

static uint64_t kinds_semaphore(void *arg, int64_t until)
{
    uint64_t done = 0;

    do {
        must(hl_semaphore_acquire(arg, 1, NULL) == 0, "acquire of a permit failed");
        must(hl_semaphore_release(arg, 1, NULL) == 0, "release of a permit failed");
        done++;
    } while (instant_now() < until);
    return done;
}

static void kinds_tell(struct bench *bench, const struct rounds *rounds, const char *placement,
                       bool is_judged)
{
    char name[96];

    for (size_t i = 0; i < rounds->sides; i++) {
        const struct kinds_side *about = &kinds_sides[i];
        double ratio = rounds->side[KINDS_LOCK].rate / rounds->side[i].rate;
        snprintf(name, sizeof(name), "kinds, %s: %s", placement, about->text);
        report_figure(&bench->report, name, 1e6 / rounds->side[i].rate, "us");
        snprintf(name, sizeof(name), "kinds, %s: %s over lock", placement, about->text);
        if (i != KINDS_LOCK && is_judged)
            report_at_most(&bench->report, about->figure, ratio, "x", 1.15);
        else if (i != KINDS_LOCK)
            report_figure(&bench->report, name, ratio, "x");
    }
}

static void kinds_measure(struct bench *bench, const char *placement, bool is_judged)
{
    hl_client *client = scenario_client(bench, NULL);
    hl_lock *lock = scenario_lock(client, "bench:kinds:%d", KINDS_LOCK),
            *fenced = scenario_lock_of(client, HL_LOCK_FENCED, "bench:fenced");
    hl_semaphore *semaphore = NULL;

    must(hl_semaphore_new(client, "bench:semaphore", &semaphore, NULL) == 0, "no semaphore");
    server_flush(&bench->server);
    must(hl_semaphore_try_set_permits(semaphore, KINDS_PERMITS, 0, NULL) == 0, "no permits");
    struct rounds rounds = {
        .count = bench->is_quick ? 24 : 100,
        .ms = KINDS_ROUND_MS,
        .sides = KINDS_SIDES,
        .side = {[KINDS_LOCK] = {.work = kinds_lock, .arg = lock},
                 [KINDS_FENCED] = {.work = kinds_lock, .arg = fenced},
                 [KINDS_SEMAPHORE] = {.work = kinds_semaphore, .arg = semaphore}}};
    rounds_run(&rounds);
    kinds_tell(bench, &rounds, placement, is_judged);
    hl_lock_free(lock);
    hl_lock_free(fenced);
    hl_semaphore_free(semaphore);
    hl_client_close(client);
}

/* As for the pair of the lock, the placement whose figures repeat is judged. */
void scenario_kinds(struct bench *bench)
{
    report_heading("acquire and release, one thread, other kinds beside the lock");
    if (cores_part(bench->server.pid))
        kinds_measure(bench, "pinned", true);
    cores_free(bench->server.pid);
    kinds_measure(bench, "free", false);
}
