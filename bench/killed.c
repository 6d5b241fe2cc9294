/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A process that holds 100 locks is killed: when does the next waiter have each of them? */
#include "grants.h"
#include "instant.h"
#include "must.h"
#include "samples.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILLED_NAMES = 100,
    KILLED_WATCHDOG_MS = 3000,
    KILLED_POLL_MS = 1300, /* the longest: 1,000 and 30 % */
    KILLED_ASK_MS = 100,   /* for the asking itself */
};

/* The holder: takes them a few milliseconds apart, so that their renewals and the killing fall
 * differently, and tells when it has them all. */
static void holder_run(struct bench *bench, int told)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.watchdog_timeout_ms = KILLED_WATCHDOG_MS;
    hl_client *client = scenario_client(bench, &options);
    for (int i = 0; i < KILLED_NAMES; i++) {
        scenario_acquire(scenario_lock(client, "bench:killed:%d", i));
        instant_sleep_ms(10);
    }
    must(write(told, "", 1) == 1, "the parent is gone");
    for (;;)
        pause();
}

static pid_t holder_start(struct bench *bench)
{
    int told[2];
    char byte;

    must(pipe(told) == 0, "no pipe");
    pid_t pid = fork();
    must(pid >= 0, "no process");
    if (pid == 0)
        holder_run(bench, told[1]);
    close(told[1]);
    must(read(told[0], &byte, 1) == 1, "the holder failed");
    close(told[0]);
    return pid;
}

/* When each of them can be had: the lease that was left when the holder was dead. */
static void killed_check(struct bench *bench, struct grants *grants)
{
    for (int i = 0; i < grants->count; i++) {
        int64_t left = server_int(&bench->server, "PTTL bench:killed:%d", i);
        grants->grant[i].free_at = instant_now() + (left > 0 ? left : 0) * 1000000;
    }
}

void scenario_killed(struct bench *bench)
{
    struct samples late = {0}, whole = {0};
    int in_time = 0;

    report_heading("the holder is killed");
    pid_t holder = holder_start(bench);
    hl_client *client = scenario_client(bench, NULL);
    struct grants *grants = grants_begin(bench, client, "bench:killed:", KILLED_NAMES);
    instant_sleep_ms(KILLED_WATCHDOG_MS / 2);
    int64_t killed_at = instant_now();
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    killed_check(bench, grants);
    grants_wait(grants, 4L * KILLED_WATCHDOG_MS);

    for (int i = 0; i < grants->count; i++) {
        const struct grant *grant = &grants->grant[i];
        if (grant->served_at == 0)
            continue;
        double ms = (double)(grant->served_at - grant->free_at) / 1e6;
        samples_add(&late, ms);
        samples_add(&whole, (double)(grant->served_at - killed_at) / 1e6);
        in_time += ms <= KILLED_POLL_MS + KILLED_ASK_MS;
    }
    report_at_least(&bench->report, "killed holder, lease 3 s: next grant in time, of 100", in_time,
                    "", KILLED_NAMES);
    report_figure(&bench->report, "killed holder: grant after the kill, median",
                  samples_quantile(&whole, 0.5), "ms");
    report_figure(&bench->report, "killed holder: grant after the kill, max", samples_max(&whole),
                  "ms");
    report_figure(&bench->report, "killed holder: grant after the end of the lease, max",
                  samples_max(&late), "ms");
    grants_release(grants);
    hl_client_close(client);
    samples_free(&late);
    samples_free(&whole);
}
