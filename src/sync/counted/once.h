/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Commands that note in Redis what they did, so that a second copy changes nothing (lua/note.lua):
 * their words, and calls of one such command. The notes are needed because a semaphore and a latch
 * are plain numbers, which do not record the commands that changed them.
 */
#ifndef HLI_SYNC_COUNTED_ONCE_H
#define HLI_SYNC_COUNTED_ONCE_H

#include "sync/common/handle.h"

enum {
    HLI_NOTE_MS = 60000, /* a note that no command deletes expires after so long */
    HLI_ONCE_NEEDS = 64, /* most waiters for which one command acquires */
    HLI_ACKED_LIMIT = 64 /* most ids that a name keeps for its next command */
};

/* Ids of commands that are answered and have no other copy on its way: the next command deletes
 * their notes. If an id finds no room, or its command is lost, its note expires. Name mutex. */
struct hli_acked {
    unsigned count;
    uint64_t id[HLI_ACKED_LIMIT];
};
void hli_ack(struct hli_name *name, uint64_t id);

/* The words of one command, in this order: those of its note; hli_command_publish(), if the command
 * publishes; the verb's own words; the acked ids. Name mutex. */
void hli_once_begin(struct hli_args *args, hli_script_id script, const struct hli_name *name,
                    uint64_t id);
/* The same in two steps, between which other keys are declared. */
void hli_once_begin_keys(struct hli_args *args, hli_script_id script, const struct hli_name *name,
                         uint64_t id);
void hli_once_begin_words(struct hli_args *args, const struct hli_name *name, uint64_t id);
void hli_once_acked(struct hli_args *args, const struct hli_name *name);

/* What a call does, and what its answers mean: {0}, {1}, {1, count}, and {0, ..., count} as the
 * answer to a wait that must go on. A query has no words, and notes nothing. */
struct hli_once_verb { /* immutable */
    struct hli_call_kind call;
    bool publishes;
    unsigned word_count; /* of its own words: 0 to 2 */
};

struct hli_once_call {
    struct hli_call call;
    uint64_t id;
    bool is_answered; /* call mutex, as the call's count; the completion reads it afterwards */
};

/* The kind of a call that changes data (if no_ is 0, {0} is a success with count 0), and of a
 * query.
 */
#define HLI_ONCE_CHANGE(verb_, script_, no_, no_text_)                                             \
    {                                                                                              \
        .verb = (verb_), .script = (script_), .size = sizeof(struct hli_once_call), .no = (no_),   \
        .no_text = (no_text_), .changes_data = true, .is_repeatable = true,                        \
        .prepare = hli_once_prepare, .read = hli_once_read, .settle = hli_once_ack                 \
    }
#define HLI_ONCE_QUERY(verb_, script_)                                                             \
    {                                                                                              \
        .verb = (verb_), .script = (script_), .size = sizeof(struct hli_once_call),                \
        .is_repeatable = true, .prepare = hli_once_prepare, .read = hli_once_read                  \
    }
int hli_once_prepare(struct hli_call *call, struct hli_args *args, const void *what);
int hli_once_read(struct hli_call *call, const struct hli_reply *reply);
void hli_once_ack(struct hli_call *call, int code);

/* Runs one call with the verb's own words; handle may be NULL. As hli_call_run(). */
int hli_once_run(const struct hli_handle *handle, const struct hli_once_verb *verb, int64_t word,
                 int64_t second, const struct hli_completion *completion);

/* Waits for `need` at once, and holds nothing afterwards; the options are the caller's. As
 * hli_acquire_run(). */
int hli_once_wait(const struct hli_handle *handle, uint32_t need, const hl_wait_options *options,
                  const struct hli_completion *completion);

#endif
