/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * hirelock run: the guard, a child of the process that the user started (the front). The client
 * lives in it; it holds the lock, and is the parent and the subreaper of the command. It is in a
 * process group of its own, so that Ctrl-Z stops the front and the command, and the lease is
 * renewed. When the front is gone, it ends the tree of the command and releases.
 *
 * With --no-fork the front becomes the command, and the guard watches it from beside.
 */
#ifndef CLI_RUN_GUARD_H
#define CLI_RUN_GUARD_H

#include "cli/run/words.h"

#include <signal.h>
#include <sys/types.h>

struct run_place {
    pid_t front;
    int pidfd;            /* of the front, with --no-fork; else -1 */
    int socket;           /* the guard's end */
    int terminal;         /* -1: none */
    sigset_t mask;        /* of the command, as it was when the user started us */
    bool is_chld_ignored; /* so, too; the front and the guard need SIGCHLD */
};

/* Runs in the child, and returns what it exits with. */
int run_guard(struct run_words *words, const struct run_place *place);

#endif
