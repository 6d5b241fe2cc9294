/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The fenced lock: a lock whose acquires ask for tokens. */
#include <hirelock/fenced_lock.h>

#include "sync/lock.h"

int hl_fenced_lock_new(hl_client *client, const char *name, const hl_lock_options *options,
                       hl_lock **ret_lock, hl_error *err)
{
    const struct hli_lock_said said = {&hli_lock_type, name, options};
    int rc = hli_lock_new(client, &said, ret_lock, err);

    if (rc == 0)
        (*ret_lock)->is_fenced = true;
    return rc;
}
