/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Ballots: what their votes come to, and what is done to all of them. */
#include "lease/several/ballot.h"

struct hli_ballot_count hli_ballot_count(const struct hli_ballot *ballot)
{
    struct hli_ballot_count count = {0};

    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++) {
        enum hli_vote_state state = hli_vote_state_of(&ballot->votes[i]);
        count.held += state == HLI_VOTE_HELD;
        count.asked += state == HLI_VOTE_ASKS || state == HLI_VOTE_ANSWERED;
        count.no += state == HLI_VOTE_NONE && ballot->votes[i].code == HL_EBUSY;
    }
    return count;
}

void hli_ballot_withdraw(struct hli_ballot *ballot, int code)
{
    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++) {
        struct hli_vote *vote = &ballot->votes[i];
        if (hli_vote_state_of(vote) == HLI_VOTE_ASKS && hli_vote_withdraw(vote, code))
            hli_vote_count(ballot->tenure.name->client, vote);
    }
}

static void ballot_forget_until(struct hli_ballot *ballot, struct hli_vote *vote)
{
    hli_mutex_lock(&ballot->tenure.name->mutex);
    vote->until = 0;
    vote->number = 0;
    hli_mutex_unlock(&ballot->tenure.name->mutex);
}

void hli_ballot_give_back(struct hli_ballot *ballot)
{
    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++) {
        struct hli_vote *vote = &ballot->votes[i];
        if (hli_vote_state_of(vote) != HLI_VOTE_HELD)
            continue;
        ballot_forget_until(ballot, vote);
        hli_vote_give_back(vote);
    }
}

/* The plan sets the timer. */
void hli_ballot_set_due(struct hli_ballot *ballot, hli_ns at)
{
    struct hli_turn turn;

    atomic_store(&ballot->due_at, at);
    hli_turn_begin(&turn, ballot->tenure.name);
    hli_turn_end(&turn);
}

bool hli_ballot_is_due(const struct hli_ballot *ballot)
{
    return hli_now() >= atomic_load(&ballot->due_at);
}
