/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Workers on several machines that shall begin at the same moment, and not before each of them is
 * ready. One latch is counted down by the workers, the other is the gate at which they wait. Five
 * processes stand for the machines.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 5 };

struct gate {
    hl_client *client;
    hl_latch *ready, *open;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int gate_find(struct gate *gate, const char *url, hl_error *err)
{
    int rc = hl_client_open(url, NULL, &gate->client, err);

    if (rc == 0)
        rc = hl_latch_new(gate->client, "start:ready", &gate->ready, err);
    if (rc == 0)
        rc = hl_latch_new(gate->client, "start:open", &gate->open, err);
    return rc;
}

static void gate_leave(struct gate *gate)
{
    hl_latch_free(gate->ready);
    hl_latch_free(gate->open);
    hl_client_close(gate->client);
}

/* One process closes both latches before the workers begin. */
static int gate_close(const char *url, hl_error *err)
{
    struct gate gate = {NULL, NULL, NULL};
    int rc = gate_find(&gate, url, err);

    if (rc == 0)
        rc = hl_latch_try_set_count(gate.ready, WORKERS, err);
    if (rc == 0)
        rc = hl_latch_try_set_count(gate.open, 1, err);
    gate_leave(&gate);
    return rc;
}

/* Each takes its own time to get ready; then it says so, and waits. */
static int worker_main(const char *url, int worker, int result)
{
    struct gate gate = {NULL, NULL, NULL};
    hl_error err = HL_ERROR_INIT;
    int rc = gate_find(&gate, url, &err);

    nanosleep(&(struct timespec){0, worker * 40000000L}, NULL);
    if (rc == 0)
        rc = hl_latch_count_down(gate.ready, &err);
    if (rc == 0)
        rc = hl_latch_await_for(gate.open, 60000, &err);
    int64_t began = now_ns();
    if (rc < 0)
        fprintf(stderr, "start_gate: worker %d: %s\n", worker, err.text);
    else if (write(result, &began, sizeof(began)) != (ssize_t)sizeof(began))
        rc = -1;
    gate_leave(&gate);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* When the last one is ready: the gate opens for all of them. Returns the time before it did. */
static int64_t starter_open(const char *url, hl_error *err)
{
    struct gate gate = {NULL, NULL, NULL};
    int rc = gate_find(&gate, url, err);

    if (rc == 0)
        rc = hl_latch_await_for(gate.ready, 60000, err);
    int64_t opened = now_ns();
    if (rc == 0)
        rc = hl_latch_count_down(gate.open, err);
    gate_leave(&gate);
    return rc < 0 ? rc : opened;
}

static const char does[] = "Five workers that begin when the last one is ready.";

int main(int argc, char **argv)
{
    const char *url = example_url(argc, argv, does);
    hl_error err = HL_ERROR_INIT;
    int result[2], early = 0, workers = 0;
    int64_t began;

    if (pipe(result) < 0 || gate_close(url, &err) < 0) {
        fprintf(stderr, "start_gate: %s\n", err.text);
        return EXIT_FAILURE;
    }
    for (int worker = 0; worker < WORKERS; worker++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(worker_main(url, worker, result[1]));
        if (pid < 0)
            perror("start_gate: fork");
    }
    close(result[1]);
    int64_t opened = starter_open(url, &err);
    if (opened < 0)
        fprintf(stderr, "start_gate: %s\n", err.text);
    while (read(result[0], &began, sizeof(began)) == (ssize_t)sizeof(began)) {
        printf("a worker began %.1f ms after the gate opened\n", (double)(began - opened) / 1e6);
        workers++;
        early += began < opened;
    }
    while (wait(NULL) > 0)
        ;
    printf("%d workers began, %d of them before the gate was open\n", workers, early);
    return workers != WORKERS || early > 0;
}
