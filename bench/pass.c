/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* 8 threads of one process take turns with one name: how often it goes from one to the next. */
#include "cores.h"
#include "cpu.h"
#include "crew.h"
#include "instant.h"
#include "samples.h"
#include "scenario.h"

#include <stdio.h>

enum { PASS_THREADS = 8, PASS_ROUND_MS = 100 };

struct turns {
    hl_lock *lock;
    int last; /* these two under the lock */
    uint64_t switches;
    uint64_t served[PASS_THREADS]; /* over all rounds */
};

static uint64_t member_take_turns(void *arg, int member, const atomic_bool *is_over)
{
    struct turns *turns = arg;
    uint64_t done = 0;

    for (; !atomic_load_explicit(is_over, memory_order_relaxed); done++) {
        scenario_acquire(turns->lock);
        turns->switches += turns->last != member;
        turns->last = member;
        scenario_release(turns->lock);
    }
    turns->served[member] += done;
    return done;
}

/* The cost of a run, beside the number of its passes. */
struct effort {
    double seconds, client_us, server_us, commands, passes, holds;
};

static struct effort pass_effort(struct bench *bench, hl_client *client)
{
    hl_stats stats = scenario_stats(client);

    return (struct effort){
        .seconds = (double)instant_now() / 1e9,
        .client_us = cpu_own_us(),
        .server_us = server_cpu_us(&bench->server),
        .commands = (double)stats.commands,
        .passes = (double)stats.passes,
        .holds = (double)stats.acquires,
    };
}

static double some(double count) /* to divide by */
{
    return count > 0 ? count : 1;
}

static double pass_share(const struct turns *turns)
{
    uint64_t least = turns->served[0], most = least;

    for (int i = 1; i < PASS_THREADS; i++) {
        least = turns->served[i] < least ? turns->served[i] : least;
        most = turns->served[i] > most ? turns->served[i] : most;
    }
    return most > 0 ? (double)least / (double)most : 0;
}

static void pass_tell(struct bench *bench, const struct effort *a, const struct effort *b,
                      const struct turns *turns, const char *placement)
{
    double passes = some(b->passes - a->passes), holds = some(b->holds - a->holds);
    const struct {
        const char *text, *unit;
        double value;
    } figures[] = {
        {"holds", "/s", holds / (b->seconds - a->seconds)},
        {"owner switches, of all holds", "%", 100 * (double)turns->switches / holds},
        {"least over most served thread", "", pass_share(turns)},
        {"commands a pass", "", (b->commands - a->commands) / passes},
        {"client CPU a pass", "us", (b->client_us - a->client_us) / passes},
    };
    char name[96];

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        snprintf(name, sizeof(name), "8 threads, one name, %s: %s", placement, figures[i].text);
        report_figure(&bench->report, name, figures[i].value, figures[i].unit);
    }
}

/* A pass is what the library counts as one: a hold that was handed over by its last owner. */
static void pass_judge(struct bench *bench, double rate, double server_us, bool is_judged)
{
    struct report *report = &bench->report;

    if (is_judged) {
        report_at_least(report, "pass_per_second", rate, "/s", 100000);
        report_at_most(report, "pass_server_us", server_us, "us", 0.5);
    } else {
        report_figure(report, "8 threads, one name, free: passes", rate, "/s");
        report_figure(report, "8 threads, one name, free: server CPU a pass", server_us, "us");
    }
}

static void pass_measure(struct bench *bench, const char *placement, bool is_judged)
{
    struct turns turns = {.last = -1};
    struct samples rates = {0};
    hl_client *client = scenario_client(bench, NULL);
    struct crew *crew = crew_start(PASS_THREADS);

    turns.lock = scenario_lock(client, "bench:passed:%d", 0);
    struct effort before = pass_effort(bench, client), after = before;
    for (int i = 0; i < (bench->is_quick ? 14 : 100); i++) {
        double passes = after.passes, seconds = after.seconds;
        crew_round(crew, member_take_turns, &turns, instant_after_ms(PASS_ROUND_MS));
        after = pass_effort(bench, client);
        samples_add(&rates, (after.passes - passes) / (after.seconds - seconds));
    }
    double passes = some(after.passes - before.passes);
    pass_judge(bench, samples_quantile(&rates, 0.5), (after.server_us - before.server_us) / passes,
               is_judged);
    pass_tell(bench, &before, &after, &turns, placement);
    crew_stop(crew);
    hl_lock_free(turns.lock);
    hl_client_close(client);
    samples_free(&rates);
}

void scenario_pass(struct bench *bench)
{
    report_heading("8 threads of one process, one name");
    if (cores_part(bench->server.pid))
        pass_measure(bench, "pinned", true);
    cores_free(bench->server.pid);
    pass_measure(bench, "free", false);
}
