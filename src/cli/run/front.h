/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * hirelock run: the front, the process that the user started. It passes signals on, stops and
 * continues with the command, gives it the terminal, and ends with its status. When the guard is
 * gone, the command's tree comes to the front, a subreaper, which ends it.
 */
#ifndef CLI_RUN_FRONT_H
#define CLI_RUN_FRONT_H

#include "cli/run/words.h"

#include <signal.h>
#include <sys/types.h>

struct run_front {
    const struct run_words *words;
    int socket;   /* the front's end */
    int terminal; /* -1: none */
    pid_t guard;
    sigset_t signals; /* those that are passed on; they are blocked */
};

/* Returns the exit status, or ends by the signal that ended the wait. */
int run_front(const struct run_front *front);

#endif
