/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Votes: each step is a turn of the voter's name, in a visit to its client. */
#include "lease/several/vote.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/hold/hold.h"
#include "lease/several/quorum.h"

static void vote_unref(struct hli_vote *vote)
{
    hli_tenure_unref(vote->whole); /* the vote's */
}

/* The reference keeps the ballot beside a thread that makes its steps at once. */
static void vote_report(struct hli_vote *vote, enum hli_vote_state state)
{
    struct hli_tenure *whole = vote->whole;

    hli_tenure_ref(whole);
    atomic_store(&vote->state, state);
    whole->name->kind->quorum->act(whole);
    hli_tenure_unref(whole);
}

static void vote_answered(struct hli_wait *wait)
{
    vote_report(HLI_PART_OF(HLI_PART_OF(wait, struct hli_acquire, wait), struct hli_vote, acquire),
                HLI_VOTE_ANSWERED);
}

static void vote_released(struct hli_wait *wait)
{
    vote_report(
        HLI_PART_OF(HLI_PART_OF(wait, struct hli_release_wait, wait), struct hli_vote, released),
        HLI_VOTE_RELEASED);
}

/* A client that is closed counts as a master that does not answer. */
static void vote_is_closed(struct hli_vote *vote, enum hli_vote_state state)
{
    vote->code = hli_fail(&vote->err, HL_ECLOSED, "%s", hl_err_text(HL_ECLOSED));
    vote_report(vote, state);
}

static int vote_init_acquire(struct hli_vote *vote, const struct hli_vote_spec *spec)
{
    const hl_acquire_options options = {.size = sizeof(options),
                                        .wait_ms = HL_NO_WAIT,
                                        .lease_ms = spec->is_watched ? 0 : spec->lease_ms,
                                        .min_hold_ms = spec->min_hold_ms,
                                        .owner = spec->owner};
    const struct hli_acquire_spec acquire = {.name = vote->name,
                                             .mode = {.watch_ms = spec->lease_ms,
                                                      .restart_ms = spec->restart_ms,
                                                      .listens = spec->listens},
                                             .options = &options};

    hli_vote_deinit(vote);
    int rc = hli_acquire_init(&vote->acquire, &acquire, &vote->err);
    HLI_PART_IS(&vote->acquire, struct hli_vote, acquire);
    vote->has_acquire = rc == 0;
    vote->acquire.wait.finished = vote_answered;
    return rc;
}

void hli_vote_ask(struct hli_vote *vote, const struct hli_vote_spec *spec)
{
    hl_client *client = vote->name->client;

    hli_tenure_ref(vote->whole); /* the vote's */
    atomic_store(&vote->state, HLI_VOTE_ASKS);
    vote->err = (hl_error)HL_ERROR_INIT;
    vote->code = vote_init_acquire(vote, spec);
    if (vote->code < 0) {
        vote_report(vote, HLI_VOTE_ANSWERED);
    } else if (!hli_client_visit(client)) {
        vote_is_closed(vote, HLI_VOTE_ANSWERED);
    } else {
        atomic_store(&vote->name->voter->number, spec->number);
        hli_acquire_start_part(&vote->acquire);
        hli_client_leave(client);
    }
}

/* Drops the hold that the acquire got. */
static void vote_drop(struct hli_vote *vote)
{
    hli_tenure_unref(vote->acquire.got); /* the call's */
    vote->acquire.got = NULL;
}

static void vote_let_go(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->hold.is_accepted = false; /* nobody was told of it */
    tenure->is_silent = true;
    if (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_LOST)
        hli_releasing_begin(turn, tenure);
}

/* Returns until when the hold is valid; 0: too late, or it was asked for by an attempt before, and
 * it is released. */
static hli_ns vote_accept(struct hli_vote *vote)
{
    hl_client *client = vote->name->client;
    struct hli_tenure *tenure = vote->acquire.got;
    struct hli_turn turn;
    hli_ns until = 0;

    if (!hli_client_visit(client))
        return 0;
    hli_turn_begin(&turn, vote->name);
    if (tenure->number == vote->number && hli_hold_is_valid(tenure, turn.now)) {
        tenure->hold.is_accepted = true;
        until = hli_hold_validity(tenure);
    } else {
        vote_let_go(&turn, tenure);
    }
    hli_turn_end(&turn);
    hli_client_leave(client);
    return until;
}

hli_ns hli_vote_settle(struct hli_vote *vote)
{
    hli_ns until = 0;

    if (vote->code == HL_OK)
        vote->code = vote->acquire.wait.code;
    if (vote->code == HL_ECANCELED)
        vote->code = HL_ECLOSED; /* nobody else cancels it */
    if (vote->code == HL_OK)
        until = vote_accept(vote);
    if (vote->code == HL_EBUSY)
        hli_quorum_cut_index(vote->err.busy.owner);
    if (until > 0) {
        atomic_store(&vote->state, HLI_VOTE_HELD);
        return until;
    }
    if (vote->code == HL_OK)
        vote->code = hli_fail(&vote->err, HL_ETIMEDOUT, "its answer came too late");
    vote_drop(vote);
    atomic_store(&vote->state, HLI_VOTE_NONE);
    vote_unref(vote);
    return 0;
}

bool hli_vote_withdraw(struct hli_vote *vote, int code)
{
    hl_client *client = vote->name->client;
    struct hli_turn turn;

    if (!hli_client_visit(client))
        return false; /* its close has ended the acquire */
    hli_turn_begin(&turn, vote->name);
    bool leaves = hli_acquire_withdraw(&turn, &vote->acquire);
    hli_turn_end(&turn);
    hli_client_leave(client);
    if (!leaves)
        return false;
    vote->code = code;
    vote->err.code = HL_OK; /* it has no reason of its own */
    atomic_store(&vote->state, HLI_VOTE_NONE);
    vote_unref(vote);
    return true;
}

void hli_vote_give_back(struct hli_vote *vote)
{
    hl_client *client = vote->name->client;
    struct hli_turn turn;

    if (hli_client_visit(client)) {
        hli_turn_begin(&turn, vote->name);
        vote_let_go(&turn, vote->acquire.got);
        hli_turn_end(&turn);
        hli_client_leave(client);
    }
    vote_drop(vote);
    atomic_store(&vote->state, HLI_VOTE_NONE);
    vote_unref(vote);
}

void hli_vote_doubt(struct hli_vote *vote)
{
    hl_client *client = vote->name->client;
    struct hli_turn turn;

    if (!hli_client_visit(client))
        return;
    hli_turn_begin(&turn, vote->name);
    hli_hold_doubt(&turn, vote->acquire.got, turn.now);
    hli_turn_end(&turn);
    hli_client_leave(client);
}

void hli_vote_abandon(struct hli_vote *vote)
{
    vote_drop(vote);
    atomic_store(&vote->state, HLI_VOTE_NONE);
    vote_unref(vote);
}

/* Unlike a release by a program this one cannot fail for want of memory, and leave the hold as it
 * is: it is sent when there is some. */
static void vote_begin_release(struct hli_turn *turn, struct hli_vote *vote)
{
    struct hli_tenure *tenure = vote->acquire.got;
    struct hli_wait *wait = &vote->released.wait;
    enum hli_tenure_state state = tenure->state;

    if (state == HLI_TENURE_OWN)
        tenure->releaser = wait;
    else
        hli_turn_finish(turn, wait, HL_ELOST);
    if (state == HLI_TENURE_OWN || state == HLI_TENURE_LOST)
        hli_releasing_begin(turn, tenure);
}

void hli_vote_release(struct hli_vote *vote)
{
    hl_client *client = vote->name->client;
    struct hli_turn turn;

    atomic_store(&vote->state, HLI_VOTE_RELEASES);
    hli_release_wait_init(&vote->released, vote->name, &vote->err);
    HLI_PART_IS(&vote->released, struct hli_vote, released);
    vote->released.wait.finished = vote_released;
    if (!hli_client_visit(client)) {
        vote_drop(vote);
        vote->released.wait.code = HL_EINDOUBT;
        vote_is_closed(vote, HLI_VOTE_RELEASED);
        return;
    }
    hli_turn_begin(&turn, vote->name);
    vote_begin_release(&turn, vote);
    hli_turn_end(&turn);
    hli_client_leave(client);
    vote_drop(vote);
}

void hli_vote_end(struct hli_vote *vote)
{
    vote->code = vote->released.wait.code;
    atomic_store(&vote->state, HLI_VOTE_NONE);
    vote_unref(vote);
}

void hli_vote_deinit(struct hli_vote *vote)
{
    if (vote->has_acquire)
        hli_acquire_deinit(&vote->acquire);
    vote->has_acquire = false;
}

void hli_vote_count(hl_client *client, const struct hli_vote *vote)
{
    struct hli_counters *counters = &client->counters;

    if (hli_vote_state_of(vote) == HLI_VOTE_NONE && vote->code == HL_ECANCELED)
        return; /* its answer was not awaited */
    hli_count(hli_vote_state_of(vote) == HLI_VOTE_HELD ? &counters->votes
              : vote->code == HL_EBUSY                 ? &counters->votes_refused
                                                       : &counters->votes_missing);
}
