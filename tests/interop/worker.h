/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A program in another language that does what lines tell it, and the lines that go to and fro
 * (README.md). It ends with the process that started it, or when that lets go of it. A test talks
 * to it in its main thread.
 */
#ifndef HL_INTEROP_WORKER_H
#define HL_INTEROP_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct worker;

struct worker_answer {
    int64_t ended_ns; /* of CLOCK_MONOTONIC; 0: it is not here yet */
    bool threw;
    char text[1024]; /* the value, or "CLASS: MESSAGE" */
};

/* A worker of the caller's own; argv[0] is looked up in PATH. The calling thread lives as long as
 * the worker is needed. */
struct worker *worker_start(char *const argv[]);
pid_t worker_pid(const struct worker *worker);

/* The worker that another process has started in this directory. Waits until no other test uses it.
 */
struct worker *worker_join(const char *dir);
const char *worker_dir(const struct worker *worker);

/* Ends a worker of this process, and leaves another process's. Output that was not read before,
 * other than answers, is a failure. NULL is accepted. */
void worker_leave(struct worker *worker);

void worker_kill(struct worker *worker); /* SIGKILL; worker_leave() comes after it */

/* Sends a line, "WHO WORD...", and gives its number. */
int worker_ask(struct worker *worker, const char *line);

/* Its answer, when it has come within slow_ms(ms); ended_ns is 0 otherwise. Borrowed, and forgotten
 * a thousand lines later. */
const struct worker_answer *worker_answer(struct worker *worker, int number, int64_t ms);

/* The log since the last call, "" for nothing; borrowed until the next call. */
const char *worker_log(struct worker *worker);

#endif
