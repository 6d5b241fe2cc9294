/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Attempts: asking all masters at once, and what their answers come to. */
#include "lease/several/attempt.h"

#include "lease/acquire/ask.h"
#include "lease/acquire/restart.h"
#include "lease/several/majority.h"
#include "lease/several/tally.h"

enum { ATTEMPT_LOOK_MS = 2 }; /* how often to look for a link that is about to be up */

/* The masters to be asked now: those where nothing is held or under way. */
static bool attempt_choose(struct hli_ballot *ballot, bool chosen[HLI_QUORUM_LIMIT])
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
        vote->code = HL_ENOTOWNER;
        vote->number = ballot->spec.number;
        vote->is_lost = false;
        vote->until = 0;
    }
    hli_mutex_unlock(&name->mutex);
    return is_any;
}

/* Of the masters that are this one's server: an earlier one, or a later one that was asked first,
 * for its link was up sooner. */
static size_t attempt_twin(const struct hli_ballot *ballot, size_t index)
{
    const struct hli_quorum *quorum = ballot->tenure.name->quorum;

    for (size_t i = 0; i < quorum->count; i++)
        if (i != index && hli_quorum_is_one_server(quorum, i, index) &&
            (i < index || hli_vote_state_of(&ballot->votes[i]) != HLI_VOTE_NONE))
            return i;
    return index;
}

/* A master that is the same server as another one has no vote: asked, it would name this owner's
 * own vote as a holder. Which server it is, is known only of a link that is up: it is awaited,
 * unless it failed. */
static void attempt_ask_one(struct hli_ballot *ballot, size_t index)
{
    const struct hli_quorum *quorum = hli_ballot_quorum(ballot);
    struct hli_link *link = hli_name_link(quorum->voters[index]);
    struct hli_vote *vote = &ballot->votes[index];
    size_t twin = attempt_twin(ballot, index);

    vote->err = (hl_error)HL_ERROR_INIT;
    if (hli_link_is_up(link) ? twin == index : atomic_load(&vote->name->client->is_closed))
        hli_vote_ask(vote, &ballot->spec);
    else if (hli_link_is_up(link))
        hli_tally_twin(quorum, vote, twin);
    else if (hli_link_has_failed(link, &vote->err))
        hli_tally_miss(ballot, vote, vote->err.code);
}

void hli_attempt_ask(struct hli_ballot *ballot)
{
    bool chosen[HLI_QUORUM_LIMIT] = {false};

    if (!attempt_choose(ballot, chosen))
        return;
    ballot->is_resting = false;
    atomic_store(&ballot->due_at, hli_after_ms(hli_now(), ballot->vote_ms));
    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++)
        if (chosen[i])
            attempt_ask_one(ballot, i);
}

void hli_attempt_answer(struct hli_ballot *ballot, const struct hli_answer *answer)
{
    ballot->is_begun = false;
    atomic_store(&ballot->asks, false);
    hli_ask_done(&ballot->tenure.ask, answer);
}

/* Until then the masters of this request have time. */
static hli_ns attempt_ends_at(const struct hli_ballot *ballot)
{
    return hli_after_ms(ballot->tenure.ask.sent_at, ballot->vote_ms);
}

static void attempt_win(struct hli_ballot *ballot)
{
    struct hli_tally_reply reply;

    /* Of those that have not answered yet. */
    atomic_store(&ballot->due_at, attempt_ends_at(ballot));
    hli_attempt_answer(
        ballot, &(const struct hli_answer){.verdict = HLI_REPLIED, .reply = hli_tally_yes(&reply)});
    hli_majority_judge(ballot); /* also by what was lost since the votes were counted */
}

/* A majority is there, but for masters that restarted: this is no outage, as its end is known. */
static void attempt_mind_restarts(struct hli_ballot *ballot, const struct hli_ballot_count *count)
{
    struct hli_name *name = ballot->tenure.name;
    size_t there = count->held + count->no;

    for (size_t i = 0; i < name->quorum->count; i++)
        there += ballot->votes[i].code == HL_ESERVER &&
                 hli_restart_delays(ballot->votes[i].name, ballot->spec.restart_ms);
    if (there < name->quorum->majority)
        return;
    hli_mutex_lock(&name->mutex);
    name->asked_at = 0;
    hli_mutex_unlock(&name->mutex);
}

/* Too few masters said yes. */
static void attempt_fail(struct hli_ballot *ballot)
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
    attempt_mind_restarts(ballot, &count);
    hli_ballot_give_back(ballot);
    atomic_store(&ballot->due_at, HLI_NEVER);
    if (ballot->spec.listens)
        hli_quorum_listen(quorum);
    hli_attempt_answer(ballot, &answer);
}

static bool attempt_is_awaited(const struct hli_vote *vote)
{
    return hli_vote_state_of(vote) == HLI_VOTE_NONE && vote->code == HL_ENOTOWNER;
}

/* Asks the masters whose links have come up meanwhile; or awaits none any more, for the reason of
 * this code. Returns how many are still awaited. */
static size_t attempt_look(struct hli_ballot *ballot, int code)
{
    size_t awaited = 0;

    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++) {
        struct hli_vote *vote = &ballot->votes[i];
        if (attempt_is_awaited(vote) && code < 0)
            hli_tally_miss(ballot, vote, code);
        else if (attempt_is_awaited(vote))
            attempt_ask_one(ballot, i);
        awaited += attempt_is_awaited(vote);
    }
    return awaited;
}

static void attempt_withdraw(struct hli_ballot *ballot, int code)
{
    hli_ballot_withdraw(ballot, code);
    attempt_look(ballot, code);
}

void hli_attempt_step(struct hli_ballot *ballot)
{
    const struct hli_quorum *quorum = hli_ballot_quorum(ballot);
    hli_ns ends_at = attempt_ends_at(ballot);

    if (!ballot->is_begun) {
        hli_ballot_give_back(ballot); /* of an answer that came too late for a hold */
        hli_ballot_withdraw(ballot, HL_ECANCELED);
        if (hli_ballot_count(ballot).asked > 0)
            return;
        ballot->is_begun = true;
        hli_attempt_ask(ballot);
    }
    hli_majority_drop_lost(ballot);
    struct hli_ballot_count count = hli_ballot_count(ballot);
    if (count.held >= quorum->majority) {
        attempt_win(ballot);
        return;
    }
    if (count.no > quorum->count - quorum->majority)
        attempt_withdraw(ballot, HL_ECANCELED); /* the rest would change nothing */
    else if (hli_now() >= ends_at)
        attempt_withdraw(ballot, HL_ECONN);
    bool awaits = attempt_look(ballot, HL_OK) > 0;
    if (hli_ballot_count(ballot).asked == 0 && !awaits)
        attempt_fail(ballot);
    else if (awaits)
        hli_ballot_set_due(ballot, hli_earlier(ends_at, hli_after_ms(hli_now(), ATTEMPT_LOOK_MS)));
}
