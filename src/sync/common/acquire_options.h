/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The options and the owner of an acquire, for all kinds. */
#ifndef HLI_SYNC_COMMON_ACQUIRE_OPTIONS_H
#define HLI_SYNC_COMMON_ACQUIRE_OPTIONS_H

#include "lease/calls/async.h"
#include "lease/calls/client.h"

/* The owner of a call: `passed`, or the calling thread. client NULL: it may be that of any client.
 * Errors: HL_EINVAL: the owner belongs to another client, or an async call has none; HL_ENOMEM. */
int hli_owner_read(const hl_client *client, hl_owner *passed,
                   const struct hli_completion *completion, hl_owner **ret_owner);

/* The options of a call, NULL for the defaults; with its owner. Errors: HL_EINVAL, HL_ENOMEM. */
int hli_acquire_options_read(const hl_client *client, const hl_acquire_options *passed,
                             const struct hli_completion *completion, hl_acquire_options *ret);

/* The same for a call that waits but acquires nothing. */
int hli_wait_options_read(const hl_wait_options *passed, hl_acquire_options *ret, hl_error *err);

#endif
