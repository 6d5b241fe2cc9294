/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A call of release, of whatever kind: it lets go of an owner's hold on a name, and its two ways of
 * waiting for the end. */
#ifndef HLI_SYNC_RELEASED_H
#define HLI_SYNC_RELEASED_H

#include "lease/release.h"

/* Blocks until the end; returns its code. The client has been entered. */
int hli_released_block(struct hli_name *name, struct hl_owner *owner,
                       const struct hli_release_way *way, hl_error *err);

/* Returns at once; 0: done runs exactly once. Errors: HL_EINVAL, HL_ENOMEM. The client has been
 * entered. */
struct hli_release_told {
    hl_done_cb done;
    void *arg;
};
int hli_released_post(struct hli_name *name, struct hl_owner *owner,
                      const struct hli_release_way *way, const struct hli_release_told *told);

#endif
