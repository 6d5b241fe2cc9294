/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Losing a hold: by the clock, by word of the server, or because its thread has gone. */
#include "lease/hold/loss.h"

#include "base/check.h"
#include "base/probe.h"
#include "lease/hold/hold.h"
#include "lease/state/grace.h"
#include "lease/state/notice.h"
#include "lease/state/waiters.h"

#include <stdio.h>
#include <string.h>

/* The reason of the event as the end of a sentence. */
static const char *loss_in_words(const char *reason)
{
    static const struct {
        const char *reason, *words;
    } words[] = {
        {"expired", "its lease ran out"},
        {"gone", "its key was found gone"},
        {"max_hold", "its max_hold_ms was over"},
        {"thread exit", "its thread ended"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i].reason, reason) == 0)
            return words[i].words;
    return reason;
}

void hli_loss_write(const struct hli_tenure *tenure, hli_ns now, const char *advice,
                    char text[HLI_LOSS_SIZE])
{
    char when[48] = "";

    if (tenure->lost_at != 0)
        snprintf(when, sizeof(when), " (%s %.1f s ago)", loss_in_words(tenure->loss.reason),
                 (double)(now - tenure->lost_at) / 1e9);
    snprintf(text, HLI_LOSS_SIZE, "the hold ended before its release%s%s", when, advice);
}

void hli_loss_fail(struct hli_turn *turn, struct hli_acquire *acquire,
                   const struct hli_tenure *tenure)
{
    char text[HLI_LOSS_SIZE];

    hli_loss_write(tenure, turn->now, HLI_LOSS_ADVICE, text);
    hli_waiters_fail(turn, acquire, HL_ELOST, text);
}

/* Has the hold's lease time ended while its key may stand for longer? A nested call may have got a
 * longer lease; the other half of a read-write lock may prolong the key. */
static bool loss_leaves_a_key(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;
    const struct hli_kind *kind = turn->name->kind;

    return turn->now >= hold->ends && !kind->is_forgotten && !kind->quorum &&
           (tenure->valid_until > hold->ends || tenure->longest_lease_ms > hold->watch_ms ||
            kind->sibling);
}

/* Has max_hold ended a hold that stands in a key which its owner's other half may prolong? A
 * reader's levels have keys of their own, which expire. */
static bool loss_leaves_a_field(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    const struct hli_kind *kind = turn->name->kind;

    return kind->sibling && !kind->is_per_owner && turn->now >= tenure->hold.max_hold_at;
}

void hli_loss_declare(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason)
{
    struct hli_name *name = turn->name;

    HLI_CHECK(name->current == tenure);
    if (tenure->state == HLI_TENURE_IDLE) {
        hli_releasing_begin(turn, tenure);
        return;
    }
    bool leaves_a_key = loss_leaves_a_key(turn, tenure);
    tenure->lost_at =
        hli_earlier(turn->now, hli_earlier(hli_hold_validity(tenure), tenure->hold.max_hold_at));
    bool leaves_a_field = !leaves_a_key && loss_leaves_a_field(turn, tenure);
    hli_ns valid_until = tenure->valid_until;
    tenure->loss.reason = reason;
    if (tenure->reentry)
        hli_loss_fail(turn, tenure->reentry, tenure);
    hli_hold_end(tenure, turn->now);
    /* A renewal may be in flight: the key can stand for a whole lease from now. */
    tenure->give_up_at =
        hli_after_ms(hli_later(tenure->valid_until, turn->now), tenure->longest_lease_ms) +
        hli_lease_margin(tenure->longest_lease_ms);
    hli_tenure_move(tenure, HLI_TENURE_LOST);
    name->current = NULL;
    TAILQ_INSERT_TAIL(&name->past, tenure, link);
    hli_turn_unwatch(turn, tenure);
    if (name->kind->changed) {
        hli_turn_change(turn, tenure, 0);
    } else if (tenure->hold.is_accepted) {
        hli_count(&name->client->counters.losses);
        HLI_PROBE2(lost, name->bytes, reason);
        hli_notice_loss(turn, tenure, reason);
    }
    if (name->kind->quorum)
        name->kind->quorum->lost(tenure);
    if (leaves_a_key) /* its owner's release comes later */
        hli_releasing_orphan(turn, tenure->number);
    else if (leaves_a_field)
        hli_releasing_orphan_at(turn, tenure->number, valid_until);
}

bool hli_loss_by_time(struct hli_turn *turn, struct hli_tenure *tenure)
{
    bool is_over = turn->now >= hli_hold_validity(tenure) && !tenure->is_returned;

    if (is_over)
        hli_loss_declare(turn, tenure, "expired");
    return is_over;
}

/* The thread has ended inside its hold, so the guarded data is in an unknown state: the key stays
 * until its lease is over, unless the user set HL_CLIENT_RELEASE_ON_THREAD_EXIT. The lost tenure
 * stays as long, or its key would look like an orphan. */
static void loss_abandon(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (turn->name->client->settings.flags & HL_CLIENT_RELEASE_ON_THREAD_EXIT)
        hli_releasing_begin(turn, tenure);
    else
        hli_loss_declare(turn, tenure, "thread exit");
}

/* Judges the hold by the clock alone; true when there is nothing left to warn of, or to renew. */
static bool loss_by_clock(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;

    if (tenure->is_returned) /* the answer will tell what became of it */
        return hli_grace_is_met(tenure) || turn->now >= hli_hold_validity(tenure);
    if (!hold->owner->client && atomic_load(&hold->owner->has_exited))
        loss_abandon(turn, tenure);
    else if (turn->now >= hli_hold_validity(tenure))
        hli_loss_declare(turn, tenure, "expired");
    else if (turn->now >= hold->max_hold_at)
        hli_loss_declare(turn, tenure, "max_hold");
    return tenure->state != HLI_TENURE_OWN;
}

static void loss_warn(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (!hli_hold_is_warned(tenure) || turn->now < hli_hold_jeopardy_at(tenure))
        return;
    tenure->in_jeopardy = true;
    hli_count(&turn->name->client->counters.jeopardies);
    HLI_PROBE2(jeopardy, turn->name->bytes, tenure->valid_until - turn->now);
    hli_notice_warning(turn, tenure, HL_EVENT_JEOPARDY);
}

/* For a hold with a lease time the renewal only checks that the key is there; it does not extend.
 * A hold by a grant may last for longer than the watchdog's lease: what a reclaim writes lasts as
 * long as its hold is believed in. */
static int64_t loss_lease_ms(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;
    hli_ns until = hli_later(tenure->valid_until, hold->is_watched ? 0 : hold->ends);
    int64_t left_ms = hli_ms_left(turn->now, until) + 1;

    return hold->is_watched && (left_ms < hold->watch_ms || hli_grace_is_met(tenure))
               ? hold->watch_ms
               : left_ms;
}

static void loss_begin_renewal(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->is_renewing = true;
    tenure->renew_lease_ms = loss_lease_ms(turn, tenure);
}

/* All renewals that are due soon go together; a short lease's "soon" is shorter. */
static bool loss_is_renewal_due(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    hli_ns slack = hli_earlier(hli_lease_slack(tenure->name->client->settings.watchdog_timeout_ms),
                               hli_lease_slack(tenure->valid_ms));
    hli_ns planned = hli_later(tenure->renew_at - tenure->hold.began, 0); /* short for a grant */

    return hli_hold_is_renewed(tenure) && !tenure->is_renewing &&
           turn->now + hli_earlier(slack, planned / 4) >= tenure->renew_at;
}

bool hli_loss_check(struct hli_tenure *tenure)
{
    struct hli_turn turn;
    bool renew = false;

    hli_turn_begin(&turn, tenure->name);
    tenure->visit_at = HLI_NEVER; /* the turn's end tells the watchdog anew */
    if (tenure->state == HLI_TENURE_OWN && !loss_by_clock(&turn, tenure)) {
        if (!tenure->is_returned)
            loss_warn(&turn, tenure);
        renew = loss_is_renewal_due(&turn, tenure);
        if (renew)
            loss_begin_renewal(&turn, tenure);
    }
    hli_turn_end(&turn);
    return renew;
}
