/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Ballots. Each event of a vote ends in ballot_kick(), which calls ballot_step(); that derives
 * the next action from the states of all votes. What the engine knows of the votes, it is told in
 * turns of the Redlock's name: the answer to a request (attempt.c), and the validity (majority.c).
 */
#include "lease/several/ballot_steps.h"

#include "base/check.h"
#include "base/random.h"
#include "lease/acquire/ask.h"
#include "lease/several/attempt.h"
#include "lease/several/majority.h"
#include "lease/several/tally.h"
#include "lease/state/notice.h"

#include <stdlib.h>

enum {
    BALLOT_LOOK_MS = 20,    /* how often to look if NARROW can be told */
    BALLOT_LEASE_PARTS = 4, /* a master is waited for at most for a quarter of the lease */
    BALLOT_HEARD_MS = 2,    /* after a release, waiters of different processes ask within so long */
};

static struct hli_tenure *ballot_new(const struct hli_name *name)
{
    const struct hli_quorum *quorum = name->quorum;
    struct hli_ballot *ballot =
        calloc(1, sizeof(*ballot) + quorum->count * sizeof(struct hli_vote));

    if (!ballot)
        return NULL;
    for (size_t i = 0; i < quorum->count; i++) {
        ballot->votes[i].whole = &ballot->tenure;
        ballot->votes[i].name = quorum->voters[i];
        ballot->votes[i].code = HL_ENOTOWNER;
    }
    atomic_init(&ballot->due_at, HLI_NEVER);
    return &ballot->tenure;
}

static void ballot_deinit(struct hli_tenure *tenure)
{
    struct hli_ballot *ballot = hli_ballot_of(tenure);

    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++)
        hli_vote_deinit(&ballot->votes[i]);
    hli_owner_unref(ballot->spec.owner);
}

/* Has the head of the line, or one behind it, more than one look at the lock? */
static bool ballot_is_waited_for(const struct hli_name *name)
{
    const struct hli_acquire *acquire;

    TAILQ_FOREACH (acquire, &name->waiters, link)
        if (!acquire->is_try)
            return true;
    return false;
}

static int64_t ballot_vote_ms(const struct hli_acquire *head)
{
    int64_t most_ms = head->lease_ms / BALLOT_LEASE_PARTS;

    return head->mode.vote_ms < most_ms ? head->mode.vote_ms : most_ms;
}

/* The request is not bytes but a number, by which the masters know this attempt. */
int hli_ballot_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                       const struct hli_acquire_request *request)
{
    struct hli_name *name = tenure->name;
    struct hli_ballot *ballot = hli_ballot_of(name->current);
    const struct hli_acquire *head = TAILQ_FIRST(&name->waiters);
    struct hl_owner *owner = ballot->spec.owner ? ballot->spec.owner : hli_owner_new(NULL);

    (void)op;
    if (!owner)
        return HL_ENOMEM;
    ballot->spec = (struct hli_vote_spec){.owner = owner,
                                          .lease_ms = request->lease_ms,
                                          .min_hold_ms = head->options.min_hold_ms,
                                          .restart_ms = head->mode.restart_ms,
                                          .is_watched = head->is_watched,
                                          .listens = ballot_is_waited_for(name),
                                          .number = hli_client_next_number(name->client)};
    ballot->vote_ms = ballot_vote_ms(head);
    atomic_store(&ballot->due_at, hli_after_ms(hli_now(), ballot->vote_ms)); /* for the timer */
    name->quorum->heard = 0;
    return 0;
}

int hli_ballot_release(const struct hli_tenure *tenure, struct hli_op *op,
                       const struct hli_release_request *release_request)
{
    (void)op, (void)release_request;
    HLI_OF((void *)(uintptr_t)tenure, struct hli_ballot, tenure)->was_held =
        tenure->hold.owner != NULL;
    return 0;
}

static void ballot_lose(struct hli_tenure *tenure)
{
    atomic_store(&hli_ballot_of(tenure)->spec.owner->has_exited, true);
}

static void ballot_take_results(struct hli_ballot *ballot)
{
    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++) {
        struct hli_vote *vote = &ballot->votes[i];
        enum hli_vote_state state = hli_vote_state_of(vote);
        hli_ns until = state == HLI_VOTE_ANSWERED ? hli_vote_settle(vote) : 0;
        if (until > 0)
            hli_majority_add(ballot, vote, until);
        if (state == HLI_VOTE_ANSWERED)
            hli_vote_count(ballot->tenure.name->client, vote);
        if (state == HLI_VOTE_RELEASED)
            hli_vote_end(vote);
    }
}

/* The release is over when a majority has confirmed it, or cannot any more. */
static void ballot_end_release(struct hli_ballot *ballot)
{
    const struct hli_quorum *quorum = hli_ballot_quorum(ballot);
    size_t released = 0, pending = 0;
    const struct hli_vote *doubted = NULL;
    struct hli_tally_reply reply;

    for (size_t i = 0; i < quorum->count; i++) {
        const struct hli_vote *vote = &ballot->votes[i];
        if (!(ballot->let_go >> i & 1))
            continue; /* it was not held: its code says why */
        bool is_done = hli_vote_state_of(vote) == HLI_VOTE_NONE;
        pending += !is_done;
        released += is_done && vote->code == HL_OK;
        if (is_done && vote->code != HL_OK && vote->code != HL_ELOST)
            doubted = vote;
    }
    if (released < quorum->majority && pending > 0)
        return;
    struct hli_answer answer = {.verdict = HLI_REPLIED,
                                .reply = released >= quorum->majority ? hli_tally_yes(&reply)
                                                                      : hli_tally_gone(&reply)};
    if (released < quorum->majority && doubted && ballot->was_held)
        answer =
            (struct hli_answer){.verdict = doubted->code == HL_EINDOUBT ? HLI_UNKNOWN : HLI_FAILED,
                                .code = doubted->code,
                                .text = hli_tally_reason(&doubted->err)};
    atomic_store(&ballot->releases, false);
    ballot->tenure.release.done(&ballot->tenure.release, &answer);
}

static void ballot_begin_release(struct hli_ballot *ballot)
{
    ballot->is_over = true;
    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++) {
        struct hli_vote *vote = &ballot->votes[i];
        if (hli_vote_state_of(vote) != HLI_VOTE_HELD)
            continue;
        if (!atomic_load(&ballot->releases)) {
            hli_vote_abandon(vote);
        } else if (ballot->was_held) {
            ballot->let_go |= UINT32_C(1) << i;
            hli_vote_release(vote);
        }
    }
}

/* The tenure is released, and requests that are under way are undone behind them; or it has ended
 * without a release, and what it held ends with its leases. */
static void ballot_release(struct hli_ballot *ballot)
{
    if (atomic_load(&ballot->asks))
        hli_attempt_answer(ballot, &(const struct hli_answer){.verdict = HLI_BOUNCED, .text = ""});
    if (!ballot->is_over)
        ballot_begin_release(ballot);
    hli_ballot_withdraw(ballot, HL_ECANCELED);
    hli_ballot_give_back(ballot);
    if (atomic_load(&ballot->releases))
        ballot_end_release(ballot);
}

/* Of a hold: the masters that were asked have had their time; or those that have no vote for it are
 * asked again, a third of the lease later each time, while the watchdog renews the hold: else
 * masters that restart one after the other would use the majority up. */
static void ballot_go_on(struct hli_ballot *ballot)
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
static bool ballot_tell_narrow(struct hli_ballot *ballot)
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
static void ballot_rest(struct hli_ballot *ballot, size_t held)
{
    const struct hli_quorum *quorum = hli_ballot_quorum(ballot);

    if (held > quorum->majority)
        ballot->is_narrow = false;
    if (held == quorum->majority && !ballot->is_narrow && !ballot_tell_narrow(ballot)) {
        ballot->is_resting = false;
        hli_ballot_set_due(ballot, hli_after_ms(hli_now(), BALLOT_LOOK_MS));
    } else if (held == quorum->count || !ballot->spec.is_watched) {
        ballot->is_resting = false;
        atomic_store(&ballot->due_at, HLI_NEVER);
    } else if (!ballot->is_resting) {
        ballot->is_resting = true;
        hli_ballot_set_due(ballot, hli_after_ms(hli_now(), ballot->spec.lease_ms / 3));
    }
}

static void ballot_look(struct hli_ballot *ballot)
{
    for (size_t i = 0; i < hli_ballot_quorum(ballot)->count; i++)
        if (hli_vote_state_of(&ballot->votes[i]) == HLI_VOTE_HELD)
            hli_vote_doubt(&ballot->votes[i]);
}

/* The tenure holds. What took a vote away, as a force release does, may have taken others. */
static void ballot_hold(struct hli_ballot *ballot)
{
    if (hli_majority_drop_lost(ballot))
        atomic_store(&ballot->looks, true);
    if (atomic_exchange(&ballot->looks, false))
        ballot_look(ballot);
    if (hli_ballot_is_due(ballot))
        ballot_go_on(ballot);
    const struct hli_ballot_count count = hli_ballot_count(ballot);
    if (count.asked == 0)
        ballot_rest(ballot, count.held);
}

static void ballot_step(struct hli_ballot *ballot)
{
    ballot_take_results(ballot);
    if (ballot->is_over || atomic_load(&ballot->releases) ||
        hli_ballot_state(ballot) == HLI_TENURE_ENDED)
        ballot_release(ballot);
    else if (atomic_load(&ballot->asks))
        hli_attempt_step(ballot);
    else if (hli_ballot_state(ballot) == HLI_TENURE_OWN)
        ballot_hold(ballot);
    else if (hli_ballot_state(ballot) >= HLI_TENURE_LOST)
        hli_ballot_withdraw(ballot, HL_ECANCELED);
}

static void ballot_kick(struct hli_ballot *ballot)
{
    hl_client *client = ballot->tenure.name->client;
    unsigned pending = 1;

    if (atomic_fetch_add(&ballot->kicks, 1) > 0)
        return;
    hli_tenure_ref(&ballot->tenure);
    bool visits = hli_client_visit(client); /* else its names only drop what they have */
    do {
        ballot_step(ballot);
        pending = atomic_fetch_sub(&ballot->kicks, pending) - pending;
    } while (pending > 0);
    hli_tenure_unref(&ballot->tenure);
    if (visits)
        hli_client_leave(client);
}

static void ballot_send(struct hli_op *op)
{
    bool asks = op->done == hli_ask_done;
    struct hli_ballot *ballot = hli_ballot_of(asks ? HLI_PART_OF(op, struct hli_tenure, ask)
                                                   : HLI_PART_OF(op, struct hli_tenure, release));

    op->sent_at = hli_now();
    atomic_store(asks ? &ballot->asks : &ballot->releases, true);
    ballot_kick(ballot);
}

static void ballot_act(struct hli_tenure *tenure)
{
    ballot_kick(hli_ballot_of(tenure));
}

static bool ballot_has_heard(const struct hli_quorum *quorum)
{
    size_t heard = 0;

    for (size_t i = 0; i < quorum->count; i++)
        heard += quorum->heard >> i & 1;
    return heard >= quorum->majority;
}

/* A majority told of a release: asks soon. It may be a majority only by messages that came while
 * the last request was under way. */
static void ballot_plan_heard(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_quorum *quorum = turn->name->quorum;

    if (!hli_tenure_is_contending(tenure) || tenure->asking != HLI_ASKING_NOTHING ||
        !ballot_has_heard(quorum))
        return;
    quorum->heard = 0;
    tenure->ask_at =
        hli_earlier(tenure->ask_at, turn->now + hli_random_upto(HLI_MS(BALLOT_HEARD_MS)));
    hli_turn_timer(turn, tenure->ask_at);
}

/* As ask_look_at_hold() of other locks. */
static void ballot_plan_look(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_ballot *ballot = hli_ballot_of(tenure);
    hli_ns next = hli_after_ms(turn->now, turn->name->client->settings.poll_ms);

    if (tenure->state != HLI_TENURE_OWN || TAILQ_EMPTY(&turn->name->waiters)) {
        ballot->look_at = 0;
        return;
    }
    if (ballot->look_at != 0 && turn->now >= ballot->look_at) {
        atomic_store(&ballot->looks, true);
        hli_turn_act(turn, tenure);
    }
    if (turn->now >= ballot->look_at)
        ballot->look_at = next;
    hli_turn_timer(turn, ballot->look_at);
}

static void ballot_plan(struct hli_turn *turn)
{
    struct hli_tenure *tenure = turn->name->current;

    if (!tenure)
        return;
    hli_ns due_at = atomic_load(&hli_ballot_of(tenure)->due_at);
    if (turn->now >= due_at)
        hli_turn_act(turn, tenure);
    else if (due_at != HLI_NEVER)
        hli_turn_timer(turn, due_at);
    ballot_plan_heard(turn, tenure);
    ballot_plan_look(turn, tenure);
}

static const char *ballot_tally(const struct hli_name *name)
{
    return name->quorum->tally;
}

const struct hli_quorum_hooks hli_ballot_hooks = {
    .make = ballot_new,
    .unmake = ballot_deinit,
    .send = ballot_send,
    .lost = ballot_lose,
    .plan = ballot_plan,
    .act = ballot_act,
    .tally = ballot_tally,
    .lead_begin = hli_quorum_lead_begin,
    .lead = hli_quorum_lead,
    .free = hli_quorum_free,
};
