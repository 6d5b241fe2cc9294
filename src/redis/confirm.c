/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Confirmed requests: which WAIT serves which of them. No I/O. */
#include "redis/confirm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>

/* Of a WAIT whose connection was lost: those for whom it was sent have ended by themselves. */
static void confirm_nothing(struct hli_op *op, const struct hli_answer *answer)
{
    (void)op, (void)answer;
}

void hli_confirm_init(struct hli_confirm *confirm)
{
    *confirm = (struct hli_confirm){.wait = {.script = -1, .done = confirm_nothing}};
    TAILQ_INIT(&confirm->kept);
}

static struct hli_op *confirm_wait_for(struct hli_confirm *confirm, unsigned replicas)
{
    char number[16], timeout[24];
    int number_length = snprintf(number, sizeof(number), "%u", replicas);
    int timeout_length = snprintf(timeout, sizeof(timeout), "%" PRId64, confirm->timeout_ms);
    int length = snprintf(confirm->bytes, sizeof(confirm->bytes),
                          "*3\r\n$4\r\nWAIT\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", number_length, number,
                          timeout_length, timeout);

    HLI_CHECK(length > 0 && length < HLI_CONFIRM_BYTES);
    confirm->wait.bytes = confirm->bytes;
    confirm->wait.length = (size_t)length;
    confirm->is_waiting = true;
    return &confirm->wait;
}

/* A master that does not tell its replicas is asked for one: the answer is not enough then. */
struct hli_op *hli_confirm_sent(struct hli_confirm *confirm, struct hli_op *op)
{
    unsigned number = op->replicas & HLI_OP_REPLICAS;

    hli_op_set_majority(op, confirm->majority);
    unsigned asked = op->needs > 0 ? op->needs : number > 0 ? number : 1;

    if (!confirm->is_waiting)
        return confirm_wait_for(confirm, asked);
    if (confirm->behind < asked)
        confirm->behind = asked;
    return NULL;
}

bool hli_confirm_keep(struct hli_confirm *confirm, struct hli_op *op, struct hli_reply *reply)
{
    if (op->replicas == 0 ||
        (op->script >= 0 && hli_script_is_refusal((hli_script_id)op->script, reply)))
        return false;
    op->reply = reply;
    TAILQ_INSERT_TAIL(&confirm->kept, op, link);
    return true;
}

/* The replies to requests that were sent behind the WAIT come behind its answer: so all that is
 * kept now was sent before it. */
struct hli_op *hli_confirm_answered(struct hli_confirm *confirm, struct hli_ops *ret)
{
    unsigned behind = confirm->behind;

    hli_ops_append(ret, &confirm->kept);
    confirm->is_waiting = confirm->keeps_for_loop = false;
    confirm->behind = 0;
    return behind > 0 ? confirm_wait_for(confirm, behind) : NULL;
}

void hli_confirm_drop(struct hli_confirm *confirm, struct hli_ops *ret)
{
    struct hli_op *op;

    TAILQ_FOREACH (op, &confirm->kept, link) {
        hli_reply_free(op->reply);
        op->reply = NULL;
    }
    hli_ops_append(ret, &confirm->kept);
    confirm->is_waiting = confirm->keeps_for_loop = false;
    confirm->behind = 0;
}

void hli_confirm_tell(struct hli_ops *ops, const struct hli_answer *waited)
{
    struct hli_op *op;
    int64_t count = 0;

    if (waited->verdict == HLI_REPLIED)
        hli_reply_integer(waited->reply, &count);
    while ((op = TAILQ_FIRST(ops))) {
        struct hli_reply *reply = op->reply;
        const struct hli_answer answer = {.verdict = HLI_REPLIED,
                                          .reply = reply,
                                          .code = waited->code,
                                          .text = waited->text,
                                          .replicas = count > 0 ? (unsigned)count : 0};
        TAILQ_REMOVE(ops, op, link);
        op->reply = NULL;
        op->bounces = 0;
        op->done(op, &answer); /* may free it */
        hli_reply_free(reply);
    }
}
