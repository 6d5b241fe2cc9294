/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A glance: a look (look.h) that is not waited for, so that many are under way at a time. */
#ifndef CLI_GLANCE_H
#define CLI_GLANCE_H

#include "cli/look.h"

/* What was seen; borrowed during the call, but the lock, which is taken over. */
struct cli_glance {
    struct cli_name name;
    int code;            /* of the library */
    json_object *lock;   /* NULL: there is no key, or it is no lock */
    const hl_error *err; /* of a code below 0 */
};

typedef void (*cli_glance_cb)(const struct cli_glance *seen, void *arg);

/* Loads the look's script at this node, or where the client likes if it is NULL. *ret_sha is owned
 * by the caller; it is NULL for a user who may load none: then each glance brings the script. */
int cli_glance_load(hl_client *client, const char *node, char **ret_sha, hl_error *err);

/* Looks at the name, of which it takes a copy. A server without the script is sent its text.
 * Returns a code of the library; 0: done will run once, in the thread of the callbacks. HL_EINVAL:
 * no lock has such a long name. */
int cli_glance(hl_client *client, const struct cli_name *name, const char *sha, cli_glance_cb done,
               void *arg);

#endif
