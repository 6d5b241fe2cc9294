/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The facts that the checks judge, gathered from one node. */
#ifndef CLI_CHECKUP_H
#define CLI_CHECKUP_H

#include "cli/checks.h"

struct cli_checkup_effort {
    unsigned pings;
    int64_t span_ms; /* between the two looks at the clock; the call takes a little longer */
};

/* node: its address, which is borrowed until the checkup is freed. url: by which the client was
 * opened. */
void cli_checkup_gather(hl_client *client, const char *url, const char *node,
                        const struct cli_checkup_effort *effort, struct cli_checkup *ret_checkup);
void cli_checkup_free(struct cli_checkup *checkup);

#endif
