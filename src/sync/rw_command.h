/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The two kinds of a read-write lock, whose keys in Redis are the same: one has a name, a tenure
 * and requests for each owner, as many may read at once; the other one line for all. */
#ifndef HLI_SYNC_RW_COMMAND_H
#define HLI_SYNC_RW_COMMAND_H

#include "lease/kind.h"

extern const struct hli_kind hli_kind_read, hli_kind_write;

/* The requests of hli_lock_type. Errors: HL_ENOMEM. */
int hli_rw_inspect_format(const struct hli_name *name, struct hli_op *op);
int hli_rw_force_format(const struct hli_name *name, struct hli_op *op);

#endif
