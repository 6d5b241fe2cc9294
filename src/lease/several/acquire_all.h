/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An acquire-all: one call that acquires several names, all or none. One request takes the free
 * names up to the first busy one; for that one the call waits as any other call, while it holds the
 * names before it, and then goes on. All acquire-alls take names in the same order, so two of them
 * never wait for each other; and each wait is in a queue in order of arrival, so it ends.
 */
#ifndef HLI_LEASE_SEVERAL_ACQUIRE_ALL_H
#define HLI_LEASE_SEVERAL_ACQUIRE_ALL_H

#include "lease/calls/async.h"
#include "lease/several/batch.h"
#include "lease/several/member.h"

enum hli_acquire_all_batch { HLI_BATCH_NONE, HLI_BATCH_SENT, HLI_BATCH_TELLING, HLI_BATCH_DONE };

struct hli_acquire_all {
    struct hli_async async; /* references: each member that asks has one, and a batch under way */
    struct hli_wait wait;
    hl_acquire_options options; /* immutable */

    /* One thread at a time makes steps: the first thread that has news. It also makes the steps for
     * news that other threads get meanwhile. */
    atomic_uint kicks;   /* steps to be made */
    atomic_bool is_over; /* it has its result; no step is made, until the call begins anew */
    atomic_size_t next;  /* the members before it are held; the call waits for this one */
    int stop_code; /* of the stepping thread, as the next ones: the code of a call that fails */
    bool alone;    /* a batch was refused: each member asks alone */
    size_t batch_end;

    _Atomic int batch_state; /* hli_acquire_all_batch */
    struct hli_batch batch;

    size_t count;
    struct hli_member members[]; /* in order; those that the owner holds already come last */
};

/* Runs the call, as hli_acquire_run(). The names are in the order of all clients; all specs have
 * the same watch_ms and options. */
int hli_acquire_all_run(const struct hli_acquire_spec *specs, size_t count,
                        const struct hli_completion *completion);

#endif
