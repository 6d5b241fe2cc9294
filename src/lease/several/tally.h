/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Tallies: what the votes of a ballot come to, in words, in statistics, and as the answer that the
 * engine would get of one server. */
#ifndef HLI_LEASE_SEVERAL_TALLY_H
#define HLI_LEASE_SEVERAL_TALLY_H

#include "lease/several/ballot.h"

enum { HLI_TALLY_ITEMS = 6 };

/* Room for such an answer. */
struct hli_tally_reply {
    union {
        struct hli_reply reply;
        char room[sizeof(struct hli_reply) + HLI_TALLY_ITEMS * sizeof(void *)];
    };
    struct hli_reply number[HLI_TALLY_ITEMS];
    union {
        struct hli_reply reply;
        char room[sizeof(struct hli_reply) + sizeof(((hl_lock_info *)0)->owner)];
    } holder;
};

/* Acquired or released; nothing was held; busy, with the holder that most masters name. */
const struct hli_reply *hli_tally_yes(struct hli_tally_reply *reply);
const struct hli_reply *hli_tally_gone(struct hli_tally_reply *reply);
const struct hli_reply *hli_tally_no(const struct hli_ballot *ballot,
                                     struct hli_tally_reply *reply);

/* Writes the quorum's tally of an attempt that failed, also to `text`; returns the code of an
 * attempt that too few masters answered. */
int hli_tally_write(const struct hli_ballot *ballot, size_t yes, bool is_busy,
                    char text[HLI_QUORUM_TALLY]);

/* The text behind "acquire 'name': ". */
const char *hli_tally_reason(const hl_error *err);

/* This vote is not asked for: its master cannot be reached. */
void hli_tally_miss(const struct hli_ballot *ballot, struct hli_vote *vote, int code);

/* This vote is not asked for: its master is that of another one. */
void hli_tally_twin(const struct hli_quorum *quorum, struct hli_vote *vote, size_t twin);

#endif
