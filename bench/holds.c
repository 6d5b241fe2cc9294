/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* 100,000 locks held by one process: what their renewal costs the server, and what they cost in
 * memory here. */
#include "bare.h"
#include "cores.h"
#include "instant.h"
#include "must.h"
#include "scenario.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOLDS = 100000, HOLDS_THREADS = 50, HOLDS_EACH = HOLDS / HOLDS_THREADS };
enum { WAVES = 3, WAVE_POLL_MS = 50, WAVE_RESTS = 10 };

struct holds {
    pthread_barrier_t held, release;
    hl_lock *lock[HOLDS];
    atomic_uint warnings, losses; /* by events */
};

struct holder {
    pthread_t thread;
    struct holds *holds;
    int first;
};

static void holds_on_event(const hl_event *event, void *arg)
{
    struct holds *holds = arg;

    if (event->kind == HL_EVENT_JEOPARDY)
        atomic_fetch_add(&holds->warnings, 1);
    else if (event->kind == HL_EVENT_LOST)
        atomic_fetch_add(&holds->losses, 1);
}

/* The thread is the owner, so it stays until the end. */
static void *holder_run(void *arg)
{
    const struct holder *holder = arg;
    struct holds *holds = holder->holds;

    for (int i = holder->first; i < holder->first + HOLDS_EACH; i++)
        scenario_acquire(holds->lock[i]);
    pthread_barrier_wait(&holds->held);
    pthread_barrier_wait(&holds->release);
    for (int i = holder->first; i < holder->first + HOLDS_EACH; i++)
        hl_lock_release(holds->lock[i], NULL);
    return NULL;
}

/* Of the heap; the mapped blocks are the large arrays of this file and of the library. */
static double holds_heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static double holds_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";

    must(file && fgets(line, sizeof(line), file), "no /proc/self/statm");
    fclose(file);
    const char *resident = strchr(line, ' '); /* the second number: pages */
    return resident ? strtod(resident, NULL) * (double)sysconf(_SC_PAGESIZE) : 0;
}

static hl_stats holds_stats(hl_client *client)
{
    hl_stats stats = {.size = sizeof(stats)};

    must(hl_client_stats(client, &stats) == 0, "no statistics");
    return stats;
}

/* The server's CPU time, in microseconds. */
struct spent {
    double cpu, script;
};

static struct spent holds_spent(struct bench *bench)
{
    return (struct spent){server_cpu_us(&bench->server),
                          server_command_us(&bench->server, "evalsha")};
}

static void holds_add(struct spent *sum, struct spent before, struct spent after)
{
    sum->cpu += after.cpu - before.cpu;
    sum->script += after.script - before.script;
}

/* Waits for the next wave of renewals, and adds what it costs to the sum. A wave has begun when
 * the count moves, and is over when it rests. */
static uint64_t holds_wave(struct bench *bench, hl_client *client, struct spent *sum)
{
    struct spent before;
    uint64_t first = holds_stats(client).renewals, seen, last;
    int rests = 0;

    do {
        before = holds_spent(bench);
        instant_sleep_ms(WAVE_POLL_MS);
        seen = holds_stats(client).renewals;
    } while (seen == first);
    while (rests < WAVE_RESTS) {
        instant_sleep_ms(WAVE_POLL_MS);
        last = seen;
        seen = holds_stats(client).renewals;
        rests = seen == last ? rests + 1 : 0;
    }
    holds_add(sum, before, holds_spent(bench));
    return seen - first;
}

static void holds_bare(struct bench *bench, struct bare *bare, struct spent *sum)
{
    struct spent before = holds_spent(bench);

    bare_renew(bare);
    holds_add(sum, before, holds_spent(bench));
}

/* The library's waves, and after each the same by a bare script. */
static void holds_renew(struct bench *bench, hl_client *client, int64_t lease_ms)
{
    struct bare *bare = bare_open(&bench->server, "bench:held:", HOLDS, HOLDS_EACH, lease_ms);
    struct spent ours = {0}, theirs = {0};
    double calls = (double)server_calls(&bench->server, "evalsha"), renewals = 0;
    const double batches = HOLDS / 100.0;

    for (int i = 0; i < WAVES; i++) {
        renewals += (double)holds_wave(bench, client, &ours);
        holds_bare(bench, bare, &theirs);
    }
    calls = (double)server_calls(&bench->server, "evalsha") - calls - WAVES * batches;
    bare_close(bare);

    struct report *report = &bench->report;
    double bare_us = theirs.cpu / (WAVES * HOLDS);
    report_at_least(report, "100,000 holds: renewals measured", renewals, "",
                    (WAVES - 0.5) * HOLDS);
    report_figure(report, "100,000 holds: renewals per EVALSHA", renewals / calls, "");
    report_figure(report, "100,000 holds: server CPU per renewal", ours.cpu / renewals, "us");
    report_figure(report, "100,000 holds: of it, in the script", ours.script / renewals, "us");
    report_figure(report, "100,000 holds: server CPU per bare HEXISTS + PEXPIRE", bare_us, "us");
    report_figure(report, "100,000 holds: of that, in the bare script",
                  theirs.script / (WAVES * HOLDS), "us");
    report_at_most(report, "renewal_vs_bare_script", ours.cpu / renewals / bare_us, "x", 1.35);
    hl_histogram lag = HL_HISTOGRAM_INIT;
    must(hl_client_histogram(client, HL_MEASURE_RENEWAL, &lag) == 0, "no histogram");
    report_figure(report, "100,000 holds: latest renewal after its due time",
                  (double)lag.max_us / 1e3, "ms");
}

static void holds_tell_losses(struct bench *bench, struct holds *holds, hl_client *client)
{
    report_at_most(&bench->report, "100,000 holds: lost", (double)holds_stats(client).losses, "",
                   0);
    report_at_most(&bench->report, "100,000 holds: warned of (renewal overdue)",
                   (double)atomic_load(&holds->warnings), "", 0);
    report_at_least(&bench->report, "100,000 holds: keys on the server at the end",
                    (double)server_int(&bench->server, "DBSIZE"), "", HOLDS);
}

static void holds_measure(struct bench *bench)
{
    struct holds *holds = must_alloc(1, sizeof(*holds));
    struct holder *holders = must_alloc(HOLDS_THREADS, sizeof(*holders));
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    options.watchdog_timeout_ms = bench->is_quick ? 15000 : 30000;
    options.on_event = holds_on_event;
    options.arg = holds;
    hl_client *client = scenario_client(bench, &options);
    double heap = holds_heap_bytes(), resident = holds_resident_bytes();
    for (int i = 0; i < HOLDS; i++)
        holds->lock[i] = scenario_lock(client, "bench:held:%d", i);

    pthread_barrier_init(&holds->held, NULL, HOLDS_THREADS + 1);
    pthread_barrier_init(&holds->release, NULL, HOLDS_THREADS + 1);
    int64_t began = instant_now();
    for (int i = 0; i < HOLDS_THREADS; i++) {
        holders[i].holds = holds;
        holders[i].first = i * HOLDS_EACH;
        must(pthread_create(&holders[i].thread, NULL, holder_run, &holders[i]) == 0,
             "no more threads");
    }
    pthread_barrier_wait(&holds->held);
    report_figure(&bench->report, "100,000 holds: time to acquire them, 50 threads",
                  (double)(instant_now() - began) / 1e9, "s");
    report_figure(&bench->report, "100,000 holds: heap bytes per held lock, handle included",
                  (holds_heap_bytes() - heap) / HOLDS, "bytes");
    report_figure(&bench->report, "100,000 holds: resident bytes per held lock",
                  (holds_resident_bytes() - resident) / HOLDS, "bytes");
    holds_renew(bench, client, options.watchdog_timeout_ms);
    holds_tell_losses(bench, holds, client);

    pthread_barrier_wait(&holds->release);
    for (int i = 0; i < HOLDS_THREADS; i++)
        pthread_join(holders[i].thread, NULL);
    for (int i = 0; i < HOLDS; i++)
        hl_lock_free(holds->lock[i]);
    hl_client_close(client);
    pthread_barrier_destroy(&holds->held);
    pthread_barrier_destroy(&holds->release);
    free(holders);
    free(holds);
}

/* On cores of their own, as in the other scenarios: the figure is the server's work, without the
 * cost of a core that the server and the client share. */
void scenario_holds(struct bench *bench)
{
    int server_core, client_core;

    report_heading("100,000 locks held by one process");
    bool has_two = cores_pick(&server_core, &client_core);
    if (has_two) {
        cores_pin_process(bench->server.pid, server_core);
        cores_pin_thread(client_core);
    }
    holds_measure(bench);
    if (has_two) {
        cores_free_thread();
        cores_free_process(bench->server.pid);
    }
}
