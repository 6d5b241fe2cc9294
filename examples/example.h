/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The command line of the examples: PROGRAM [URL]. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The server's URL: the first argument, else REDIS_URL of the environment, else this machine's.
 * --help prints what the program does, and ends it. */
static inline const char *example_url(int argc, char **argv, const char *does)
{
    const char *url = getenv("REDIS_URL");

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: %s [URL]\n\n%s\n\n"
               "URL is redis://[[user]:password@]host[:port][/db] or unix:///path; without it\n"
               "REDIS_URL of the environment, or redis://127.0.0.1.\n",
               argv[0], does);
        exit(EXIT_SUCCESS);
    }
    if (argc > 1 && argv[1][0] == '-') {
        fprintf(stderr, "%s: %s is no option; see --help\n", argv[0], argv[1]);
        exit(2);
    }
    return argc > 1 ? argv[1] : url ? url : "redis://127.0.0.1";
}

#endif
