/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A job that every machine starts at the same minute, and that shall run on one of them. Three
 * processes stand for the machines; their clocks differ a little.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MACHINES = 3, CLOCK_DIFFERENCE_MS = 100, RAN = 10 };

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void job(int machine)
{
    printf("machine %d runs the job\n", machine);
    nap_ms(20);
}

/* When the lock is lost, a second copy of the job may be running: this one has to end now. Exit
 * code 75 is EX_TEMPFAIL: try again at the next date. */
static void on_event(const hl_event *event, void *arg)
{
    (void)arg;
    if (event->kind == HL_EVENT_LOST)
        _Exit(75);
}

/* Returns RAN, 0 when another machine runs it, or a negative code. */
static int run_once(hl_client *client, int machine, hl_error *err)
{
    hl_lock *lock = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    int rc = hl_lock_new(client, "cron:nightly", &lock, err);

    options.wait_ms = HL_NO_WAIT; /* now or not today */
    /* The job may be done before the clock of the last machine strikes; the key stays until this
     * age, so that a late machine finds it busy. Longer than clocks differ, shorter than a period.
     */
    options.min_hold_ms = 2000;
    options.max_hold_ms = 3600000; /* a job that hangs loses the lock at last */
    options.on_event = on_event;
    if (rc == 0)
        rc = hl_lock_acquire_with(lock, &options, err);
    if (rc == 0) {
        job(machine);
        rc = hl_lock_release(lock, err);
        rc = rc < 0 ? rc : RAN;
    } else if (rc == HL_EBUSY) {
        printf("machine %d: another one has it\n", machine);
        rc = 0;
    }
    hl_lock_free(lock);
    return rc;
}

/* One machine: a process with a client of its own, opened after the fork. */
static int machine_main(const char *url, int machine)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    int rc = hl_client_open(url, NULL, &client, &err);
    if (rc == 0) {
        nap_ms((long)machine * CLOCK_DIFFERENCE_MS);
        rc = run_once(client, machine, &err);
    }
    if (rc < 0)
        fprintf(stderr, "cron_once: machine %d: %s\n", machine, err.text);
    hl_client_close(client);
    return rc < 0 ? EXIT_FAILURE : rc;
}

static const char does[] = "A job that three machines start, and that one of them runs.";

int main(int argc, char **argv)
{
    const char *url = example_url(argc, argv, does);
    int runs = 0, failures = 0, status = 0;

    for (int machine = 0; machine < MACHINES; machine++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(machine_main(url, machine));
        if (pid < 0) {
            perror("cron_once: fork");
            failures++;
        }
    }
    while (wait(&status) > 0) {
        bool ran = WIFEXITED(status) && WEXITSTATUS(status) == RAN;
        runs += ran;
        failures += !ran && status != 0;
    }
    printf("the job ran %d time%s on %d machines\n", runs, runs == 1 ? "" : "s", MACHINES);
    return runs != 1 || failures > 0;
}
