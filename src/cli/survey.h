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

    /* One at a time, each from any thread. Takes over the lock. */
    void (*found)(json_object *lock, void *arg);
    /* Now and then: so many keys were gone through. */
    void (*progress)(uint64_t keys, void *arg);
    void *arg;
};

/* Returns an exit status; it has said why it failed. A name whose key moves while the survey goes
 * on may be found twice, and one that comes or goes meanwhile perhaps not at all (Redis docs,
 * SCAN). */
int cli_survey(const struct cli_survey *survey);

#endif
