/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the exporter knows of each node: doctor's findings of now, and its round trips since the
 * start. */
#ifndef CLI_EXPORTER_NODES_H
#define CLI_EXPORTER_NODES_H

#include "cli/checkup.h"

#include <stdatomic.h>

enum { EXPORTER_CHECKS = 24, EXPORTER_ADDRESS = 300 };

struct exporter_node {
    char address[EXPORTER_ADDRESS];
    hl_histogram trips; /* of PINGs */
    struct {
        const char *name;
        enum cli_state state;
    } check[EXPORTER_CHECKS];
    size_t checks;
};

struct exporter_nodes {
    struct exporter_node *node; /* owned */
    size_t count;
};

/* Looks at each node with locks that the client is connected to. One that is away keeps its round
 * trips and has no findings; those that the client does not use any more are forgotten. The URL is
 * the client's. */
void exporter_nodes_look(struct exporter_nodes *nodes, hl_client *client, const char *url,
                         const atomic_bool *is_stopped);
void exporter_nodes_free(struct exporter_nodes *nodes);

#endif
