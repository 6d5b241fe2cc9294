/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Losing a hold: by the clock, by word of the server, or because its thread has gone. */
#include "lease/loss.h"

#include "base/check.h"
#include "lease/acquire.h"
#include "lease/ask.h"
#include "lease/deepen.h"
#include "lease/hold.h"
#include "lease/notice.h"
#include "lease/release.h"
#include "lease/renewal.h"
#include "lease/tag.h"

enum { LOSS_SLACKS = 300 }; /* in a lease */

static void loss_of_level(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (tenure->deepener)
        hli_acquire_fail(turn, tenure->deepener, HL_ELOST,
                         "the outer hold ended before its release");
}

void hli_loss_declare(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason)
{
    struct hli_name *name = turn->name;

    HLI_CHECK(name->current == tenure);
    loss_of_level(turn, tenure);
    hli_hold_end(tenure, turn->now);
    /* A renewal may be in flight: the key can stand for a whole lease from now. */
    tenure->give_up_at =
        hli_after_ms(hli_later(tenure->valid_until, turn->now), tenure->longest_lease_ms) +
        hli_lease_margin(tenure->longest_lease_ms);
    hli_tenure_move(tenure, HLI_TENURE_LOST);
    name->current = NULL;
    TAILQ_INSERT_TAIL(&name->past, tenure, link);
    hli_turn_unwatch(turn, tenure);
    if (tenure->hold.is_accepted) {
        hli_count(&name->client->counters.losses);
        hli_notice_loss(turn, tenure, reason);
    }
    if (name->kind->is_forgotten)
        hli_turn_timer(turn, tenure->give_up_at);
    hli_ask_go(turn); /* others of this process contend, with a field of their own */
}

/* Of one that lingers nobody is told; its release takes away what a late command may have left. */
static void loss_of_tenure(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason)
{
    if (tenure->state == HLI_TENURE_OWN) {
        hli_loss_declare(turn, tenure, reason);
        return;
    }
    hli_release_quietly(turn, tenure);
    hli_ask_go(turn);
}

void hli_loss_of_key(struct hli_turn *turn, struct hli_tenure *tenure)
{
    loss_of_tenure(turn, tenure, "gone");
}

bool hli_loss_by_time(struct hli_turn *turn, struct hli_tenure *tenure)
{
    bool is_over = turn->now >= hli_hold_validity(tenure);

    if (is_over)
        loss_of_tenure(turn, tenure, "expired");
    return is_over;
}

/* The thread has ended inside its hold: what it guarded is in an unknown state, so the key is left
 * to its lease, unless the user says otherwise. Its lost tenure stays until then, or its key would
 * look like a ghost's. */
static void loss_abandon(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (turn->name->client->settings.flags & HL_CLIENT_RELEASE_ON_THREAD_EXIT) {
        hli_hold_end(tenure, turn->now);
        hli_release_quietly(turn, tenure);
        hli_ask_go(turn);
        return;
    }
    hli_loss_declare(turn, tenure, "thread exit");
    hli_turn_timer(turn, tenure->give_up_at);
}

/* The clock's verdict alone; true when the tenure is no longer OWN. */
static bool loss_by_clock(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;

    if (atomic_load(&hold->owner->has_exited))
        loss_abandon(turn, tenure);
    else if (turn->now >= hli_hold_validity(tenure))
        hli_loss_declare(turn, tenure, "expired");
    else if (turn->now >= hold->leash)
        hli_loss_declare(turn, tenure, "max_hold");
    return tenure->state != HLI_TENURE_OWN;
}

static void loss_warn(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (!hli_hold_is_warned(tenure) || turn->now < hli_hold_jeopardy_at(tenure))
        return;
    tenure->in_jeopardy = true;
    hli_notice_warning(turn, tenure, HL_EVENT_JEOPARDY);
}

/* A hold that has a lease time of its own is asked about, and not extended. */
static void loss_begin_renewal(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;

    tenure->is_renewing = true;
    tenure->renew_lease_ms =
        hold->is_watched ? hold->watch_ms
                         : hli_ms_left(turn->now, hli_later(tenure->valid_until, hold->ends)) + 1;
}

/* Kept for nobody for long enough, or for as long as is safe. */
static void loss_look_at_idle(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (turn->now < hli_hold_due(tenure))
        return;
    hli_release_quietly(turn, tenure);
    hli_ask_go(turn);
}

/* All renewals that are due soon go together; a short lease's "soon" is shorter. */
static bool loss_is_renewal_due(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    hli_ns slack = hli_earlier(hli_renewal_slack(tenure->name->client),
                               HLI_MS(tenure->valid_ms) / LOSS_SLACKS);
    hli_ns planned = hli_later(tenure->renew_at - tenure->hold.began, 0); /* short for a grant */

    return (hli_hold_is_renewed(tenure) || tenure->is_doubted) && !tenure->is_renewing &&
           turn->now + hli_earlier(slack, planned / 4) >= tenure->renew_at;
}

hli_ns hli_loss_look(struct hli_tenure *tenure, bool *ret_renew)
{
    struct hli_turn turn;
    hli_ns due = HLI_NEVER;

    *ret_renew = false;
    hli_turn_begin(&turn, tenure->name);
    if (tenure->state == HLI_TENURE_IDLE)
        loss_look_at_idle(&turn, tenure);
    else if (tenure->state == HLI_TENURE_OWN && !loss_by_clock(&turn, tenure)) {
        loss_warn(&turn, tenure);
        if (tenure->shows_at != 0 && turn.now >= tenure->shows_at)
            hli_deepen_show(&turn, tenure);
        hli_tag_look(&turn, tenure);
        *ret_renew = loss_is_renewal_due(&turn, tenure);
        if (*ret_renew)
            loss_begin_renewal(&turn, tenure);
    }
    if (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_IDLE)
        due = tenure->told_due = hli_hold_due(tenure);
    hli_turn_end(&turn);
    return due;
}
