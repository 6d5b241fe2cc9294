/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A forced release: an operator takes a lock from its owner. First the operator is shown who that
 * is, by an earlier look; then the lock is taken from that owner, and from no other.
 */
#ifndef CLI_FORCE_H
#define CLI_FORCE_H

#include "cli/look.h"

struct cli_force {
    hl_client *client; /* whose name_prefix is the name's prefix */
    struct cli_name name;
    json_object *lock; /* what the operator was shown; borrowed */
    bool has_values;   /* a string is a lock, too */
};

/* Is it a lock that can be taken? Else why not. */
bool cli_force_may(const struct cli_force *force, hl_error *why);

/* "'stock' (lock) is held by web-1 4711 worker, 1b2c...:5, since ...; 2 waiting" */
enum { CLI_FORCE_WHO = 2048 };
void cli_force_who(const struct cli_force *force, char text[CLI_FORCE_WHO]);

/* Looks again: HL_ENOENT, if it is not held as it was when the operator was asked. A later owner is
 * not the one who was shown. */
int cli_force_look_again(const struct cli_force *force, hl_error *err);

/* Takes it. Returns a code of the library; HL_ENOENT: it was released meanwhile. */
int cli_force(const struct cli_force *force, hl_error *err);

#endif
