/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Batches: formatting, and the way of the answers to the tenures that asked. */
#include "lease/several/batch.h"

#include "base/check.h"
#include "lease/state/grace.h"

#include <stdlib.h>

static void batch_done(struct hli_op *op, const struct hli_answer *answer);

/* Is the request still to be sent? If one tenure is over, the others ask anew. */
static bool batch_is_wanted(const struct hli_op *op)
{
    const struct hli_batch *batch = HLI_PART_OF(op, struct hli_batch, op);

    for (size_t i = 0; i < batch->count; i++)
        if (!hli_op_is_wanted(batch->ops[i]))
            return false;
    return true;
}

int hli_batch_init(struct hli_batch *batch, size_t count)
{
    *batch = (struct hli_batch){.op = {.done = batch_done, .is_wanted = batch_is_wanted}};
    HLI_PART_IS(&batch->op, struct hli_batch, op);
    batch->ops = calloc(count, sizeof(struct hli_op *));
    return batch->ops ? 0 : HL_ENOMEM;
}

void hli_batch_deinit(struct hli_batch *batch)
{
    hli_op_deinit(&batch->op);
    free(batch->ops);
}

void hli_batch_send(struct hli_batch *batch, const struct hli_name *name)
{
    batch->name = name;
    batch->op.replicas = 0;
    batch->op.term = batch->ops[0]->term;
    for (size_t i = 0; i < batch->count; i++)
        batch->op.replicas = hli_replicas_more(batch->op.replicas, batch->ops[i]->replicas);
    hli_link_send(hli_name_link(name), &batch->op);
}

/* The status of one name: 0 busy, 1 done, as in a request of its own; 2: left as it is. */
static int64_t batch_status(const struct hli_reply *reply, size_t index)
{
    int64_t status = 2;

    hli_reply_integer_at(hli_reply_item(reply, index), 0, &status);
    return status;
}

/* One tenure's answer. A name that was left as it is, or that the reply does not name, counts as
 * bounced: nothing ran for it. */
static struct hli_answer batch_answer_of(const struct hli_answer *answer, size_t index)
{
    if (answer->verdict != HLI_REPLIED)
        return *answer;
    if (batch_status(answer->reply, index) == 2)
        return (struct hli_answer){.verdict = HLI_BOUNCED, .code = HL_ESERVER, .text = "not done"};
    struct hli_answer own = *answer;
    own.reply = hli_reply_item(answer->reply, index);
    return own;
}

/* The index of the busy name, which is the last one that the reply names; 0 if none is busy. */
static size_t batch_busy_one(const struct hli_batch *batch, const struct hli_answer *answer)
{
    size_t spoken_of = answer->verdict == HLI_REPLIED ? answer->reply->length : 0;

    return spoken_of > 0 && spoken_of <= batch->count &&
                   batch_status(answer->reply, spoken_of - 1) == 0
               ? spoken_of - 1
               : 0;
}

static void batch_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_batch *batch = HLI_PART_OF(op, struct hli_batch, op);

    /* In another term each name decides anew: in its grace it is not asked for. */
    if (answer->verdict == HLI_BOUNCED && hli_op_is_wanted(op) &&
        (op->term == 0 || op->term == hli_grace_term(batch->name))) {
        hli_batch_send(batch, batch->name);
        return;
    }
    size_t kept = batch_busy_one(batch, answer);
    for (size_t i = 0; i < batch->count; i++) {
        struct hli_answer own = batch_answer_of(answer, i);
        batch->ops[i]->sent_at = op->sent_at;
        hli_op_set_majority(batch->ops[i], op->majority);
        batch->tell(batch, i, &own, i == kept);
    }
    batch->answered(batch);
}
