/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The entry to a release of any kind, blocking or async. */
#ifndef HLI_LEASE_HOLD_RELEASE_CALL_H
#define HLI_LEASE_HOLD_RELEASE_CALL_H

#include "lease/calls/async.h"
#include "lease/hold/release.h"

void hli_release_wait_init(struct hli_release_wait *released, struct hli_name *name, hl_error *err);

/* Adds the result to the statistics. */
void hli_release_wait_count(const struct hli_release_wait *released);

/* Releases one level of an owner's hold. Returns the code; of an async call with 0, the completion
 * runs exactly once. Errors: HL_ENOMEM. The client has been entered. */
int hli_release_run(struct hli_name *name, struct hl_owner *owner,
                    const struct hli_release_mode *mode, const struct hli_completion *completion);

#endif
