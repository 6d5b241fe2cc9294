/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A function run in a forked child, with memory that both sides see and events that either side
 * tells and awaits. Start children before the process has other threads: under ThreadSanitizer a
 * child of a process with threads may start none. A check that fails in the child ends it and fails
 * the test. A child dies with the thread that started it.
 */
#ifndef HL_TEST_PROCESS_H
#define HL_TEST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_EVENTS = 32, PROCESS_SHARED = 1 << 16 };

struct process;

/* The child ends with exit code 0 when the body returns. */
typedef void process_body(struct process *self, void *arg);

struct process *process_start(process_body *body, void *arg);

/* Waits for the child's end and frees it; kills a child that still runs after slow_ms(ms). Returns
 * the exit code, or minus the signal that ended the child. */
int process_finish(struct process *process, int64_t ms);

/* PROCESS_SHARED zeroed bytes, seen by both sides; they survive the child. */
void *process_shared(struct process *process);

/* Events are counted: process_tell() adds one to an event; process_await() waits until the event
 * was told `count` times, and returns false when slow_ms(ms) passed or the other side died first.
 */
void process_tell(struct process *process, int event);
bool process_await(struct process *process, int event, uint32_t count, int64_t ms);

void process_kill(struct process *process); /* SIGKILL, and waits until it is dead */
void process_stop(struct process *process); /* SIGSTOP, and waits until it stands still */
void process_continue(struct process *process);
pid_t process_pid(const struct process *process);

#endif
