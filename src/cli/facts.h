/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What a server says of itself: its INFO, its configuration, its clock, its slow scripts. A server
 * may refuse each of these (an ACL, a managed service): then the fact is not known, and no guess
 * takes its place.
 */
#ifndef CLI_FACTS_H
#define CLI_FACTS_H

#include <hirelock/hirelock.h>
#include <stdbool.h>
#include <stdint.h>

struct cli_facts {
    const char *node; /* its address, borrowed */
    char *info;       /* owned, as all below; NULL: refused */
    char *why;        /* the refusal's text, where info is NULL */
    char *user;       /* of this connection, by ACL WHOAMI; NULL: not known */
    bool has_config;
    char *appendfsync, *save, *policy, *min_replicas, *protected_mode;
    bool has_clock;
    int64_t clock_ahead_us; /* the server's clock, beside this machine's */
    int64_t clock_drift_us; /* how much that changed within clock_span_ms */
    int64_t clock_doubt_us; /* of the drift: the answers took as long */
    int64_t clock_span_ms;
    int64_t slow_scripts; /* entries of the slow log that are scripts; -1: not known */
    int64_t slowest_script_us;
};

/* Asks a node. Two looks at its clock are `span_ms` apart. */
void cli_facts_gather(hl_client *client, const char *node, int64_t span_ms,
                      struct cli_facts *ret_facts);
void cli_facts_free(struct cli_facts *facts);

/* A field of INFO as it stands there, copied into `text`; false if there is none. */
bool cli_facts_text(const struct cli_facts *facts, const char *field, char *text, size_t size);

/* The same as a number; `otherwise` if there is none. */
int64_t cli_facts_number(const struct cli_facts *facts, const char *field, int64_t otherwise);

#endif
