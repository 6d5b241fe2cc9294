/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An acquire-all: one call that acquires several names, all or none. One request takes the free
 * names up to the first busy one; for that one the call waits as any other call, while it holds the
 * names before it, and then goes on. All acquire-alls take names in the same order (sequence.h), so
 * two of them never wait for each other; and each wait is in a queue in order of arrival, so it
 * ends. Names of several clients are acquired by any thread of these: the span lets each of them.
 */
#ifndef HLI_LEASE_SEVERAL_ACQUIRE_ALL_H
#define HLI_LEASE_SEVERAL_ACQUIRE_ALL_H

#include "lease/calls/async.h"
#include "lease/several/batch.h"
#include "lease/several/sequence.h"

enum hli_acquire_all_batch { HLI_BATCH_NONE, HLI_BATCH_SENT, HLI_BATCH_TELLING, HLI_BATCH_DONE };

struct hli_acquire_all {
    struct hli_async async; /* references: each member that asks has one, and a batch under way */
    struct hli_wait wait;
    hl_acquire_options options; /* immutable */

    /* One thread at a time makes steps: the first thread that has news. It also makes the steps for
     * news that other threads get meanwhile. */
    atomic_uint kicks;   /* steps to be made */
    atomic_bool is_over; /* it has its result; no step is made, until the call begins anew */
    _Atomic(struct hli_member *) awaited; /* by its wait the call ends; NULL: by none yet */
    struct hli_sequence sequence;         /* of the stepping thread, as the next ones */
    size_t next;                          /* the members before this place are held */
    int stop_code;                        /* the code of a call that fails */
    bool alone;                           /* a batch was refused: each member asks alone */
    size_t batch_end;

    /* While the call waits for a member and holds others of its tie. */
    const struct hli_member *tied; /* for this one it waits; NULL: no such wait */
    hli_ns patient_until;
    int64_t patience_ms;       /* of the next such wait */
    struct hli_timer patience; /* makes a step then; has a reference while it is set */

    _Atomic int batch_state; /* hli_acquire_all_batch */
    struct hli_batch batch;

    struct hli_span *span; /* counted, immutable; NULL: all names are of one client */
    size_t count;
    struct hli_member members[]; /* in the strict order; those that the owner holds come last;
                                    behind them, the sequence's places */
};

/* The arguments of an acquire-all. */
struct hli_acquire_all_spec {
    hl_client *client;                    /* whose timers and callbacks the call uses */
    struct hli_span *span;                /* borrowed, and entered; NULL: all are of `client` */
    const struct hli_acquire_spec *specs; /* in the strict order, all with the same options */
    size_t count;
};

/* For acquire_all_call.c: sets the functions of the parts; makes the first step, and until the end
 * of the run no client is closed. */
void hli_acquire_all_prepare(struct hli_acquire_all *all);
void hli_acquire_all_begin(struct hli_acquire_all *all);

/* The same: releases held members in reverse order, and withdraws members that ask. False: the
 * result of one is about to be reported. */
bool hli_acquire_all_give_back(struct hli_acquire_all *all, size_t from, size_t end);

/* Runs the call, as hli_acquire_run(). */
int hli_acquire_all_run(const struct hli_acquire_all_spec *what,
                        const struct hli_completion *completion);

#endif
