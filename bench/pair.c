/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire and release by one thread, beside the raw pair: as they come, with busy poll, and with
 * posted release. Before it redis-benchmark runs the same command, to show that the raw side is a
 * fair comparison.
 */
#include "cores.h"
#include "instant.h"
#include "must.h"
#include "raw.h"
#include "rounds.h"
#include "samples.h"
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIR_ROUND_MS = 50, PAIR_CHECK_CALLS = 20000, PAIR_POLL_US = 100 };

/* The sides, in the order in which the rounds go. */
enum { PAIR_RAW, PAIR_PLAIN, PAIR_BUSY, PAIR_POSTED, PAIR_SIDES };

static const struct pair_side {
    const char *text, *figure;
    double target;
} pair_sides[PAIR_SIDES] = {
    [PAIR_RAW] = {"raw", NULL, 0},
    [PAIR_PLAIN] = {"hirelock", "uncontended_pair_vs_raw", 1.15},
    [PAIR_BUSY] = {"busy poll", "busy_poll_pair_vs_raw", 0.75},
    [PAIR_POSTED] = {"posted release", "posted_pair_vs_raw", 0.72},
};

/* Targets are for a server and a client on a core each. */
static void pair_tell(struct bench *bench, const struct rounds *rounds, const char *placement,
                      bool is_judged)
{
    char name[96];

    for (size_t i = 0; i < rounds->sides; i++) {
        const struct rounds_side *side = &rounds->side[i];
        const struct pair_side *about = &pair_sides[i];
        snprintf(name, sizeof(name), "pair, %s: %s", placement, about->text);
        report_figure(&bench->report, name, 1e6 / side->rate, "us");
        snprintf(name, sizeof(name), "pair, %s: %s, client CPU", placement, about->text);
        report_figure(&bench->report, name, side->cpu_us, "us");
        if (i == PAIR_RAW)
            continue;
        double ratio = rounds->side[PAIR_RAW].rate / side->rate;
        snprintf(name, sizeof(name), "pair, %s: %s over raw", placement, about->text);
        if (is_judged)
            report_at_most(&bench->report, about->figure, ratio, "x", about->target);
        else
            report_figure(&bench->report, name, ratio, "x");
    }
}

static void pair_measure(struct bench *bench, const char *placement, bool is_judged)
{
    struct raw raw;
    hl_client_options busy = HL_CLIENT_OPTIONS_INIT;
    hl_lock_options posted = HL_LOCK_OPTIONS_INIT;

    busy.busy_poll_us = PAIR_POLL_US;
    posted.flags = HL_LOCK_ASYNC_RELEASE;
    hl_client *client = scenario_client(bench, NULL);
    hl_client *poller = scenario_client(bench, &busy);
    hl_lock *plain_lock = scenario_lock(client, "bench:own:%d", PAIR_PLAIN);
    hl_lock *busy_lock = scenario_lock(poller, "bench:own:%d", PAIR_BUSY);
    hl_lock *posted_lock = scenario_lock_with(client, "bench:own:3", &posted);
    struct rounds rounds = {.count = bench->is_quick ? 24 : 100,
                            .ms = PAIR_ROUND_MS,
                            .sides = PAIR_SIDES,
                            .side = {[PAIR_RAW] = {.work = raw_pairs, .arg = &raw},
                                     [PAIR_PLAIN] = {.work = scenario_pairs, .arg = plain_lock},
                                     [PAIR_BUSY] = {.work = scenario_pairs, .arg = busy_lock},
                                     [PAIR_POSTED] = {.work = scenario_pairs, .arg = posted_lock}}};

    raw_open(&raw, &bench->server, "bench:raw:0", 0);
    rounds_run(&rounds);
    pair_tell(bench, &rounds, placement, is_judged);

    hl_lock_free(plain_lock);
    hl_lock_free(busy_lock);
    hl_lock_free(posted_lock);
    hl_client_close(client);
    hl_client_close(poller);
    raw_close(&raw);
}

/* The rate that redis-benchmark gives for the same command: "COMMAND","RATE",... on the last line.
 */
static double pair_redis_benchmark(const struct raw *raw, int port)
{
    char command[512], line[512], last[512] = "";

    snprintf(command, sizeof(command),
             "redis-benchmark -h 127.0.0.1 -p %d -c 1 -n %d --csv evalsha %s 1 %s %s %s 1", port,
             PAIR_CHECK_CALLS, raw->acquire_sha, raw->name, raw->field, raw->lease);
    FILE *output = popen(command, "re"); /* NOLINT(cert-env33-c): our own words only */
    must(output != NULL, "redis-benchmark cannot be started");
    while (fgets(line, sizeof(line), output))
        memcpy(last, line, sizeof(last));
    must(pclose(output) == 0, "redis-benchmark failed");
    const char *rate = strstr(last, "\",\"");
    must(rate != NULL, "redis-benchmark said: %s", last);
    return strtod(rate + 3, NULL);
}

static double pair_raw_rate(struct raw *raw)
{
    int64_t began = instant_now();

    for (int i = 0; i < PAIR_CHECK_CALLS; i++)
        must(raw_acquire(raw), "the raw side met a strange lock");
    return PAIR_CHECK_CALLS * 1e9 / (double)(instant_now() - began);
}

/* One command, the acquire script for a lock that is held already, for redis-benchmark can repeat
 * only one. */
static void pair_check_raw(struct bench *bench)
{
    struct samples raw_rates = {0}, other_rates = {0};
    struct raw raw;

    raw_open(&raw, &bench->server, "bench:raw:check", 0);
    for (int i = 0; i < (bench->is_quick ? 3 : 11); i++) {
        samples_add(&raw_rates, pair_raw_rate(&raw));
        samples_add(&other_rates, pair_redis_benchmark(&raw, bench->server.port));
    }
    double rate = samples_quantile(&raw_rates, 0.5), other = samples_quantile(&other_rates, 0.5);
    report_figure(&bench->report, "one EVALSHA, raw side", rate, "/s");
    report_figure(&bench->report, "one EVALSHA, redis-benchmark -c 1", other, "/s");
    report_at_least(&bench->report, "raw side over redis-benchmark", rate / other, "x", 0.9);
    raw_release(&raw);
    raw_close(&raw);
    samples_free(&raw_rates);
    samples_free(&other_rates);
}

/* The wake-ups between cores decide more than the work of either side. So every placement on cores
 * is reported, and the placement whose figures repeat is judged. */
void scenario_pair(struct bench *bench)
{
    int server_core, client_core;

    cores_pick(&server_core, &client_core);
    report_heading("acquire and release, one thread");
    cores_pin_process(bench->server.pid, server_core);
    cores_pin_thread(server_core);
    pair_check_raw(bench);
    pair_measure(bench, "one core", false);
    if (cores_part(bench->server.pid))
        pair_measure(bench, "pinned", true);
    cores_free(bench->server.pid);
    pair_measure(bench, "free", false);
}
