/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Its exit status alone is not enough: it tells of some errors and ends with 0. */
#include "cluster_tool.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fatal.h"
#include "redis_log.h"
#include "spawn.h"

enum { CLUSTER_TOOL_MS = 60000 };

void cluster_tool_start(struct cluster_tool *tool, const struct redis_server *node,
                        const char *const *argv)
{
    const char *whole[CLUSTER_TOOL_ARGS + 9] = {"redis-cli", "--user", "hltest",
                                                "--pass",    "any",    "--no-auth-warning"};
    char authority[96];
    int count = 6;
    snprintf(authority, sizeof authority, "%s/ca.pem", redis_server_dir(node));
    if (redis_server_has_tls(node)) {
        whole[count++] = "--tls";
        whole[count++] = "--cacert";
        whole[count++] = authority;
    }
    whole[count++] = "--cluster";
    for (int i = 0; argv[i]; i++) {
        must(i < CLUSTER_TOOL_ARGS - 2);
        whole[count++] = argv[i];
    }
    snprintf(tool->output, sizeof tool->output, "%s/redis-cli", redis_server_dir(node));
    unlink(tool->output);
    tool->pid = spawn_start(&(struct spawn){.argv = (char *const *)whole, .output = tool->output});
}

static int cluster_tool_lines(const struct cluster_tool *tool, const char *begin)
{
    char line[1024];
    int count = 0;
    FILE *file = fopen(tool->output, "re");
    must(file);
    while (fgets(line, sizeof line, file))
        count += strncmp(line, begin, strlen(begin)) == 0;
    fclose(file);
    return count;
}

static bool cluster_tool_reap(struct cluster_tool *tool, int64_t ms)
{
    if (tool->pid && spawn_reap(tool->pid, ms, &tool->status))
        tool->pid = 0;
    return tool->pid == 0;
}

bool cluster_tool_is_over(struct cluster_tool *tool)
{
    return cluster_tool_reap(tool, 0);
}

int cluster_tool_finish(struct cluster_tool *tool, const char *line)
{
    bool ended = cluster_tool_reap(tool, CLUSTER_TOOL_MS);
    if (!ended || tool->status != 0 || redis_log_contains(tool->output, "[ERR]") ||
        redis_log_contains(tool->output, "***")) {
        redis_log_show(tool->output);
        fatal("redis-cli --cluster: %s, status %d", ended ? "it failed" : "it does not end",
              tool->status);
    }
    return cluster_tool_lines(tool, line);
}
