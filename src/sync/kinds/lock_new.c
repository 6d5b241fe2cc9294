/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The constructor of locks of all kinds. */
#include "base/error.h"
#include "sync/kinds/types.h"

static const struct hli_lock_type *const new_types[] = {
    [HL_LOCK_REENTRANT] = &hli_lock_type, [HL_LOCK_FAIR] = &hli_fair_type,
    [HL_LOCK_FENCED] = &hli_fenced_type,  [HL_LOCK_SPIN] = &hli_spin_type,
    [HL_LOCK_READ] = &hli_read_type,      [HL_LOCK_WRITE] = &hli_write_type,
};

enum { NEW_TYPES = sizeof(new_types) / sizeof(new_types[0]) };

int hl_lock_new_with(hl_client *client, const hl_lock_options *passed, hl_lock **ret_lock,
                     hl_error *err)
{
    hl_lock_options options;

    if (!ret_lock)
        return hli_fail(err, HL_EINVAL, "ret_lock is NULL");
    int rc = hli_lock_read_options(passed, &options, err);
    if (rc < 0)
        return rc;
    if ((unsigned)options.kind >= NEW_TYPES)
        return hli_fail(err, HL_EINVAL, "this version knows no such kind of lock");
    return hli_lock_make(client, new_types[options.kind], &options, ret_lock, err);
}

int hl_lock_new(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;

    options.name = name;
    return hl_lock_new_with(client, &options, ret_lock, err);
}
