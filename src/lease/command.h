/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lock's commands: from a tenure and numbers to the words of a script's call. */
#ifndef HLI_LEASE_COMMAND_H
#define HLI_LEASE_COMMAND_H

#include "lease/name.h"

/* lock_acquire: take it, or go deeper, with an absolute count. Errors: HL_ENOMEM. */
int hli_command_acquire(struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms,
                        uint32_t count);

/* lock_release down to `count` levels, with at least this lease for what is left of them; for 0
 * levels the key is deleted, or rests for so long. Errors: HL_ENOMEM. */
int hli_command_release(struct hli_tenure *tenure, struct hli_op *op, uint32_t count,
                        int64_t lease_ms, int64_t rest_ms);

#endif
