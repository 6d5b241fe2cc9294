/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* redis-cli --cluster as a child process, logged in as the tests' own user. */
#ifndef HL_TEST_CLUSTER_TOOL_H
#define HL_TEST_CLUSTER_TOOL_H

#include <stdbool.h>
#include <sys/types.h>

#include "redis_server.h"

struct cluster_tool {
    pid_t pid; /* 0: none was started, or its end was seen */
    int status;
    char output[96];
};

enum { CLUSTER_TOOL_ARGS = 16 };

/* argv: what stands behind --cluster, NULL at the end. node: one of the cluster, in whose directory
 * the output is, and with TLS the authority. */
void cluster_tool_start(struct cluster_tool *tool, const struct redis_server *node,
                        const char *const *argv);

bool cluster_tool_is_over(struct cluster_tool *tool);

/* Waits for its end, and ends the test if it failed or told of an error. Returns how many lines of
 * its output begin with `line`. */
int cluster_tool_finish(struct cluster_tool *tool, const char *line);

#endif
