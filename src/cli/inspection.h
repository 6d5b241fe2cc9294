/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An inspection: one name in full. The look (look.h) is of one moment; the lists of owners, waiters
 * and permits are read behind it, in steps.
 */
#ifndef CLI_INSPECTION_H
#define CLI_INSPECTION_H

#include "cli/look.h"

#include <stdio.h>

/* Returns a code of the library. *ret_lock is owned by the caller; NULL: the name is free. */
int cli_inspection(hl_client *client, const struct cli_name *name, json_object **ret_lock,
                   hl_error *err);

/* In lines, and a table for each list. */
void cli_inspection_print(FILE *to, const json_object *lock);

#endif
