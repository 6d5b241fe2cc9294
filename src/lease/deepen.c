/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Nested calls. Most of them are local: the hold count is kept here, and follows in Redis as a
 * display with one command in flight. Only a lease that must become longer waits for an answer.
 */
#include "lease/deepen.h"

#include "lease/ask.h"
#include "lease/contest.h"
#include "lease/hold.h"
#include "lease/loss.h"

enum {
    DEEPEN_RETRY_MS = 100, /* after a refusal */
    DEEPEN_SHOW_MS = 1,    /* how far the count in Redis may lag */
};

static bool deepen_needs_longer(const struct hli_tenure *tenure, const struct hli_acquire *acquire,
                                hli_ns now)
{
    const struct hli_hold *hold = &tenure->hold;

    if (acquire->is_watched)
        return !hold->is_watched;
    return hli_lease_validity(now, acquire->lease_ms) > hli_hold_validity(tenure);
}

void hli_deepen_begin(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_acquire *acquire)
{
    hli_tenure_ref(tenure); /* the call's, until it is settled */
    acquire->got = tenure;
    if (tenure->state == HLI_TENURE_OWN && turn->now >= hli_hold_validity(tenure))
        hli_loss_declare(turn, tenure, "expired");
    if (tenure->state != HLI_TENURE_OWN) {
        hli_acquire_fail(turn, acquire, HL_ELOST, "the outer hold ended before its release");
    } else if (tenure->hold.count == UINT32_MAX || tenure->deepener) {
        hli_acquire_fail(turn, acquire, HL_EINVAL,
                         tenure->deepener ? "its owner has another call under way"
                                          : "too many levels");
    } else if (deepen_needs_longer(tenure, acquire, turn->now)) {
        tenure->deepener = acquire;
        hli_deepen_go(turn, tenure);
    } else {
        tenure->hold.count++;
        hli_turn_finish(turn, &acquire->wait, HL_OK);
        hli_deepen_go(turn, tenure);
    }
}

static void deepen_is_granted(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_acquire *acquire = tenure->deepener;
    struct hli_hold *hold = &tenure->hold;

    if (!acquire || acquire->lease_ms > tenure->asked_lease_ms)
        return; /* who asked went away meanwhile, and this answer is not for who came after */
    tenure->deepener = NULL;
    hold->count++;
    if (acquire->is_watched) {
        hold->is_watched = true;
        hold->watch_ms = acquire->lease_ms;
        hold->ends = HLI_NEVER;
        tenure->renew_at = tenure->ask.sent_at + HLI_MS(acquire->lease_ms) / 3;
    } else if (!hold->is_watched) {
        hold->ends =
            hli_later(hold->ends, hli_lease_validity(tenure->ask.sent_at, acquire->lease_ms));
    }
    hli_turn_watch(turn, tenure, hli_hold_due(tenure));
    hli_turn_finish(turn, &acquire->wait, HL_OK);
}

/* The scripts raise a count to at least the one asked for, or lower it to at most that. */
static void deepen_note_count(struct hli_tenure *tenure, const struct hli_answer *answer)
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

/* A longer lease, or the count on display, was answered while the hold is live. */
void hli_deepen_answered(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                         const struct hli_answer *answer)
{
    int64_t status = 0;

    deepen_note_count(tenure, answer);
    if (answer->verdict == HLI_REPLIED) {
        hli_reply_integer_at(answer->reply, 0, &status);
        if (status != 1) {
            hli_loss_of_key(turn, tenure);
            return;
        }
        if (asking == HLI_ASKING_DEEPEN || tenure->hold.is_watched)
            hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms);
        hli_contest_forget_problem(turn->name);
        if (asking == HLI_ASKING_DEEPEN)
            deepen_is_granted(turn, tenure);
        hli_deepen_go(turn, tenure);
    } else if (answer->verdict == HLI_BOUNCED) {
        hli_deepen_go(turn, tenure);
    } else if (tenure->deepener && answer->verdict == HLI_FAILED) {
        hli_acquire_fail(turn, tenure->deepener, answer->code, answer->text);
    } else if (tenure->deepener) {
        hli_contest_note_problem(turn->name, answer->code, answer->text);
        hli_turn_timer(turn, hli_after_ms(turn->now, DEEPEN_RETRY_MS));
    }
}

static bool deepen_is_shown(const struct hli_tenure *tenure, uint32_t count)
{
    return tenure->least_count == count && tenure->most_count == count;
}

bool hli_deepen_may_wait(const struct hli_tenure *tenure, uint32_t count)
{
    return tenure->shows_at != 0 || deepen_is_shown(tenure, count);
}

static void deepen_send(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                        const struct hli_taking *taking)
{
    const struct hli_kind *kind = turn->name->kind;
    bool asks_less = asking == HLI_ASKING_COUNT && tenure->most_count > taking->count;
    const struct hli_leaving leaving = {.count = taking->count, .lease_ms = taking->lease_ms};
    int rc = asks_less ? kind->leave(tenure, &tenure->ask, &leaving)
                       : kind->take(tenure, &tenure->ask, taking);

    if (rc < 0) {
        hli_turn_timer(turn, hli_after_ms(turn->now, HLI_NO_MEMORY_MS));
        return;
    }
    tenure->asked_count = taking->count;
    tenure->asks_less = asks_less;
    tenure->asked_lease_ms = taking->lease_ms;
    hli_ask_send(turn, tenure, asking);
}

/* A display: most nested calls are over before it would show them. While another request is in
 * flight its answer plans anew. */
void hli_deepen_show(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;
    const struct hli_taking taking = {
        .lease_ms = hold->is_watched
                        ? hold->watch_ms
                        : hli_ms_left(turn->now, tenure->valid_until) + 1, /* extends nothing */
        .count = hold->count,
    };

    tenure->shows_at = 0;
    if (tenure->state == HLI_TENURE_OWN && tenure->asking == HLI_ASKING_NOTHING &&
        !deepen_is_shown(tenure, hold->count))
        deepen_send(turn, tenure, HLI_ASKING_COUNT, &taking);
}

void hli_deepen_go(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (tenure->state != HLI_TENURE_OWN)
        return;
    if (tenure->deepener) {
        const struct hli_taking taking = {.lease_ms = tenure->deepener->lease_ms,
                                          .count = tenure->hold.count + 1};
        if (tenure->asking == HLI_ASKING_NOTHING)
            deepen_send(turn, tenure, HLI_ASKING_DEEPEN, &taking);
    } else if (!hli_deepen_may_wait(tenure, tenure->hold.count)) {
        tenure->shows_at = hli_after_ms(turn->now, DEEPEN_SHOW_MS);
        hli_turn_watch(turn, tenure, tenure->shows_at);
    }
}
