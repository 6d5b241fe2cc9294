/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Majorities: until when one is sure, and what is done to keep it. */
#include "lease/several/majority.h"

#include "lease/hold/loss.h"
#include "lease/several/attempt.h"
#include "lease/state/notice.h"

enum { MAJORITY_LOOK_MS = 20 }; /* how often to look if NARROW can be told */

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

void hli_majority_drop_lost(struct hli_ballot *ballot)
{
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
    }
}

/* Of a hold: the masters that were asked have had their time; or those that have no vote for it are
 * asked again, a third of the lease later each time, while the watchdog renews the hold: else
 * masters that restart one after the other would use the majority up. */
static void majority_go_on(struct hli_ballot *ballot)
{
    bool asks_again = ballot->is_resting;

    atomic_store(&ballot->due_at, HLI_NEVER);
    hli_ballot_withdraw(ballot, HL_ECONN);
    if (!asks_again)
        return;
    ballot->spec.number = hli_client_next_number(ballot->tenure.name->client);
    hli_attempt_ask(ballot);
    hli_ballot_set_due(ballot, hli_after_ms(hli_now(), ballot->vote_ms));
}

/* False: not now, for the owner does not know of its hold yet, or another warning is under way. */
static bool majority_tell_narrow(struct hli_ballot *ballot)
{
    struct hli_tenure *tenure = &ballot->tenure;
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    if (tenure->state == HLI_TENURE_OWN && tenure->hold.is_accepted && !tenure->warning.is_queued) {
        ballot->is_narrow = true;
        hli_count(&tenure->name->client->counters.narrow);
        hli_notice_warning(&turn, tenure, HL_EVENT_NARROW);
    }
    hli_turn_end(&turn);
    return ballot->is_narrow;
}

/* All masters that were asked have answered, or have had their time. */
static void majority_rest(struct hli_ballot *ballot, size_t held)
{
    const struct hli_quorum *quorum = hli_ballot_quorum(ballot);

    if (held > quorum->majority)
        ballot->is_narrow = false;
    if (held == quorum->majority && !ballot->is_narrow && !majority_tell_narrow(ballot)) {
        ballot->is_resting = false;
        hli_ballot_set_due(ballot, hli_after_ms(hli_now(), MAJORITY_LOOK_MS));
    } else if (held == quorum->count || !ballot->spec.is_watched) {
        ballot->is_resting = false;
        atomic_store(&ballot->due_at, HLI_NEVER);
    } else if (!ballot->is_resting) {
        ballot->is_resting = true;
        hli_ballot_set_due(ballot, hli_after_ms(hli_now(), ballot->spec.lease_ms / 3));
    }
}

/* The tenure holds. */
void hli_majority_hold(struct hli_ballot *ballot)
{
    hli_majority_drop_lost(ballot);
    if (hli_ballot_is_due(ballot))
        majority_go_on(ballot);
    const struct hli_ballot_count count = hli_ballot_count(ballot);
    if (count.asked == 0)
        majority_rest(ballot, count.held);
}
