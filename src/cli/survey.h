/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A survey: all locks of all nodes that match a pattern. SCAN goes through the keys in steps; while
 * one step is under way, the names of the last ones are looked at (look.h), many at a time.
 */
#ifndef CLI_SURVEY_H
#define CLI_SURVEY_H

#include "cli/look.h"

#include <stdint.h>

struct cli_survey {
    hl_client *client;
    const char *pattern; /* as in SCAN, with the prefix before it */
    size_t prefix;       /* bytes of the pattern's names that are not shown */
    bool has_values;     /* strings, too */
    uint64_t limit;      /* 0: none; may be passed by a few */

    /* One at a time, each from any thread. Takes over the lock; the name is borrowed. */
    void (*found)(const struct cli_name *name, json_object *lock, void *arg);
    /* NULL, or for each step: so many keys were gone through. False ends the survey. */
    bool (*progress)(uint64_t keys, void *arg);
    /* NULL, or a node was not gone through, or not to its end; the survey goes on at the others. */
    void (*missed)(const char *where, const hl_error *err, void *arg);
    void *arg;
};

/* Returns a code of the library: that of the first node that was missed, when all have been gone
 * through. A name whose key moves while the survey goes on may be found twice, and one that comes
 * or goes meanwhile perhaps not at all (Redis docs, SCAN). */
int cli_survey(const struct cli_survey *survey, hl_error *err);

/* The user's pattern, NULL for all names, behind the prefix. Owned by the caller; NULL when memory
 * is out. */
char *cli_survey_pattern(const struct cli_server *server, const char *pattern);

#endif
