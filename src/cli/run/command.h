/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * hirelock run: how the command is started. It has this process's environment and HIRELOCK_NAME,
 * the names with commas between, and HIRELOCK_TOKEN (0: none).
 */
#ifndef CLI_RUN_COMMAND_H
#define CLI_RUN_COMMAND_H

#include "cli/run/guard.h"

/* Becomes the command; says why not, and returns an exit status. */
int run_command_become(const struct run_words *words, const struct run_place *place,
                       uint64_t token);

/* Starts it in a process group of its own, which gets the terminal when we have it. Returns its
 * process id; -1 when there is none, after it has said why. */
pid_t run_command_start(const struct run_words *words, const struct run_place *place,
                        uint64_t token);

/* Starts the command of --on-lost, with HIRELOCK_EVENT; says so when it cannot. */
void run_command_on_lost(const struct run_words *words, const struct run_place *place,
                         const char *event);

/* Is the terminal ours to give to the command at once? Not when the command is in a pipeline with
 * others that may read the terminal. */
bool run_has_terminal(int terminal, pid_t group);

#endif
