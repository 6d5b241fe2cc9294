/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the command line asks for. */
#ifndef STOCK_DEDUCTION_OPTIONS_H
#define STOCK_DEDUCTION_OPTIONS_H

#include <stdbool.h>

enum { OPTIONS_MAX_PROCESSES = 32, OPTIONS_MAX_THREADS = 256 };

struct options {
    const char *url;
    const char *lock_url;    /* NULL: url */
    const char *ca;          /* the authority of lock_url's server, or NULL */
    long processes, threads; /* threads of each process */
    long stock;
    long lease_ms;
    long kill_pid; /* the process that is killed in place of a seller, or 0 */
    bool kill, json;
};

enum options_verdict { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_WRONG };

/* Prints the help, or what is wrong, itself. */
enum options_verdict options_read(struct options *options, int argc, char **argv);

#endif
