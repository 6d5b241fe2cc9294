/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A scan: the keys of one node that match a pattern, in steps of SCAN; and the nodes that have
 * keys. */
#ifndef CLI_SCAN_H
#define CLI_SCAN_H

#include <hirelock/command.h>
#include <stdbool.h>
#include <stddef.h>

enum { CLI_NODES = 1024, CLI_WHERE = 300 };

struct cli_nodes {
    char where[CLI_NODES][CLI_WHERE]; /* as in hl_command.node */
    size_t count;
    bool are_too_many;
};

/* hl_client_nodes() for the nodes that have keys: no Sentinel, and no node of a cluster without
 * slots. Returns 0 or a code of the library. */
int cli_nodes_each(hl_client *client, hl_node_cb visit, void *arg);

/* Notes these. Returns a code of the library. */
int cli_nodes_note(struct cli_nodes *nodes, hl_client *client, hl_error *err);

struct cli_scan {
    hl_client *client;
    const char *where, *type, *pattern; /* borrowed */
    char cursor[32];
    unsigned count; /* of a step */
    bool is_over;
};

/* At its begin, for any key of this type. */
struct cli_scan cli_scan_of(hl_client *client, const char *where, const char *type);

/* The next step; (*ret_reply)->elements[1] are its keys, and the reply is the caller's. It may be
 * NULL: then the next step asks for fewer. Returns a code of the library, and after a failure the
 * scan is over. */
int cli_scan_next(struct cli_scan *scan, hl_reply **ret_reply, hl_error *err);

#endif
