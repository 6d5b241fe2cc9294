/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An op: one request and its one completion. It lives inside the object that sends it. The sender
 * formats it before any decision, so that sending cannot fail for lack of memory; only the sender
 * ever sends it again.
 */
#ifndef HLI_REDIS_OP_H
#define HLI_REDIS_OP_H

#include "base/check.h"
#include "base/clock.h"
#include "redis/answer.h"
#include "redis/script.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct hli_op {
    TAILQ_ENTRY(hli_op) link; /* connection mutex, while in flight */
    HLI_PART
    char *bytes; /* the formatted command, owned */
    size_t length;
    hli_ns sent_at;        /* set just before it is queued; read in done */
    int script;            /* an hli_script_id, or -1 */
    unsigned bounces;      /* in a row; for the thread with the reader's role */
    bool is_asking;        /* it stands behind ASKING, which has a reply of its own */
    unsigned more_replies; /* after the first, unless that is an error; `done` gets the last */
    /* So many replicas are to have what it wrote before `done` runs (confirm.h); 0: none. */
    unsigned replicas;
    unsigned needs; /* the same, as a number; 0: the master does not tell. Read in done */
    /* It was decided for this term (term.h), and is not sent in another; 0: for any. */
    unsigned term;
    unsigned majority; /* of the replicas that the master had then; 0: it does not tell */
    /* Behind the command stands a PING with this number (hli_op_add_fence()); 0: none does. */
    uint64_t fence;
    bool stays;              /* it is for this server: it follows no MOVED or ASK */
    struct hli_reply *reply; /* while it waits for replicas, or its fence; connection mutex */

    /* Runs exactly once for each time the op was sent: on the loop thread; for HLI_UNSENT on the
     * sender's; for a plain answer (script.h) possibly on a leader's (lead.h). */
    void (*done)(struct hli_op *op, const struct hli_answer *answer);

    /* Checked when the op is queued; NULL: always wanted. False: the op is not sent, and ends as
     * HLI_BOUNCED; once false, it must stay false. Runs with the connection's mutex held, so it
     * must not lock. */
    bool (*is_wanted)(const struct hli_op *op);
};

TAILQ_HEAD(hli_ops, hli_op);

/* A number of replicas as a request asks for it, or as an answer gives it: up to HLI_OP_REPLICAS,
 * and beside it a bit for more than half of those that the master has. Neither of the two stands
 * for the other: a majority of one replica is less than two, and two of five are no majority. */
enum { HLI_OP_REPLICAS = 0xffff, HLI_OP_MAJORITY = 1 << 16 };

static inline unsigned hli_replicas_more(unsigned left, unsigned right)
{
    unsigned a = left & HLI_OP_REPLICAS, b = right & HLI_OP_REPLICAS;

    return (a > b ? a : b) | ((left | right) & HLI_OP_MAJORITY);
}

/* Are these as many as are wanted? */
static inline bool hli_replicas_cover(unsigned replicas, unsigned wanted)
{
    return (replicas & HLI_OP_REPLICAS) >= (wanted & HLI_OP_REPLICAS) &&
           (wanted & ~replicas & HLI_OP_MAJORITY) == 0;
}

struct hli_bytes {
    const void *data;
    size_t length;
};

struct hli_bytes hli_bytes_of(const char *text);

/*
 * Args: the words of a request, on the stack of the function that formats it. If memory runs out,
 * hli_args_end() reports that.
 */
struct hli_args {
    int script;       /* an hli_script_id, or -1 */
    size_t key_count; /* of a script's call */
    bool has_failed;  /* memory was out */
    size_t count, used, size;
    char *bytes; /* on_stack, or owned */
    char on_stack[1024];
};

/* A plain command; or a script's call, whose keys come first. */
void hli_args_begin(struct hli_args *args);
void hli_args_begin_script(struct hli_args *args, hli_script_id script, size_t key_count);

/* One more key of a script's call, behind those that the begin counted and before other words. */
void hli_args_key(struct hli_args *args, struct hli_bytes key);

void hli_args_bytes(struct hli_args *args, struct hli_bytes word);
void hli_args_text(struct hli_args *args, const char *text);
/* Numbers are written here, so that no script has to round one. */
void hli_args_number(struct hli_args *args, int64_t number);
/* A word of so many bytes, which the caller fills at once; NULL when memory is out. */
char *hli_args_room(struct hli_args *args, size_t length);

/* Formats the op in place of what it held before; must follow a begin. Errors: HL_ENOMEM, and the
 * op holds what it held. */
int hli_args_end(struct hli_args *args, struct hli_op *op);

/* All three in one, of a plain command. Errors: as the end. */
int hli_op_command(struct hli_op *op, const struct hli_bytes *words, size_t count);

/* The same of texts, with NULL behind the last one. */
int hli_op_texts(struct hli_op *op, const char *const *words);

/* Puts a fence behind a command that may have no reply, or several: PING with a number that no
 * reply has by chance. The connection gives the command its reply when the fence is answered, and
 * is closed when that answer is not at its place. Errors: HL_ENOMEM. */
int hli_op_add_fence(struct hli_op *op);
/* Does this reply answer a fence, of whichever command? */
bool hli_op_is_fence(const struct hli_reply *reply);
/* May it answer the fence of this command? An error may (no right to PING, BUSY, LOADING), and
 * PONG, as a proxy says that answers PING itself. */
bool hli_op_is_fence_of(const struct hli_op *op, const struct hli_reply *reply);

bool hli_op_is_wanted(const struct hli_op *op);

/* Moves all of the second list behind the first one. */
void hli_ops_append(struct hli_ops *ops, struct hli_ops *more);

/* Of a request that has run: have as many replicas what it wrote as it asked for? */
bool hli_op_is_confirmed(const struct hli_op *op, const struct hli_answer *answer);
/* How many have it, as in `replicas`; 0 of a request that asked for none. */
unsigned hli_op_confirmed(const struct hli_op *op, const struct hli_answer *answer);
/* Sets `needs`, when the master has replicas of which so many are a majority (0: unknown). */
void hli_op_set_majority(struct hli_op *op, unsigned majority);

void hli_op_deinit(struct hli_op *op);
void hli_op_wipe(struct hli_op *op); /* the same, of a request that has a secret */

#endif
