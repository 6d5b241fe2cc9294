/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The server that a command talks to: the options that all commands share, and its client. */
#ifndef CLI_SERVER_H
#define CLI_SERVER_H

#include "cli/cli.h"

#include <hirelock/hirelock.h>

struct cli_server {
    char *url;    /* owned; NULL: of the environment */
    char *prefix; /* owned; NULL: none, until cli_server_open() finds one */
};

/* A child for a command's argp; its input is a struct cli_server. */
extern const struct argp cli_server_argp;

/* Takes a copy of the URL, and wipes the word of the command line. */
void cli_server_take_url(struct cli_server *server, char *word);

/* Opens a client for the --url, else HIRELOCK_URL, else REDIS_URL, else redis://127.0.0.1. Options
 * may be NULL; their name_prefix is overwritten. Without a --prefix the URL or the environment may
 * have one, which is the server's from then on. Returns CLI_OK, or says why not and returns an exit
 * status. */
int cli_server_open(struct cli_server *server, const hl_client_options *options,
                    hl_client **ret_client);

/* That URL; borrowed. */
const char *cli_server_url(const struct cli_server *server);

/* The --url without its password, to be shown; NULL: none was given, or memory is out. Owned by the
 * caller. */
char *cli_server_shown_url(const struct cli_server *server);

/* A server that a client uses: hl_node, with copies of its texts. */
struct cli_node {
    char address[300], problem[300];
    bool is_sentinel, is_connected;
};

/* Copies up to `most` of them. Returns how many there are, or a code of the library. */
int cli_server_nodes(hl_client *client, struct cli_node *ret_nodes, size_t most);

/* The exit status for a code of the library that is negative. */
int cli_status(int code);

/* Says what has failed, and returns its exit status. */
int cli_failed(const hl_error *err);

void cli_server_close(struct cli_server *server, hl_client *client);

#endif
