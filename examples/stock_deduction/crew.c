/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Forking, waiting, and a clean end. */
#define _POSIX_C_SOURCE 200809L
#include "crew.h"

#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct crew {
    pid_t pids[OPTIONS_MAX_PROCESSES]; /* 0: has ended */
    int alive;
    bool is_well; /* all that ended have ended as they should */
};

static volatile sig_atomic_t crew_is_interrupted;

static void crew_on_signal(int number)
{
    (void)number;
    crew_is_interrupted = 1;
}

void crew_catch_signals(void)
{
    struct sigaction action = {.sa_handler = crew_on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void crew_child(const struct options *options, struct sale *sale, int process,
                       const int gate[2])
{
    close(gate[1]); /* or the gate would stay open as long as we live */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no seller outlives the sale */
    if (getppid() != (pid_t)sale->id) /* it has ended already */
        _exit(EXIT_FAILURE);
    exit(worker_run(options, sale, process, gate[0]));
}

static bool crew_fork(struct crew *crew, const struct options *options, struct sale *sale,
                      const int gate[2])
{
    fflush(NULL); /* or each child would print it again */
    for (int i = 0; i < options->processes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            crew_child(options, sale, i, gate);
        if (pid < 0) {
            perror("stock_deduction: fork");
            return false;
        }
        crew->pids[i] = pid;
        crew->alive++;
    }
    return true;
}

static void crew_kill(const struct crew *crew)
{
    for (int i = 0; i < OPTIONS_MAX_PROCESSES; i++)
        if (crew->pids[i] > 0)
            kill(crew->pids[i], SIGKILL);
}

static void crew_reap(struct crew *crew, const struct sale *sale)
{
    int status = 0;

    for (int i = 0; i < OPTIONS_MAX_PROCESSES; i++) {
        if (crew->pids[i] == 0 || waitpid(crew->pids[i], &status, WNOHANG) <= 0)
            continue;
        crew->pids[i] = 0;
        crew->alive--;
        bool is_meant = i == sale->killed_process && WIFSIGNALED(status);
        if (status != 0 && !is_meant)
            crew->is_well = false;
        if (WIFSIGNALED(status) && !is_meant && !crew_is_interrupted)
            fprintf(stderr, "stock_deduction: process %d was ended by signal %d\n", i + 1,
                    WTERMSIG(status));
    }
}

/* A seller who cannot begin, or an order that fails, ends the sale for all. */
static bool crew_is_over(const struct crew *crew, const struct sale *sale)
{
    return crew->alive == 0 || !crew->is_well || crew_is_interrupted ||
           atomic_load(&sale->failed) > 0;
}

static void crew_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void crew_wait(struct crew *crew, const struct options *options, struct sale *sale,
                      int *gate)
{
    unsigned everyone = (unsigned)(options->processes * options->threads);

    while (atomic_load(&sale->ready) < everyone && !crew_is_over(crew, sale)) {
        crew_nap();
        crew_reap(crew, sale);
    }
    sale->began_us = sale_now_us();
    close(*gate);
    *gate = -1;
}

enum crew_verdict crew_run(const struct options *options, struct sale *sale,
                           void (*watch)(const struct sale *sale))
{
    struct crew crew = {.is_well = true};
    int gate[2];

    if (pipe(gate) < 0) {
        perror("stock_deduction: pipe");
        return CREW_FAILED;
    }
    crew.is_well = crew_fork(&crew, options, sale, gate);
    crew_wait(&crew, options, sale, &gate[1]);
    while (!crew_is_over(&crew, sale)) {
        watch(sale);
        crew_nap();
        crew_reap(&crew, sale);
    }
    crew_kill(&crew);
    while (crew.alive > 0) {
        crew_nap();
        crew_reap(&crew, sale);
    }
    close(gate[0]);
    if (crew_is_interrupted)
        return CREW_INTERRUPTED;
    return crew.is_well && atomic_load(&sale->failed) == 0 ? CREW_DONE : CREW_FAILED;
}
