/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A ballot: a Redlock's tenure, with a vote at each master. It asks all masters at once. With more
 * than half of them it has the lock: until the earliest moment at which no majority is sure of its
 * lease any more. With fewer it gives all back, also where no answer came, and asks again after a
 * random pause.
 *
 * One thread at a time makes its steps: the first thread that has news. It also makes the steps for
 * news that other threads get meanwhile.
 */
#ifndef HLI_LEASE_SEVERAL_BALLOT_H
#define HLI_LEASE_SEVERAL_BALLOT_H

#include "base/check.h"
#include "lease/several/quorum.h"
#include "lease/several/vote.h"

struct hli_ballot {
    struct hli_tenure tenure; /* of the Redlock's name, which has the quorum */

    /* Name mutex while nothing is asked; then of the stepping thread. */
    struct hli_vote_spec spec; /* its owner is counted, of all votes; it "exits" when the hold is
                                  lost, and then no vote is renewed any more */
    int64_t vote_ms;
    bool was_held; /* of the release */

    atomic_uint kicks;    /* steps to be made */
    atomic_bool asks;     /* `ask` of the tenure was sent, and has no answer */
    atomic_bool releases; /* `release` of the tenure, too */
    atomic_bool looks;    /* its votes are to be looked at: the masters may have lost them */
    hli_ns look_at;       /* name mutex: the next such look for waiters of this process; 0: none */
    _Atomic(hli_ns) due_at; /* when a vote has been asked for long enough, a lost one is asked
                               again, or a link is looked at; HLI_NEVER: nothing is due */

    /* Stepping thread. */
    bool is_begun;   /* the votes were asked for this answer */
    bool is_over;    /* it is released: what a vote gets now is given back */
    uint32_t let_go; /* of the release: a bit for each vote that it lets go of */
    bool is_narrow;  /* NARROW was reported */
    bool is_resting; /* no master is asked until due_at */
    struct hli_vote votes[];
};

/* What the votes come to. */
struct hli_ballot_count {
    size_t held, asked, no;
};
struct hli_ballot_count hli_ballot_count(const struct hli_ballot *ballot);

/* Sets due_at, and its timer; is that time over? */
void hli_ballot_set_due(struct hli_ballot *ballot, hli_ns at);
bool hli_ballot_is_due(const struct hli_ballot *ballot);

/* Withdraws the votes that have no answer. code: HL_ECONN if they have had their time, else
 * HL_ECANCELED. */
void hli_ballot_withdraw(struct hli_ballot *ballot, int code);

/* Gives back what is held. */
void hli_ballot_give_back(struct hli_ballot *ballot);

static inline struct hli_ballot *hli_ballot_of(struct hli_tenure *tenure)
{
    return HLI_OF(tenure, struct hli_ballot, tenure);
}

static inline struct hli_quorum *hli_ballot_quorum(const struct hli_ballot *ballot)
{
    return ballot->tenure.name->quorum;
}

static inline enum hli_tenure_state hli_ballot_state(const struct hli_ballot *ballot)
{
    return atomic_load(&ballot->tenure.state);
}

#endif
