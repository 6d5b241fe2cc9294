/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Calls that should cost no round trip: reentry, back to back or spread; and a retained lock. */
#include "cores.h"
#include "instant.h"
#include "must.h"
#include "rounds.h"
#include "samples.h"
#include "scenario.h"

enum { LOCAL_ROUND_MS = 50, LOCAL_BATCH = 100, LOCAL_RETAIN_MS = 500, LOCAL_PACE_US = 200 };

/* Clients of their own, so that each one's statistics are the lock's. */
struct local {
    hl_client *holder, *keeper;
    hl_lock *held, *retaining;
};

static uint64_t local_pairs(void *arg, int64_t until)
{
    hl_lock *lock = arg;
    uint64_t done = 0;

    do {
        for (int i = 0; i < LOCAL_BATCH; i++) {
            scenario_acquire(lock);
            scenario_release(lock);
        }
        done += LOCAL_BATCH;
    } while (instant_now() < until);
    return done;
}

static void local_back_to_back(struct bench *bench, const struct local *local)
{
    struct rounds rounds = {
        .count = bench->is_quick ? 12 : 40,
        .ms = LOCAL_ROUND_MS,
        .sides = 2,
        .side = {{.work = local_pairs, .arg = local->held},
                 {.work = local_pairs, .arg = local->retaining}},
    };

    hl_stats held = scenario_stats(local->holder);
    rounds_run(&rounds);
    double commands = (double)(scenario_stats(local->holder).commands - held.commands);
    hl_stats kept = scenario_stats(local->keeper);
    double seconds = 1e-3 * (double)rounds.count * LOCAL_ROUND_MS;
    report_at_most(&bench->report, "reentry_pair_us", 1e6 / rounds.side[0].rate, "us", 0.5);
    report_figure(&bench->report, "reentry back to back: client CPU", rounds.side[0].cpu_us, "us");
    report_figure(&bench->report, "reentry back to back: commands", commands / seconds, "/s");
    report_at_most(&bench->report, "retained_pair_us", 1e6 / rounds.side[1].rate, "us", 0.2);
    report_figure(&bench->report, "retained: client CPU", rounds.side[1].cpu_us, "us");
    report_figure(&bench->report, "retained: commands", (double)kept.commands / seconds, "/s");
    report_figure(&bench->report, "retained: pairs that found it retained",
                  100 * (double)kept.retained / (double)kept.acquires, "%");
}

/* One pair every 200 us, and its cost alone: each may have to send the count. */
static double local_paced_round(hl_lock *lock, struct samples *each)
{
    int64_t until = instant_after_ms(2L * LOCAL_ROUND_MS), spent = 0;
    double pairs = 0;

    for (int64_t began = instant_now(); began < until; began = instant_now()) {
        scenario_acquire(lock);
        scenario_release(lock);
        int64_t took = instant_now() - began;
        samples_add(each, (double)took / 1e3);
        spent += took;
        pairs++;
        int64_t rest = LOCAL_PACE_US * 1000L - took;
        if (rest > 0)
            instant_sleep_us(rest / 1000);
    }
    return (double)spent / 1e3 / pairs;
}

static void local_paced(struct bench *bench, const struct local *local)
{
    struct samples means = {0}, each = {0};
    hl_stats before = scenario_stats(local->holder);

    for (int i = 0; i < (bench->is_quick ? 10 : 40); i++)
        samples_add(&means, local_paced_round(local->held, &each));
    double commands = (double)(scenario_stats(local->holder).commands - before.commands);
    report_figure(&bench->report, "reentry_paced_pair_us", samples_quantile(&means, 0.5), "us");
    report_figure(&bench->report, "reentry every 200 us: p50", samples_quantile(&each, 0.5), "us");
    report_figure(&bench->report, "reentry every 200 us: p99", samples_quantile(&each, 0.99), "us");
    report_figure(&bench->report, "reentry every 200 us: commands a pair",
                  commands / (double)each.count, "");
    samples_free(&means);
    samples_free(&each);
}

void scenario_local(struct bench *bench)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    struct local local;

    report_heading("what needs no round trip, one thread");
    bool is_parted = cores_part(bench->server.pid);
    options.retain_ms = LOCAL_RETAIN_MS;
    local.holder = scenario_client(bench, NULL);
    local.keeper = scenario_client(bench, NULL);
    local.held = scenario_lock(local.holder, "bench:held:%d", 0);
    local.retaining = scenario_lock_with(local.keeper, "bench:retained", &options);
    scenario_acquire(local.held);
    local_back_to_back(bench, &local);
    local_paced(bench, &local);
    scenario_release(local.held);
    hl_lock_free(local.held);
    hl_lock_free(local.retaining);
    hl_client_close(local.holder);
    hl_client_close(local.keeper);
    if (is_parted)
        cores_free(bench->server.pid);
}
