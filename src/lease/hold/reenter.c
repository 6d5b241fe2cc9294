/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Nested calls. Most of them are local: the hold count is kept here, and follows in Redis as a
 * display with one command in flight. Only a lease that must become longer waits for an answer.
 */
#include "lease/hold/reenter.h"

#include "lease/calls/replicas.h"
#include "lease/hold/hold.h"
#include "lease/hold/loss.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"

enum {
    REENTER_RETRY_MS = 100, /* after a refusal */
    REENTER_SHOW_MS = 1,    /* how far the count in Redis may lag */
    REENTER_SHOW_AGAIN_MS = 1000,
};

/* A hold that is kept without its replicas is not confirmed for a call that insists on them. */
bool hli_reenter_has_replicas(const struct hli_hold *hold, const struct hli_acquire_mode *mode)
{
    return hli_replicas_cover(hold->replicas, mode->replicas) &&
           (mode->is_kept_anyway || !hold->is_kept_anyway);
}

static bool reenter_needs_longer(const struct hli_tenure *tenure, const struct hli_acquire *acquire,
                                 hli_ns now)
{
    const struct hli_hold *hold = &tenure->hold;

    if (tenure->name->kind->has_no_count)
        return false;
    if (acquire->mode.replicas > 0 && !hli_reenter_has_replicas(hold, &acquire->mode))
        return true;
    if (acquire->is_watched)
        return !hold->is_watched;
    return hli_lease_validity(now, acquire->lease_ms) > hli_hold_validity(tenure);
}

void hli_reenter_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                       struct hli_acquire *acquire)
{
    hli_tenure_ref(tenure); /* the call's, until it is settled */
    acquire->got = tenure;
    acquire->before.count = 0;
    if (tenure->state == HLI_TENURE_OWN && turn->now >= hli_hold_validity(tenure))
        hli_loss_declare(turn, tenure, "expired");
    if (tenure->state != HLI_TENURE_OWN) {
        hli_loss_fail(turn, acquire, tenure);
    } else if (!tenure->hold.is_accepted) {
        hli_waiters_fail(turn, acquire, HL_EINVAL, HLI_NAME_IN_USE);
    } else if (tenure->hold.count == UINT32_MAX || tenure->reentry) {
        hli_waiters_fail(turn, acquire, HL_EINVAL,
                         tenure->reentry ? HLI_NAME_IN_USE : "too many levels");
    } else if (tenure->is_final && reenter_needs_longer(tenure, acquire, turn->now)) {
        hli_waiters_fail(turn, acquire, HL_ESERVER, HLI_GRACE_IS_FINAL);
    } else if (reenter_needs_longer(tenure, acquire, turn->now)) {
        tenure->reentry = acquire;
        if (turn->name->contention)
            hli_contention_forget_problem(turn->name->contention); /* it was another call's */
        tenure->ask_at = 0;
    } else {
        tenure->hold.count++;
        hli_turn_finish(turn, &acquire->wait, HL_OK);
    }
}

/* From now on the hold needs the replicas of both. It goes on without them only if all calls that
 * need some agree. */
static void reenter_add_replicas(struct hli_hold *hold, const struct hli_acquire_mode *mode)
{
    if (mode->replicas > 0)
        hold->is_kept_anyway =
            mode->is_kept_anyway && (hold->replicas == 0 || hold->is_kept_anyway);
    hold->replicas = hli_replicas_more(hold->replicas, mode->replicas);
}

static void reenter_is_granted(struct hli_turn *turn, struct hli_tenure *tenure, unsigned confirmed)
{
    struct hli_acquire *acquire = tenure->reentry;
    struct hli_hold *hold = &tenure->hold;

    if (!acquire || acquire->lease_ms > tenure->asked_lease_ms ||
        !hli_replicas_cover(tenure->ask.replicas, acquire->mode.replicas))
        return; /* the call that asked has left, and this answer is not for the call that came after
                   it */
    tenure->reentry = NULL;
    acquire->before = *hold;
    hold->count++;
    reenter_add_replicas(hold, &acquire->mode);
    hli_hold_confirm(turn, tenure, hli_replicas_cover(confirmed, hold->replicas));
    if (acquire->is_watched) {
        hold->is_watched = true;
        hold->watch_ms = acquire->lease_ms;
        hold->ends = HLI_NEVER;
        tenure->renew_at = tenure->ask.sent_at + HLI_MS(acquire->lease_ms) / 3;
    } else if (!hold->is_watched) {
        hold->ends =
            hli_later(hold->ends, hli_lease_validity(tenure->ask.sent_at, acquire->lease_ms));
    }
    hli_turn_finish(turn, &acquire->wait, HL_OK);
}

void hli_reenter_undo(struct hli_tenure *tenure, const struct hli_acquire *acquire)
{
    struct hli_hold *hold = &tenure->hold;

    if (hold->count > 1)
        hold->count--;
    if (tenure->state == HLI_TENURE_OWN && acquire->before.count > 0) {
        hold->is_watched = acquire->before.is_watched;
        hold->watch_ms = acquire->before.watch_ms;
        hold->replicas = acquire->before.replicas;
        hold->is_kept_anyway = acquire->before.is_kept_anyway;
        hold->ends = acquire->before.ends;
    }
}

/* The scripts raise a count to at least the one asked for, or lower it to at most that. */
static void reenter_note_count(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    uint32_t *certain = tenure->asks_less ? &tenure->most_count : &tenure->least_count;
    uint32_t *possible = tenure->asks_less ? &tenure->least_count : &tenure->most_count;
    uint32_t asked = tenure->asked_count;

    if (answer->verdict == HLI_BOUNCED || answer->verdict == HLI_UNSENT)
        return;
    if (tenure->asks_less ? *possible > asked : *possible < asked)
        *possible = asked;
    if (answer->verdict == HLI_REPLIED && (tenure->asks_less ? *certain > asked : *certain < asked))
        *certain = asked;
}

/* Too few replicas have the longer lease: the nested call fails, and the hold is as before. If the
 * answer is that to an earlier call, which asked for less, the plan asks anew. */
static bool reenter_lacks_replicas(struct hli_turn *turn, struct hli_tenure *tenure,
                                   const struct hli_answer *answer)
{
    struct hli_acquire *acquire = tenure->reentry;
    unsigned confirmed = hli_op_confirmed(&tenure->ask, answer);
    unsigned wanted = acquire && !acquire->mode.is_kept_anyway ? acquire->mode.replicas : 0;
    char text[HLI_REPLICAS_TEXT];

    if (!hli_op_is_confirmed(&tenure->ask, answer))
        hli_count(&turn->name->client->counters.unconfirmed);
    if (hli_hold_takes(tenure, confirmed) && hli_replicas_cover(confirmed, wanted))
        return false;
    if (!acquire || !hli_replicas_cover(tenure->ask.replicas, wanted))
        return true;
    int code = hli_replicas_write(turn->name->client, &tenure->ask, answer, text);
    hli_waiters_fail(turn, acquire, code, text);
    return true;
}

/* A longer lease, or the count on display, was answered while the hold is live. */
bool hli_reenter_answered(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                          const struct hli_answer *answer)
{
    int64_t status = 0;

    reenter_note_count(tenure, answer);
    if (answer->verdict == HLI_REPLIED) {
        hli_reply_integer_at(answer->reply, 0, &status);
        if (status != 1)
            return false;
        if (asking == HLI_ASKING_REENTER && reenter_lacks_replicas(turn, tenure, answer))
            return true;
        if (asking == HLI_ASKING_REENTER || (tenure->hold.is_watched && tenure->hold.replicas == 0))
            hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms,
                              hli_op_confirmed(&tenure->ask, answer), tenure->ask.term);
        if (turn->name->contention)
            hli_contention_forget_problem(turn->name->contention);
        if (asking == HLI_ASKING_REENTER)
            reenter_is_granted(turn, tenure, hli_op_confirmed(&tenure->ask, answer));
    } else if (tenure->reentry && answer->verdict == HLI_FAILED) {
        hli_waiters_fail(turn, tenure->reentry, answer->code, answer->text);
    } else if (answer->verdict != HLI_BOUNCED) {
        if (tenure->reentry)
            hli_contention_note_problem(turn->name, answer->code, answer->text);
        tenure->ask_at =
            hli_after_ms(turn->now, tenure->reentry ? REENTER_RETRY_MS : REENTER_SHOW_AGAIN_MS);
    }
    return true;
}

bool hli_reenter_may_wait(const struct hli_tenure *tenure, uint32_t count)
{
    return tenure->shows_at != 0 || hli_tenure_shows(tenure, count);
}

static void reenter_send(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                         const struct hli_acquire_request *request)
{
    const struct hli_kind *kind = turn->name->kind;
    bool asks_less = asking == HLI_ASKING_COUNT && tenure->most_count > request->count;
    const struct hli_release_request release_request = {.count = request->count,
                                                        .lease_ms = request->lease_ms};
    int rc = asks_less ? kind->release(tenure, &tenure->ask, &release_request)
                       : kind->acquire(tenure, &tenure->ask, request);

    if (rc < 0) {
        tenure->ask_at = hli_after_ms(turn->now, HLI_NO_MEMORY_MS);
        hli_turn_timer(turn, tenure->ask_at);
        return;
    }
    tenure->asked_count = request->count;
    tenure->asks_less = asks_less;
    tenure->asked_lease_ms = request->lease_ms;
    hli_turn_ask(turn, tenure, asking);
}

/* Asks for a nested call's longer lease, at once. */
static void reenter_ask(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const struct hli_acquire_request request = {.lease_ms = tenure->reentry->lease_ms,
                                                .count = tenure->hold.count + 1};

    if (turn->now >= tenure->ask_at)
        reenter_send(turn, tenure, HLI_ASKING_REENTER, &request);
    else
        hli_turn_timer(turn, tenure->ask_at);
}

static void reenter_show(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;
    const struct hli_acquire_request request = {
        .lease_ms = hold->is_watched
                        ? hold->watch_ms
                        : hli_ms_left(turn->now, tenure->valid_until) + 1, /* extends nothing */
        .count = hold->count,
    };

    tenure->shows_at = 0;
    if (!hli_tenure_shows(tenure, hold->count))
        reenter_send(turn, tenure, HLI_ASKING_COUNT, &request);
}

/* The count is a display: most nested calls are over before it would show them. */
void hli_reenter_plan(struct hli_turn *turn)
{
    struct hli_tenure *tenure = turn->name->current;

    if (HLI_GRACE_IS_ON(turn->name->client) && !hli_grace_is_met(tenure))
        tenure->shows_at = 0; /* the answer of its renewal comes here again */
    else if (tenure->reentry)
        reenter_ask(turn, tenure);
    else if (tenure->shows_at != 0 && turn->now >= tenure->shows_at)
        reenter_show(turn, tenure);
    else if (tenure->shows_at == 0)
        tenure->shows_at = hli_later(hli_after_ms(turn->now, REENTER_SHOW_MS), tenure->ask_at);
}
