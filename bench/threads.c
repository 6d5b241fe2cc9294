/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* 64 threads with a lock each, on one client, beside 64 threads with a raw connection each. */
#include "cores.h"
#include "instant.h"
#include "must.h"
#include "raw.h"
#include "rounds.h"
#include "scenario.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 64, THREADS_ROUND_MS = 100 };

struct crew {
    pthread_barrier_t begin, end;
    bool is_raw, is_over; /* set before the barrier */
    atomic_bool stops;
    struct member {
        pthread_t thread;
        struct crew *crew;
        struct raw raw;
        hl_lock *lock;
        uint64_t done;
    } member[THREADS];
};

static void member_work(struct member *member)
{
    const struct crew *crew = member->crew;

    for (member->done = 0; !atomic_load_explicit(&crew->stops, memory_order_relaxed);
         member->done++) {
        if (crew->is_raw) {
            must(raw_acquire(&member->raw), "the raw side met a strange lock");
            raw_release(&member->raw);
        } else {
            scenario_acquire(member->lock);
            scenario_release(member->lock);
        }
    }
}

static void *member_run(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;

    while (pthread_barrier_wait(&crew->begin), !crew->is_over) {
        member_work(member);
        pthread_barrier_wait(&crew->end);
    }
    return NULL;
}

static uint64_t crew_work(struct crew *crew, bool is_raw, int64_t until)
{
    uint64_t done = 0;

    crew->is_raw = is_raw;
    atomic_store(&crew->stops, false);
    pthread_barrier_wait(&crew->begin);
    instant_sleep_ms((until - instant_now()) / 1000000);
    atomic_store(&crew->stops, true);
    pthread_barrier_wait(&crew->end);
    for (int i = 0; i < THREADS; i++)
        done += crew->member[i].done;
    return done;
}

static uint64_t crew_raw(void *arg, int64_t until)
{
    return crew_work(arg, true, until);
}

static uint64_t crew_ours(void *arg, int64_t until)
{
    return crew_work(arg, false, until);
}

static void crew_assemble(struct crew *crew, struct bench *bench, hl_client *client)
{
    char name[64];

    pthread_barrier_init(&crew->begin, NULL, THREADS + 1);
    pthread_barrier_init(&crew->end, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        struct member *member = &crew->member[i];
        member->crew = crew;
        member->lock = scenario_lock(client, "bench:own:%d", i);
        snprintf(name, sizeof(name), "bench:raw:%d", i);
        raw_open(&member->raw, &bench->server, name, (unsigned)i);
        must(pthread_create(&member->thread, NULL, member_run, member) == 0, "no more threads");
    }
}

static void crew_dismiss(struct crew *crew)
{
    crew->is_over = true;
    pthread_barrier_wait(&crew->begin);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(crew->member[i].thread, NULL);
        hl_lock_free(crew->member[i].lock);
        raw_close(&crew->member[i].raw);
    }
    pthread_barrier_destroy(&crew->begin);
    pthread_barrier_destroy(&crew->end);
}

static void threads_measure(struct bench *bench, const char *placement, bool has_target)
{
    struct crew *crew = must_alloc(1, sizeof(*crew));
    hl_client *client = scenario_client(bench, NULL);
    struct rounds rounds = {.count = bench->is_quick ? 30 : 100,
                            .ms = THREADS_ROUND_MS,
                            .raw = crew_raw,
                            .ours = crew_ours,
                            .arg = crew};
    char name[96];

    crew_assemble(crew, bench, client);
    rounds_run(&rounds);
    crew_dismiss(crew);
    snprintf(name, sizeof(name), "64 threads, %s: raw, 64 connections", placement);
    report_figure(&bench->report, name, rounds.raw_rate, "pairs/s");
    snprintf(name, sizeof(name), "64 threads, %s: hirelock", placement);
    report_figure(&bench->report, name, rounds.ours_rate, "pairs/s");
    snprintf(name, sizeof(name), "64 threads, %s: hirelock over raw", placement);
    if (has_target)
        report_at_least(&bench->report, name, rounds.ours_rate / rounds.raw_rate, "x", 1.15);
    else
        report_figure(&bench->report, name, rounds.ours_rate / rounds.raw_rate, "x");
    hl_client_close(client);
    free(crew);
}

void scenario_threads(struct bench *bench)
{
    int server_core, client_core;

    report_heading("acquire and release, 64 threads, a name each");
    if (cores_pick(&server_core, &client_core)) {
        cores_pin_process(bench->server.pid, server_core);
        cores_pin_thread(client_core);
        threads_measure(bench, "server and clients on a core each", true);
        cores_free_thread();
        cores_free_process(bench->server.pid);
    }
    threads_measure(bench, "free placement", false);
}
