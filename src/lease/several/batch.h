/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A batch: one request in place of several tenures' own. Each of those gets its own answer, as if
 * it had been sent alone, so that no other code has to know of batches.
 */
#ifndef HLI_LEASE_SEVERAL_BATCH_H
#define HLI_LEASE_SEVERAL_BATCH_H

#include "lease/state/name.h"

enum { HLI_SEVERAL_LIMIT = 100 }; /* names in one call, as in a renewal */

struct hli_batch {
    struct hli_op op;            /* the kind's acquire_all or release_all formats it */
    const struct hli_name *name; /* borrowed: where it was sent */
    size_t count;
    struct hli_op **ops; /* `ask` or `release` of tenures, formatted and not sent; borrowed */

    /* Hands an op its answer, by its `done`. A refusal for good may be about another name of the
     * batch. kept: this is the op that was answered busy, or the first op if there is none. */
    void (*tell)(struct hli_batch *batch, size_t index, const struct hli_answer *answer, bool kept);
    void (*answered)(struct hli_batch *batch); /* all ops have their answers */
    void *arg;                                 /* for these two */
};

/* Room for the ops of up to `count` tenures. Errors: HL_ENOMEM. */
int hli_batch_init(struct hli_batch *batch, size_t count);
void hli_batch_deinit(struct hli_batch *batch);

/* Sends the batch's request to the server of this name, which is that of all its names. */
void hli_batch_send(struct hli_batch *batch, const struct hli_name *name);

#endif
