/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the files of the lock share: its handle, and the checks at the public edge. */
#ifndef HLI_SYNC_LOCK_H
#define HLI_SYNC_LOCK_H

#include "lease/acquire.h"
#include "lease/release.h"

struct hl_lock {
    struct hli_name *name;      /* counted */
    struct hli_release_way way; /* immutable: how what is released through it is let go of */
};

/* May this handle be used? Errors: HL_EINVAL (NULL), HL_EFORKED, HL_ECLOSED. */
int hli_lock_check(const hl_lock *lock, hl_error *err);

/* The same for a call that a close has to wait for; a 0 is followed by leave. */
int hli_lock_enter(hl_lock *lock, hl_error *err);
void hli_lock_leave(hl_lock *lock);

/* The same for an owner that is passed beside it; NULL is the calling thread. */
int hli_lock_check_owner(const hl_lock *lock, const hl_owner *owner, hl_error *err);

/* The lease of a hold without a lease time of its own. */
int64_t hli_lock_watch_ms(const hl_lock *lock);

/* The options of a call, NULL for the defaults. Errors: HL_EINVAL. */
int hli_lock_read_options(const hl_lock *lock, const hl_acquire_options *passed,
                          hl_acquire_options *ret, hl_error *err);

#endif
