/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An acquire-all: one call that acquires several names, all or none. One request takes the free
 * names up to the first busy one; for that one the call waits as any other call, while it holds the
 * names before it, and then goes on. All acquire-alls take names in the same order, so two of them
 * never wait for each other; and each wait is in a queue in order of arrival, so it ends. Names of
 * several clients are acquired by any thread of these: the span lets each of them.
 */
#ifndef HLI_LEASE_SEVERAL_ACQUIRE_ALL_H
#define HLI_LEASE_SEVERAL_ACQUIRE_ALL_H

#include "lease/acquire/deadlock.h"
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
    _Atomic(struct hli_member *) awaited; /* by its wait the call ends; NULL: by none yet */
    struct hli_member **at;     /* the members in the order in which the call takes them; of the
                                   stepping thread, as the next ones */
    bool is_strict;             /* that is the order of all callers (acquire_all_span.c) */
    size_t next;                /* the members before this place are held */
    int stop_code;              /* the code of a call that fails */
    struct hli_blocked blocked; /* of a blocking call: the wait for one of them */
    bool alone;                 /* a batch was refused: each member asks alone */
    size_t batch_end;

    /* Of several clients: while the call waits for a member and holds others of its tie. */
    const struct hli_member *tied; /* for this one it waits; NULL: no such wait */
    hli_ns patient_until;
    int64_t patience_ms;       /* of the last such wait; 0: there was none */
    struct hli_timer patience; /* makes a step then; has a reference while it is set */

    _Atomic int batch_state; /* hli_acquire_all_batch */
    struct hli_batch batch;

    struct hli_span *span; /* counted, immutable; NULL: all names are of one client */
    size_t count;
    struct hli_member members[]; /* in the order of slots and names; those that the owner holds come
                                    last; behind them, `at` */
};

/* The arguments of an acquire-all. */
struct hli_acquire_all_spec {
    hl_client *client;                    /* whose timers and callbacks the call uses */
    struct hli_span *span;                /* borrowed, and entered; NULL: all are of `client` */
    const struct hli_acquire_spec *specs; /* by slots and names, all with the same options */
    size_t count;
};

/* For the other files of the acquire-all. Makes the first step; until the end of the run no client
 * is closed. */
void hli_acquire_all_begin(struct hli_acquire_all *all);
/* Makes one step for each kick; with the caller's reference. */
void hli_acquire_all_kick(struct hli_acquire_all *all);
/* Releases held members in reverse order, and withdraws members that ask. False: the result of one
 * is about to be reported. */
bool hli_acquire_all_give_back(struct hli_acquire_all *all, size_t from, size_t end);
/* Gives all back, and ends the call with the stop code; perhaps in a later step. */
void hli_acquire_all_stop(struct hli_acquire_all *all);

/* For a call of several clients. It begins anew, with no order to keep until a member is busy. */
void hli_acquire_all_begin_span(struct hli_acquire_all *all);
/* The call is about to wait: from now on the strict order holds, for what it has taken, too. */
void hli_acquire_all_be_strict(struct hli_acquire_all *all);
/* While the call waits: two callers may take the members of a tie in different orders. */
void hli_acquire_all_mind_tie(struct hli_acquire_all *all);
/* Is a member that the call holds the same lock as this one, which is busy? Then the call is to
 * stop, and has the code. */
bool hli_acquire_all_has_twin(struct hli_acquire_all *all, const struct hli_member *member);

/* Runs the call, as hli_acquire_run(). */
int hli_acquire_all_run(const struct hli_acquire_all_spec *what,
                        const struct hli_completion *completion);

#endif
