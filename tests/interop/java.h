/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A JVM that runs tests/interop/java, and the lines that go to and fro (README.md). It ends with
 * the process that started it, or when that lets go of it. A test talks to it in its main thread.
 */
#ifndef HL_INTEROP_JAVA_H
#define HL_INTEROP_JAVA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct java;

struct java_answer {
    int64_t ended_ns; /* of CLOCK_MONOTONIC; 0: it is not here yet */
    bool threw;
    char text[1024]; /* the value, or "CLASS: MESSAGE" */
};

/* Why no JVM can be started here; NULL when one can. */
const char *java_lacks(void);

/* A JVM of the caller's own that runs this class of ours. The calling thread lives as long as the
 * JVM is needed. */
struct java *java_start(const char *class);
pid_t java_pid(const struct java *java);

/* The JVM that another process has started in this directory. Waits until no other test uses it. */
struct java *java_join(const char *dir);
const char *java_dir(const struct java *java);

/* Ends a JVM of this process, and leaves another process's. Output that was not read before, other
 * than answers, is a failure. NULL is accepted. */
void java_leave(struct java *java);

void java_kill(struct java *java); /* SIGKILL; java_leave() comes after it */

/* Sends a line, "WHO WORD...", and gives its number. */
int java_ask(struct java *java, const char *line);

/* Its answer, when it has come within slow_ms(ms); ended_ns is 0 otherwise. Borrowed, and forgotten
 * a thousand lines later. */
const struct java_answer *java_answer(struct java *java, int number, int64_t ms);

/* The log since the last call, "" for nothing; borrowed until the next call. */
const char *java_log(struct java *java);

#endif
