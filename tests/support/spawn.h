/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Programs started by tests. A child dies with the thread that started it (PR_SET_PDEATHSIG), so a
 * killed test leaves no process behind; start children from a thread that outlives them.
 */
#ifndef HL_TEST_SPAWN_H
#define HL_TEST_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spawn {
    char *const *argv;          /* argv[0] is looked up in PATH */
    const char *input;          /* file that is its stdin; NULL: /dev/null */
    const char *output;         /* file to which stdout and stderr are appended */
    const char *errors;         /* file for stderr alone; NULL: .output */
    const char *environment[4]; /* NAME=value to add or to replace; NULL ends the list */
};

pid_t spawn_start(const struct spawn *spawn);

/* True when the child ended within ms; *ret_status is then its wait status. */
bool spawn_reap(pid_t pid, int64_t ms, int *ret_status);

#endif
