/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Majorities: until when one is sure, and what is done to keep it. */
#include "lease/several/majority.h"

#include "lease/hold/loss.h"
#include "lease/state/notice.h"

/* Until when a majority is sure: the votes that last longest count. 0: there is none. Name mutex.
 */
static hli_ns majority_validity(const struct hli_ballot *ballot)
{
    const struct hli_quorum *quorum = hli_ballot_quorum(ballot);
    hli_ns best = 0;

    for (size_t i = 0; i < quorum->count; i++) {
        hli_ns until = ballot->votes[i].until;
        size_t longer = 0;
        for (size_t j = 0; j < quorum->count; j++)
            longer += ballot->votes[j].until >= until;
        if (longer >= quorum->majority)
            best = hli_later(best, until);
    }
    return best;
}

/* The hold's validity is that of its majority, which a lost vote makes shorter. What is over by the
 * clock does not come back. */
static void majority_judge(struct hli_turn *turn, struct hli_ballot *ballot)
{
    struct hli_tenure *tenure = &ballot->tenure;

    if (tenure->state != HLI_TENURE_OWN || hli_loss_by_time(turn, tenure))
        return;
    hli_ns until = majority_validity(ballot);
    if (until == 0) {
        hli_loss_declare(turn, tenure, "gone");
        return;
    }
    bool is_longer = until > tenure->valid_until;
    tenure->valid_until = until;
    tenure->valid_ms = ballot->spec.lease_ms;
    if (!hli_loss_by_time(turn, tenure) && is_longer && tenure->in_jeopardy) {
        tenure->in_jeopardy = false;
        hli_notice_warning(turn, tenure, HL_EVENT_SAFE);
    }
}

void hli_majority_vote_changed(struct hli_turn *turn, size_t index, const struct hli_tenure *vote,
                               hli_ns until)
{
    struct hli_tenure *tenure = turn->name->current;
    struct hli_vote *mine = tenure ? &hli_ballot_of(tenure)->votes[index] : NULL;

    if (!mine || mine->number != vote->number || mine->is_lost)
        return;
    mine->is_lost = until == 0;
    mine->until = mine->is_lost ? 0 : hli_later(mine->until, until);
    majority_judge(turn, hli_ballot_of(tenure));
    if (mine->is_lost)
        hli_turn_act(turn, tenure);
}

void hli_majority_judge(struct hli_ballot *ballot)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, ballot->tenure.name);
    majority_judge(&turn, ballot);
    hli_turn_end(&turn);
}

void hli_majority_add(struct hli_ballot *ballot, struct hli_vote *vote, hli_ns until)
{
    hli_mutex_lock(&ballot->tenure.name->mutex);
    if (!vote->is_lost)
        vote->until = hli_later(vote->until, until);
    hli_mutex_unlock(&ballot->tenure.name->mutex);
    if (hli_ballot_state(ballot) == HLI_TENURE_OWN)
        hli_majority_judge(ballot);
}

bool hli_majority_drop_lost(struct hli_ballot *ballot)
{
    bool has_dropped = false;

    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++) {
        struct hli_vote *vote = &ballot->votes[i];
        hli_mutex_lock(&ballot->tenure.name->mutex);
        bool is_lost = vote->is_lost;
        hli_mutex_unlock(&ballot->tenure.name->mutex);
        if (!is_lost || hli_vote_state_of(vote) != HLI_VOTE_HELD)
            continue;
        if (atomic_load(&vote->name->client->is_closed))
            hli_vote_abandon(vote);
        else
            hli_vote_release(vote);
        has_dropped = true;
    }
    return has_dropped;
}
