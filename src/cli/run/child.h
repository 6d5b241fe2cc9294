/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * hirelock run: a child between fork and exec. The guard has threads, and any of them may have held
 * a lock of the C library at the fork. So all is made ready before it, and only async-signal-safe
 * functions are called here (signal-safety(7); tests/shape/child.sh).
 */
#ifndef CLI_RUN_CHILD_H
#define CLI_RUN_CHILD_H

#include "cli/run/guard.h"

struct run_child {
    char *const *words; /* of the command; they end with NULL */
    char **environment;
    const struct run_place *place;
    bool has_terminal; /* it gets the terminal */
    bool dies_with_us; /* whatever happens to the front */
};

/* Becomes the command; says why not, and returns 126 or 127. */
int run_child_become(const struct run_child *child);

/* Starts the command in a process group of its own. Returns its process id; -1 with errno. */
pid_t run_child_start(const struct run_child *child);

#endif
