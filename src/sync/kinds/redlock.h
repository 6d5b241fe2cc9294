/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The Redlock's handle, and its kinds. */
#ifndef HLI_SYNC_KINDS_REDLOCK_H
#define HLI_SYNC_KINDS_REDLOCK_H

#include "lease/several/quorum.h"
#include "sync/lock/lock.h"

/* At one server; at one of several masters; at all of them. */
extern const struct hli_kind hli_kind_classic, hli_kind_voter, hli_kind_redlock;

struct hli_redlock { /* immutable */
    struct hl_lock lock;
    int64_t vote_ms, restart_ms;
};

/* Of several masters: ask them one after the other, each for the request timeout at most. */
int hli_redlock_inspect(const hl_lock *lock, const struct hli_completion *completion);
int hli_redlock_force_release(const hl_lock *lock, const struct hli_completion *completion);

#endif
