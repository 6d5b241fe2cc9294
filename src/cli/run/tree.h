/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The processes below one, wherever they are: process groups and sessions of their own do not hide
 * them, as long as an ancestor below a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) is its child.
 */
#ifndef CLI_RUN_TREE_H
#define CLI_RUN_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sends the signal to each descendant of `root`, and SIGCONT behind it, so that a stopped process
 * gets it. Not to root itself. */
void run_tree_signal(pid_t root, int signal);

/* The end of a tree: TERM, and KILL when its time is over. All zero: not begun. */
struct run_ending {
    pid_t root;
    int root_fd; /* pidfd of root, which is ended, too; -1: it is not */
    bool is_begun, is_killing;
    int64_t kill_at; /* by cli_now_ms() */
};

void run_ending_begin(struct run_ending *ending, pid_t root, int root_fd, int64_t kill_after_ms);

/* What is due; called again and again until the tree has ended. */
void run_ending_step(struct run_ending *ending);
/* For poll(2): -1 if it has not begun. */
int run_ending_timeout(const struct run_ending *ending);

#endif
