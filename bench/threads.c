/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Threads with a lock each, on one client, beside as many threads with a raw connection each. */
#include "cores.h"
#include "crew.h"
#include "must.h"
#include "raw.h"
#include "rounds.h"
#include "scenario.h"

#include <stdio.h>

enum { THREADS_ROUND_MS = 100 };

/* Few threads find a lane each; many send their requests together. */
static const struct threads_case {
    int threads;
    const char *figure;
    double target;
} threads_cases[] = {{2, "threads2_vs_raw_connections", 0.95},
                     {4, "threads4_vs_raw_connections", 0.95},
                     {8, "threads8_vs_raw_connections", 1.05},
                     {64, "threads64_vs_raw_connections", 1.2}};

enum { THREADS_CASES = sizeof(threads_cases) / sizeof(threads_cases[0]) };

struct team {
    struct crew *crew;
    struct raw raw[CREW_MOST];
    hl_lock *lock[CREW_MOST];
};

static uint64_t member_raw(void *arg, int member, const atomic_bool *is_over)
{
    struct raw *raw = &((struct team *)arg)->raw[member];
    uint64_t done = 0;

    for (; !atomic_load_explicit(is_over, memory_order_relaxed); done++) {
        must(raw_acquire(raw), "the raw side met a strange lock");
        raw_release(raw);
    }
    return done;
}

static uint64_t member_ours(void *arg, int member, const atomic_bool *is_over)
{
    hl_lock *lock = ((struct team *)arg)->lock[member];
    uint64_t done = 0;

    for (; !atomic_load_explicit(is_over, memory_order_relaxed); done++) {
        scenario_acquire(lock);
        scenario_release(lock);
    }
    return done;
}

static uint64_t team_raw(void *arg, int64_t until)
{
    return crew_round(((struct team *)arg)->crew, member_raw, arg, until);
}

static uint64_t team_ours(void *arg, int64_t until)
{
    return crew_round(((struct team *)arg)->crew, member_ours, arg, until);
}

static void team_open(struct team *team, struct bench *bench, hl_client *client, int threads)
{
    char name[64];

    for (int i = 0; i < threads; i++) {
        snprintf(name, sizeof(name), "bench:raw:%d", i);
        raw_open(&team->raw[i], &bench->server, name, (unsigned)i);
        team->lock[i] = scenario_lock(client, "bench:own:%d", i);
    }
    team->crew = crew_start(threads);
}

static void team_close(struct team *team, int threads)
{
    crew_stop(team->crew);
    for (int i = 0; i < threads; i++) {
        hl_lock_free(team->lock[i]);
        raw_close(&team->raw[i]);
    }
}

static void threads_tell(struct bench *bench, const struct rounds *rounds,
                         const struct threads_case *at, bool is_pinned)
{
    const struct rounds_side *raw = &rounds->side[0], *ours = &rounds->side[1];
    const char *placement = is_pinned ? "pinned" : "free";
    int threads = at->threads;
    char name[96];

    snprintf(name, sizeof(name), "%d threads, %s: raw, a connection each", threads, placement);
    report_figure(&bench->report, name, raw->rate, "pairs/s");
    snprintf(name, sizeof(name), "%d threads, %s: hirelock, one client", threads, placement);
    report_figure(&bench->report, name, ours->rate, "pairs/s");
    snprintf(name, sizeof(name), "%d threads, %s: client CPU a pair, raw", threads, placement);
    report_figure(&bench->report, name, raw->cpu_us, "us");
    snprintf(name, sizeof(name), "%d threads, %s: client CPU a pair, hirelock", threads, placement);
    report_figure(&bench->report, name, ours->cpu_us, "us");
    snprintf(name, sizeof(name), "%d threads, %s: hirelock over raw", threads, placement);
    if (is_pinned)
        report_at_least(&bench->report, at->figure, ours->rate / raw->rate, "x", at->target);
    else
        report_figure(&bench->report, name, ours->rate / raw->rate, "x");
}

static void threads_measure(struct bench *bench, const struct threads_case *at, bool is_pinned)
{
    struct team team;
    hl_client *client = scenario_client(bench, NULL);
    struct rounds rounds = {
        .count = bench->is_quick ? 8 : 50,
        .ms = THREADS_ROUND_MS,
        .sides = 2,
        .side = {{.work = team_raw, .arg = &team}, {.work = team_ours, .arg = &team}}};

    team_open(&team, bench, client, at->threads);
    rounds_run(&rounds);
    team_close(&team, at->threads);
    hl_client_close(client);
    threads_tell(bench, &rounds, at, is_pinned);
}

void scenario_threads(struct bench *bench)
{
    report_heading("acquire and release, threads with a name each");
    bool is_parted = cores_part(bench->server.pid);
    for (size_t i = 0; is_parted && i < THREADS_CASES; i++)
        threads_measure(bench, &threads_cases[i], true);
    cores_free(bench->server.pid);
    for (size_t i = 0; i < THREADS_CASES; i++)
        threads_measure(bench, &threads_cases[i], false);
}
