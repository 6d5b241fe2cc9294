/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Polls: asking all masters at once, and what their answers come to. */
#include "lease/several/poll.h"

#include "lease/acquire/ask.h"
#include "lease/several/majority.h"
#include "lease/several/tally.h"

/* The masters to be asked now: those where nothing is held or under way. */
static bool poll_choose(struct hli_ballot *ballot, bool chosen[HLI_QUORUM_LIMIT])
{
    struct hli_name *name = ballot->tenure.name;
    bool is_any = false;

    hli_mutex_lock(&name->mutex);
    for (size_t i = 0; i < name->quorum->count; i++) {
        struct hli_vote *vote = &ballot->votes[i];
        chosen[i] = hli_vote_state_of(vote) == HLI_VOTE_NONE;
        if (!chosen[i])
            continue;
        is_any = true;
        vote->number = ballot->spec.number;
        vote->is_lost = false;
        vote->until = 0;
    }
    hli_mutex_unlock(&name->mutex);
    return is_any;
}

/* A master that is the same server as an earlier one has no vote. */
void hli_poll_ask(struct hli_ballot *ballot)
{
    struct hli_quorum *quorum = hli_ballot_quorum(ballot);
    bool chosen[HLI_QUORUM_LIMIT] = {false};

    if (!poll_choose(ballot, chosen))
        return;
    ballot->is_resting = false;
    atomic_store(&ballot->due_at, hli_after_ms(hli_now(), ballot->vote_ms));
    for (size_t i = 0; i < quorum->count; i++) {
        size_t twin = chosen[i] ? hli_quorum_twin(quorum, i) : i;
        if (twin != i)
            hli_tally_twin(quorum, &ballot->votes[i], twin);
        else if (chosen[i])
            hli_vote_ask(&ballot->votes[i], &ballot->spec);
    }
}

void hli_poll_answer(struct hli_ballot *ballot, const struct hli_answer *answer)
{
    ballot->is_begun = false;
    atomic_store(&ballot->asks, false);
    hli_ask_done(&ballot->tenure.ask, answer);
}

static void poll_win(struct hli_ballot *ballot)
{
    struct hli_tally_reply reply;

    hli_poll_answer(
        ballot, &(const struct hli_answer){.verdict = HLI_REPLIED, .reply = hli_tally_yes(&reply)});
    hli_majority_judge(ballot); /* also by what was lost since the votes were counted */
}

/* Too few masters said yes. */
static void poll_fail(struct hli_ballot *ballot)
{
    struct hli_quorum *quorum = hli_ballot_quorum(ballot);
    struct hli_ballot_count count = hli_ballot_count(ballot);
    struct hli_tally_reply reply;
    char text[HLI_QUORUM_TALLY];
    struct hli_answer answer = {.verdict = HLI_REFUSED, .text = text};

    bool is_busy = count.no > 0 && count.no + count.held >= quorum->majority;
    answer.code = hli_tally_write(ballot, count.held, is_busy, text);
    if (is_busy)
        answer = (struct hli_answer){.verdict = HLI_REPLIED, .reply = hli_tally_no(ballot, &reply)};
    hli_ballot_give_back(ballot);
    atomic_store(&ballot->due_at, HLI_NEVER);
    if (ballot->spec.listens)
        hli_quorum_listen(quorum);
    hli_poll_answer(ballot, &answer);
}

void hli_poll_step(struct hli_ballot *ballot)
{
    const struct hli_quorum *quorum = hli_ballot_quorum(ballot);

    if (!ballot->is_begun) {
        hli_ballot_give_back(ballot); /* of an answer that came too late for a hold */
        hli_ballot_withdraw(ballot, HL_ECANCELED);
        if (hli_ballot_count(ballot).asked > 0)
            return;
        ballot->is_begun = true;
        hli_poll_ask(ballot);
    }
    hli_majority_drop_lost(ballot);
    struct hli_ballot_count count = hli_ballot_count(ballot);
    if (count.held >= quorum->majority) {
        poll_win(ballot);
        return;
    }
    if (count.no > quorum->count - quorum->majority)
        hli_ballot_withdraw(ballot, HL_ECANCELED); /* the rest would change nothing */
    else if (hli_ballot_is_due(ballot))
        hli_ballot_withdraw(ballot, HL_ECONN);
    if (hli_ballot_count(ballot).asked == 0)
        poll_fail(ballot);
}
