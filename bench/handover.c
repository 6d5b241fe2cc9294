/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Processes that want one lock all the time: the time of a hand-over, its cost, and each process's
 * share of the lock. Where hand-over is judged, rounds alternate with the one-trip limit.
 */
#include "cores.h"
#include "must.h"
#include "rivals.h"
#include "trip.h"

#include <stdio.h>

enum { HANDOVER_PROCESSES = 4, HANDOVER_ROUND_MS = 100 };

/* One setting to be measured. */
struct contention {
    const char *text;
    int threads; /* in each process */
    struct hold hold;
    bool beside_limit; /* in rounds of 100 ms, else in one go */
    const char *ratio; /* the figure's name, with a target */
    double ratio_target;
    bool is_share; /* the one whose shares and commands are judged */
    bool is_fair;  /* for a fair lock */
};

static const struct contention contests[] = {
    {.text = "hold 0",
     .threads = 1,
     .beside_limit = true,
     .ratio = "handover_vs_one_trip_limit",
     .ratio_target = 1.3},
    {.text = "random hold to 2 ms",
     .threads = 1,
     .hold = {.us = 2000, .is_random = true},
     .beside_limit = true,
     .ratio = "handover_random_vs_one_trip_limit",
     .ratio_target = 1.45},
    {.text = "hold 0, in one go", .threads = 1, .is_share = true},
    {.text = "hold 1 ms", .threads = 1, .hold = {.us = 1000}},
    {.text = "4 threads each, hold 0", .threads = 4},
    {.text = "4 threads each, hold 1 ms", .threads = 4, .hold = {.us = 1000}},
    {.text = "fair lock, hold 0", .threads = 1, .is_fair = true},
    {.text = "fair lock, 4 threads each, hold 0", .threads = 4, .is_fair = true},
};

enum { CONTENTIONS = sizeof(contests) / sizeof(contests[0]) };

/* One side's results. */
struct outcome {
    struct samples medians, hands; /* us; of rounds, and all */
    struct server_load load;
    uint64_t switches;
    double seconds;
};

struct match {
    struct bench *bench;
    const struct contention *contention;
    const char *placement;
    bool is_judged;
    struct diary *diary;
    struct crowd *ours, *limit;
    struct outcome own, least;
};

static void match_round(struct match *match, struct crowd *crowd, struct outcome *outcome,
                        int64_t ms)
{
    struct samples hands = {0};
    struct server_load before = server_load(&match->bench->server);
    int64_t began = instant_now();

    crowd_round(crowd, ms);
    outcome->seconds += (double)(instant_now() - began) / 1e9;
    struct server_load after = server_load(&match->bench->server);
    server_load_add(&outcome->load, &before, &after);
    outcome->switches += diary_read(match->diary, &hands);
    if (hands.count > 0)
        samples_add(&outcome->medians, samples_quantile(&hands, 0.5));
    for (size_t i = 0; i < hands.count; i++)
        samples_add(&outcome->hands, hands.value[i]);
    samples_free(&hands);
}

static void match_play(struct match *match)
{
    const bool is_quick = match->bench->is_quick;

    if (!match->contention->beside_limit) {
        int64_t ms = is_quick ? 1500 : 5000;
        if (match->contention->is_share)
            ms = is_quick ? 4000 : 10000; /* shares are told after ten seconds, or four */
        match_round(match, match->ours, &match->own, ms);
        return;
    }
    for (int i = 0; i < (is_quick ? 18 : 60); i++) {
        bool is_ours_first = i % 2;
        if (is_ours_first)
            match_round(match, match->ours, &match->own, HANDOVER_ROUND_MS);
        match_round(match, match->limit, &match->least, HANDOVER_ROUND_MS);
        if (!is_ours_first)
            match_round(match, match->ours, &match->own, HANDOVER_ROUND_MS);
    }
}

static void match_figure(struct match *match, const char *text, double value, const char *unit)
{
    char name[96];

    snprintf(name, sizeof(name), "4 processes, %s, %s: %s", match->placement,
             match->contention->text, text);
    report_figure(&match->bench->report, name, value, unit);
}

/* The work of all processes together, and their shares. */
struct sum {
    double holds, passes, cpu_us, share;
};

static struct sum match_sum(const struct match *match)
{
    struct sum sum = {0};
    uint64_t least = UINT64_MAX, most = 0;

    for (int i = 0; i < crowd_size(match->ours); i++) {
        struct feats feats = crowd_feats(match->ours, i);
        sum.holds += (double)feats.holds;
        sum.passes += (double)feats.passes;
        sum.cpu_us += feats.cpu_us;
        least = feats.holds < least ? feats.holds : least;
        most = feats.holds > most ? feats.holds : most;
    }
    must(sum.holds > 0, "nobody got the lock");
    sum.share = (double)least / (double)most;
    return sum;
}

static void match_tell_costs(struct match *match, const struct sum *sum)
{
    const struct server_load *load = &match->own.load;
    struct report *report = &match->bench->report;
    bool is_judged = match->is_judged && match->contention->is_share;
    double commands = load->client_commands / sum->holds;

    match_figure(match, "holds", sum->holds / match->own.seconds, "/s");
    match_figure(match, "owner switches", (double)match->own.switches / match->own.seconds, "/s");
    match_figure(match, "passes, of all holds", 100 * sum->passes / sum->holds, "%");
    match_figure(match, "server commands an acquisition", load->commands / sum->holds, "");
    match_figure(match, "server CPU an acquisition", load->cpu_us / sum->holds, "us");
    match_figure(match, "client CPU an acquisition", sum->cpu_us / sum->holds, "us");
    if (is_judged) {
        report_at_most(report, "client_commands_per_acquire", commands, "", 2.2);
        report_at_least(report, "share_min_over_max", sum->share, "", 0.9);
    } else {
        match_figure(match, "client commands an acquisition", commands, "");
        match_figure(match, "least over most served process", sum->share, "");
    }
}

static void match_tell_hands(struct match *match)
{
    struct samples *hands = &match->own.hands;

    if (match->is_judged && match->contention->is_fair && match->contention->threads == 1)
        report_figure(&match->bench->report, "fair_handover_p50_us", samples_quantile(hands, 0.5),
                      "us");
    else
        match_figure(match, "hand-over p50", samples_quantile(hands, 0.5), "us");
    match_figure(match, "hand-over p99", samples_quantile(hands, 0.99), "us");
    match_figure(match, "hand-over max", samples_max(hands), "us");
}

/* The ratio of the medians of the rounds. */
static void match_tell_ratio(struct match *match)
{
    const struct contention *contention = match->contention;
    struct report *report = &match->bench->report;
    double own = samples_quantile(&match->own.medians, 0.5);
    double least = samples_quantile(&match->least.medians, 0.5);

    must(least > 0, "the one-trip limit was not measured");
    match_figure(match, "one-trip limit p50", least, "us");
    match_figure(match, "one-trip limit p99", samples_quantile(&match->least.hands, 0.99), "us");
    match_figure(match, "one-trip limit max", samples_max(&match->least.hands), "us");
    match_figure(match, "one-trip limit, server CPU a trip",
                 match->least.load.cpu_us / (double)match->least.switches, "us");
    if (!match->is_judged) {
        match_figure(match, "hand-over over one-trip limit", own / least, "x");
        return;
    }
    if (!contention->hold.is_random)
        report_figure(report, "handover_p50_us", own, "us");
    report_at_most(report, contention->ratio, own / least, "x", contention->ratio_target);
}

static void match_run(struct match *match)
{
    const struct contention *contention = match->contention;
    struct rivals rivals = {.bench = match->bench,
                            .diary = match->diary,
                            .hold = contention->hold,
                            .threads = contention->threads,
                            .is_fair = contention->is_fair};
    struct trip trip = {
        .server = &match->bench->server, .diary = match->diary, .hold = contention->hold};

    match->ours = crowd_start(&rivals_job, &rivals, HANDOVER_PROCESSES);
    if (contention->beside_limit)
        match->limit = crowd_start(&trip_job, &trip, 2);
    match_play(match);
    struct sum sum = match_sum(match);
    match_tell_costs(match, &sum);
    match_tell_hands(match);
    if (contention->beside_limit) {
        match_tell_ratio(match);
        crowd_stop(match->limit);
    }
    crowd_stop(match->ours);
    samples_free(&match->own.medians);
    samples_free(&match->own.hands);
    samples_free(&match->least.medians);
    samples_free(&match->least.hands);
}

static void handover_measure(struct bench *bench, struct diary *diary, bool is_pinned)
{
    for (size_t i = 0; i < CONTENTIONS; i++) {
        if (contests[i].is_share && !is_pinned)
            continue; /* it would tell nothing that the first does not */
        struct match match = {.bench = bench,
                              .contention = &contests[i],
                              .placement = is_pinned ? "pinned" : "free",
                              .is_judged = is_pinned,
                              .diary = diary};
        match_run(&match);
    }
}

void scenario_handover(struct bench *bench)
{
    struct diary *diary = crowd_memory(sizeof(*diary));

    report_heading("4 processes, one name");
    if (cores_part(bench->server.pid))
        handover_measure(bench, diary, true);
    cores_free(bench->server.pid);
    handover_measure(bench, diary, false);
    crowd_memory_free(diary, sizeof(*diary));
}
