/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire and release by one thread at five masters, beside the same at one of them: by the Redlock
 * with one client (the classic lock), by the lock, and by raw commands. A figure is the median of
 * the rounds' medians of single pairs.
 *
 * All servers share a core here, or two, and five take turns there. The limit of that is what raw
 * connections to them take. Masters on machines of their own take no turns, but each answer is on
 * its way for a while. That is measured with a relay before each server: then asking all at once
 * must not cost much more than asking one.
 *
 * Back to back a pair also waits for the two masters that answered last to the call before, for
 * which it would not wait if each had a core of its own. So pairs are also measured apart: the lock
 * is held for a moment, and free for a moment, and what counts is the time of both calls.
 */
#include "cores.h"
#include "far.h"
#include "instant.h"
#include "must.h"
#include "raw_quorum.h"
#include "rounds.h"
#include "samples.h"
#include "scenario.h"

#include <hirelock/redlock.h>

#include <stdio.h>

enum { REDLOCK_ROUND_MS = 50, REDLOCK_MASTERS = 5, REDLOCK_PAUSE_US = 500 };
/* In each direction: a round trip of 0.3 ms, as between the zones of a data centre. */
enum { REDLOCK_FAR_US = 150 };

/* The sides, in the order in which the rounds go. */
enum {
    REDLOCK_RAW_ONE,
    REDLOCK_RAW_FIVE,
    REDLOCK_LOCK,
    REDLOCK_CLASSIC,
    REDLOCK_FIVE,
    REDLOCK_SIDES
};

static const char *const redlock_texts[REDLOCK_SIDES] = {
    [REDLOCK_RAW_ONE] = "raw, one master",
    [REDLOCK_RAW_FIVE] = "raw, five masters",
    [REDLOCK_LOCK] = "lock",
    [REDLOCK_CLASSIC] = "Redlock of one master",
    [REDLOCK_FIVE] = "Redlock of five masters",
};

struct redlock_side {
    hl_lock *lock;
    struct raw_quorum *raw; /* instead of it */
    int64_t pause_us;       /* behind each call */
    struct samples medians; /* of each round, in us */
};

struct redlock_limits { /* of pairs that are apart; 0: none */
    double over_one, over_raw;
};

static void redlock_acquire(const struct redlock_side *side)
{
    if (side->raw)
        raw_quorum_acquire(side->raw);
    else
        scenario_acquire(side->lock);
}

static void redlock_release(const struct redlock_side *side)
{
    if (side->raw)
        raw_quorum_release(side->raw);
    else
        scenario_release(side->lock);
}

/* Returns how long the call took. */
static double redlock_call_us(const struct redlock_side *side,
                              void (*call)(const struct redlock_side *side))
{
    int64_t began = instant_now();

    call(side);
    double us = (double)(instant_now() - began) / 1e3;
    if (side->pause_us > 0)
        instant_sleep_us(side->pause_us);
    return us;
}

static uint64_t redlock_work(void *arg, int64_t until)
{
    struct redlock_side *side = arg;
    struct samples pairs = {0};

    do {
        double us = redlock_call_us(side, redlock_acquire);
        samples_add(&pairs, us + redlock_call_us(side, redlock_release));
    } while (instant_now() < until);
    uint64_t done = pairs.count;
    samples_add(&side->medians, samples_quantile(&pairs, 0.5));
    samples_free(&pairs);
    return done;
}

static hl_lock *redlock_of(hl_client *const *clients, size_t count, const char *name)
{
    hl_redlock_options options = HL_REDLOCK_OPTIONS_INIT;
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    options.name = name;
    options.flags = HL_REDLOCK_NO_RESTART_DELAY; /* the masters have just been started */
    must(hl_redlock_new_with(clients, count, &options, &lock, &err) == 0, "redlock: %s", err.text);
    return lock;
}

/* limit 0: without a target. */
static void redlock_ratio(struct bench *bench, const char *placement, struct redlock_side *sides,
                          int over, double limit)
{
    double ratio = samples_quantile(&sides[REDLOCK_FIVE].medians, 0.5) /
                   samples_quantile(&sides[over].medians, 0.5);
    char name[96];

    snprintf(name, sizeof(name), "Redlock, %s: five masters over %s", placement,
             redlock_texts[over]);
    if (limit > 0)
        report_at_most(&bench->report, name, ratio, "x", limit);
    else
        report_figure(&bench->report, name, ratio, "x");
}

static void redlock_tell(struct bench *bench, struct redlock_side *sides,
                         const struct rounds *rounds, const char *placement,
                         const struct redlock_limits *limits)
{
    char name[96];

    for (int i = 0; i < REDLOCK_SIDES; i++) {
        snprintf(name, sizeof(name), "Redlock, %s: %s, p50", placement, redlock_texts[i]);
        report_figure(&bench->report, name, samples_quantile(&sides[i].medians, 0.5), "us");
        snprintf(name, sizeof(name), "Redlock, %s: %s, client CPU", placement, redlock_texts[i]);
        report_figure(&bench->report, name, rounds->side[i].cpu_us, "us");
    }
    redlock_ratio(bench, placement, sides, REDLOCK_CLASSIC, limits->over_one);
    redlock_ratio(bench, placement, sides, REDLOCK_LOCK, 0);
    redlock_ratio(bench, placement, sides, REDLOCK_RAW_FIVE, limits->over_raw);
}

static void redlock_run(struct bench *bench, struct redlock_side *sides, int64_t pause_us,
                        const char *placement, const struct redlock_limits *limits)
{
    struct rounds rounds = {
        .count = bench->is_quick ? 24 : 100, .ms = REDLOCK_ROUND_MS, .sides = REDLOCK_SIDES};

    for (int i = 0; i < REDLOCK_SIDES; i++) {
        sides[i].pause_us = pause_us;
        rounds.side[i] = (struct rounds_side){.work = redlock_work, .arg = &sides[i]};
    }
    rounds_run(&rounds);
    redlock_tell(bench, sides, &rounds, placement, limits);
    for (int i = 0; i < REDLOCK_SIDES; i++)
        samples_free(&sides[i].medians);
}

static void redlock_measure(struct bench *bench, const struct nodes *nodes, const char *placement,
                            const struct redlock_limits *limits)
{
    char name[64];
    hl_client *clients[REDLOCK_MASTERS];
    struct raw_quorum one, five;

    for (int i = 0; i < REDLOCK_MASTERS; i++)
        clients[i] = scenario_client_at(nodes->node[i].url, NULL);
    raw_quorum_open(&one, nodes, 1, "bench:redlock:raw1");
    raw_quorum_open(&five, nodes, REDLOCK_MASTERS, "bench:redlock:raw5");
    struct redlock_side sides[REDLOCK_SIDES] = {
        [REDLOCK_RAW_ONE] = {.raw = &one},
        [REDLOCK_RAW_FIVE] = {.raw = &five},
        [REDLOCK_LOCK] = {.lock = scenario_lock(clients[0], "bench:redlock:%d", REDLOCK_LOCK)},
        [REDLOCK_CLASSIC] = {.lock = redlock_of(clients, 1, "bench:redlock:1")},
        [REDLOCK_FIVE] = {.lock = redlock_of(clients, REDLOCK_MASTERS, "bench:redlock:5")}};

    snprintf(name, sizeof(name), "%s, apart", placement);
    redlock_run(bench, sides, REDLOCK_PAUSE_US, name, limits);
    snprintf(name, sizeof(name), "%s, back to back", placement);
    redlock_run(bench, sides, 0, name, &(const struct redlock_limits){0});
    for (int i = REDLOCK_LOCK; i < REDLOCK_SIDES; i++)
        hl_lock_free(sides[i].lock);
    raw_quorum_close(&one);
    raw_quorum_close(&five);
    for (int i = 0; i < REDLOCK_MASTERS; i++)
        hl_client_close(clients[i]);
}

static bool redlock_part(const struct nodes *nodes)
{
    bool are_parted = true;

    for (int i = 0; i < REDLOCK_MASTERS; i++)
        are_parted = cores_part(nodes->node[i].pid) && are_parted;
    return are_parted;
}

static void redlock_measure_far(struct bench *bench, const struct nodes *nodes)
{
    struct nodes far = *nodes;

    for (int i = 0; i < REDLOCK_MASTERS; i++)
        far.node[i] = far_begin(&nodes->node[i], REDLOCK_FAR_US);
    redlock_part(&far);
    redlock_measure(bench, &far, "0.3 ms away", &(const struct redlock_limits){.over_one = 2});
    for (int i = 0; i < REDLOCK_MASTERS; i++)
        far_end(&far.node[i]);
}

void scenario_redlock(struct bench *bench)
{
    struct nodes nodes;

    report_heading("acquire and release, one thread, five masters and one");
    nodes_start_alone(&nodes, REDLOCK_MASTERS);
    if (redlock_part(&nodes))
        redlock_measure(bench, &nodes, "pinned", &(const struct redlock_limits){.over_raw = 1.2});
    redlock_measure_far(bench, &nodes);
    for (int i = 0; i < REDLOCK_MASTERS; i++)
        cores_free(nodes.node[i].pid);
    redlock_measure(bench, &nodes, "free", &(const struct redlock_limits){0});
    nodes_stop(&nodes);
}
