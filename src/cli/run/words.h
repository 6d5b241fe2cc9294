/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock run: the words of its command line. */
#ifndef CLI_RUN_WORDS_H
#define CLI_RUN_WORDS_H

#include "cli/server.h"

#include <stdint.h>

enum { RUN_NAMES = 100 }; /* the most members of a multi-lock */

enum run_lost { RUN_LOST_TERM, RUN_LOST_KILL, RUN_LOST_IGNORE, RUN_LOST_COMMAND };
enum run_no_server { RUN_NO_SERVER_FAIL, RUN_NO_SERVER_WAIT, RUN_NO_SERVER_RUN };

struct run_words {
    struct cli_server server;
    const char *names[RUN_NAMES];
    size_t name_count;
    char **command; /* ends with NULL */
    char *shell[4]; /* of -c, the command then */
    bool is_read, is_write, is_fair, is_fenced;
    bool is_here;                               /* -F: the process itself becomes the command */
    bool is_verbose;                            /* says how long it waited, and who held it */
    int64_t permits;                            /* 0: a lock */
    int64_t wait_ms;                            /* as in hl_wait_options */
    int64_t lease_ms, min_hold_ms, max_hold_ms; /* 0: not given */
    int64_t kill_after_ms;
    int conflict_status;
    enum run_lost lost;
    char *lost_command; /* of RUN_LOST_COMMAND */
    enum run_no_server no_server;
};

/* Ends the process when the words are of no use. */
void run_words_read(struct run_words *words, int argc, char **argv);

extern const struct argp run_argp;

#endif
