/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An op: one request and its one completion. It lives inside the object that asks, is formatted
 * ahead of any decision (so that sending cannot fail for want of memory), and is never sent again
 * by anybody but the object that asks.
 */
#ifndef HLI_REDIS_OP_H
#define HLI_REDIS_OP_H

#include "base/clock.h"
#include "redis/answer.h"
#include "redis/script.h"

#include <stddef.h>
#include <sys/queue.h>

struct hli_op {
    TAILQ_ENTRY(hli_op) link; /* connection mutex, while in flight */
    char *bytes;              /* the formatted command, owned */
    size_t length;
    hli_ns sent_at;        /* set just before it is queued; read in done */
    int script;            /* an hli_script_id, or -1 */
    unsigned more_replies; /* that follow the first one unless that is an error; the last is told */

    /* Runs exactly once for each time it was sent: on the loop thread; for HLI_UNSENT in the
     * sender's; and what is plain (script.h) may be told by a caller that leads (lead.h), in its
     * own. */
    void (*done)(struct hli_op *op, const struct hli_answer *answer);
};

TAILQ_HEAD(hli_ops, hli_op);

struct hli_bytes {
    const void *data;
    size_t length;
};

struct hli_script_words {
    const struct hli_bytes *keys;
    size_t key_count;
    const struct hli_bytes *args;
    size_t arg_count;
};

struct hli_bytes hli_bytes_of(const char *text);

/* Formats a plain command, or a script's call, in place of what the op held before. Errors:
 * HL_ENOMEM, and it holds what it held. */
int hli_op_command(struct hli_op *op, const struct hli_bytes *words, size_t count);
int hli_op_script(struct hli_op *op, hli_script_id script, const struct hli_script_words *said);

void hli_op_deinit(struct hli_op *op);

#endif
