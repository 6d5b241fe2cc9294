/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Commands that note in Redis what they did, so that they may be sent again without doing it again
 * (lua/note.lua): their words, and calls of one such command. A semaphore and a latch are
 * numbers; nothing in them tells who changed them.
 */
#ifndef HLI_SYNC_NOTED_H
#define HLI_SYNC_NOTED_H

#include "sync/named.h"
#include "sync/query.h"
#include "sync/request.h"

enum {
    HLI_NOTE_MS = 60000,   /* how long a note stands that nobody lets go */
    HLI_NOTED_NEEDS = 64,  /* waiters that one command asks for */
    HLI_SETTLED_LIMIT = 64 /* ids that a name keeps until its next command */
};

/* Commands that were answered, and of which no other copy is on its way: the next one lets their
 * notes go. An id that finds no room, or goes with a command that is lost, leaves a note that goes
 * by itself. Name mutex. */
struct hli_settled {
    unsigned count;
    uint64_t id[HLI_SETTLED_LIMIT];
};
void hli_settle(struct hli_name *name, uint64_t id);

/* The words of one command, on the stack. */
struct hli_noted {
    const struct hli_name *name;
    size_t count, used;
    struct hli_bytes word[HLI_NOTED_NEEDS + HLI_SETTLED_LIMIT + 8];
    char text[(HLI_NOTED_NEEDS + HLI_SETTLED_LIMIT + 8) * 24 + 2 * HLI_CHANNEL_SIZE];
};
void hli_noted_begin(struct hli_noted *noted, const struct hli_name *name, uint64_t id);
void hli_noted_tell(struct hli_noted *noted); /* by a message in the kind's channel */
void hli_noted_number(struct hli_noted *noted, int64_t number);

/* With the ids that are settled. Name mutex. Errors: HL_ENOMEM. */
int hli_noted_format(struct hli_noted *noted, struct hli_op *op, hli_script_id script);

/* What a call does, and what the answers mean: {0}, {1} and {1, count}; and {0, ..., count}, which
 * is what a wait gets that has to go on. One that is no deed has no words, and notes nothing. */
struct hli_noted_verb { /* immutable */
    struct hli_query_kind query;
    hli_script_id script;
    bool tells;
    bool is_release; /* in the statistics */
    int no;          /* the code of {0}, and its text; 0: a success whose count is 0 */
    const char *no_text;
};

/* Of the query of a verb that changes something, and of one that only asks. */
#define HLI_NOTED_DEED(verb_)                                                                      \
    {                                                                                              \
        .verb = (verb_), .is_deed = true, .is_repeatable = true, .read = hli_noted_read,           \
        .settle = hli_noted_settle                                                                 \
    }
#define HLI_NOTED_QUESTION(verb_)                                                                  \
    {                                                                                              \
        .verb = (verb_), .is_repeatable = true, .read = hli_noted_read                             \
    }
int hli_noted_read(struct hli_query *query, const struct hli_reply *reply);
void hli_noted_settle(struct hli_query *query, int code);

struct hli_noted_call {
    const struct hli_noted_verb *verb;
    const int64_t *number; /* the verb's own words */
    size_t numbers;
};

/* Blocks until the answer is there; handle and ret_count may be NULL. */
int hli_noted_block(const struct hli_handle *handle, const struct hli_noted_call *said,
                    int64_t *ret_count, hl_error *err);

/* Returns at once; 0: the end is told exactly once. Errors: HL_EINVAL, HL_ENOMEM, HL_ECLOSED,
 * HL_EFORKED. */
int hli_noted_post(const struct hli_handle *handle, const struct hli_noted_call *said,
                   const struct hli_told *told);

/* A wait that holds nothing afterwards, for so much at once; its options as passed. */
int hli_noted_wait(const struct hli_handle *handle, uint32_t need,
                   const hl_acquire_options *options, hl_error *err);
int hli_noted_wait_post(const struct hli_handle *handle, uint32_t need,
                        const hl_acquire_options *options, hl_done_cb done, void *arg);

#endif
