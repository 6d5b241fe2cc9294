/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire and release by one thread, beside the raw pair. Before it the raw side is held against
 * redis-benchmark, so that nobody has to believe that it is a fair one.
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

enum { PAIR_ROUND_MS = 50, PAIR_CHECK_CALLS = 20000 };

struct pair {
    struct raw raw;
    hl_lock *lock;
};

static uint64_t pair_raw(void *arg, int64_t until)
{
    struct pair *pair = arg;
    uint64_t done = 0;

    do {
        must(raw_acquire(&pair->raw), "the raw side met a strange lock");
        raw_release(&pair->raw);
        done++;
    } while (instant_now() < until);
    return done;
}

static uint64_t pair_ours(void *arg, int64_t until)
{
    const struct pair *pair = arg;
    uint64_t done = 0;

    do {
        scenario_acquire(pair->lock);
        scenario_release(pair->lock);
        done++;
    } while (instant_now() < until);
    return done;
}

static void pair_measure(struct bench *bench, const char *placement)
{
    struct pair pair;
    char name[96];
    struct rounds rounds = {.count = bench->is_quick ? 40 : 100,
                            .ms = PAIR_ROUND_MS,
                            .raw = pair_raw,
                            .ours = pair_ours,
                            .arg = &pair};
    hl_client *client = scenario_client(bench, NULL);

    raw_open(&pair.raw, &bench->server, "bench:raw:0", 0);
    pair.lock = scenario_lock(client, "bench:own:%d", 0);
    rounds_run(&rounds);

    snprintf(name, sizeof(name), "pair, %s: raw", placement);
    report_figure(&bench->report, name, 1e6 / rounds.raw_rate, "us");
    snprintf(name, sizeof(name), "pair, %s: hirelock", placement);
    report_figure(&bench->report, name, 1e6 / rounds.ours_rate, "us");
    snprintf(name, sizeof(name), "pair, %s: hirelock over raw", placement);
    report_at_most(&bench->report, name, rounds.raw_rate / rounds.ours_rate, "x", 1.35);

    hl_lock_free(pair.lock);
    hl_client_close(client);
    raw_close(&pair.raw);
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
    for (int i = 0; i < (bench->is_quick ? 5 : 11); i++) {
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

/* What wakes whom across cores decides more than what either side does; so each placement is told.
 */
void scenario_pair(struct bench *bench)
{
    int server_core, client_core;
    bool has_two = cores_pick(&server_core, &client_core);

    report_heading("acquire and release, one thread");
    cores_pin_process(bench->server.pid, server_core);
    cores_pin_thread(server_core);
    pair_check_raw(bench);
    pair_measure(bench, "all on one core");
    if (has_two) {
        cores_pin_thread(client_core);
        pair_measure(bench, "server and client on a core each");
    }
    cores_free_thread();
    cores_free_process(bench->server.pid);
    pair_measure(bench, "free placement");
}
