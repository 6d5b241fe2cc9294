/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The majority of a ballot's votes: it decides until when the hold is valid. By the thread that
 * makes the ballot's steps, but for the last. */
#ifndef HLI_LEASE_SEVERAL_MAJORITY_H
#define HLI_LEASE_SEVERAL_MAJORITY_H

#include "lease/several/ballot.h"

/* A vote has been accepted: it counts, unless it has been lost since. */
void hli_majority_add(struct hli_ballot *ballot, struct hli_vote *vote, hli_ns until);

/* Releases the votes that were lost, so that their masters can be asked anew; but not if their
 * client closes, whose holds are to stand. True if there were some. */
bool hli_majority_drop_lost(struct hli_ballot *ballot);

/* Judges the hold anew by its votes, in a turn. */
void hli_majority_judge(struct hli_ballot *ballot);

/* A vote's hold has a new end, or is lost (0). Turn of the Redlock's name, in any thread. */
void hli_majority_vote_changed(struct hli_turn *turn, size_t index, const struct hli_tenure *vote,
                               hli_ns until);

#endif
