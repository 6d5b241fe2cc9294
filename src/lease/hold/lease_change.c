/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Lease changes: the hold between its old and its new end. */
#include "lease/hold/lease_change.h"

#include "base/check.h"
#include "lease/hold/hold.h"
#include "lease/hold/loss.h"
#include "lease/state/grace.h"
#include "lease/state/notice.h"

/* The sooner end counts from now on, and no renewal is begun: it could undo the new lease. */
static void lease_change_shorten(struct hli_tenure *tenure, hli_ns ends)
{
    tenure->hold.is_watched = false;
    tenure->hold.ends = hli_earlier(hli_hold_validity(tenure), ends);
}

int hli_lease_change_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                           struct hli_lease_change *change)
{
    const struct hli_hold *hold = &tenure->hold;

    if (tenure->state == HLI_TENURE_OWN && tenure->is_lease_changing)
        return HL_EINVAL;
    if (!hold->is_accepted || !hli_hold_is_valid(tenure, turn->now))
        return tenure->state >= HLI_TENURE_RELEASING ? HL_ENOTOWNER : HL_ELOST;
    if (tenure->is_final && change->how != HLI_LEASE_RETURN)
        return HL_ESERVER;
    hli_tenure_ref(tenure); /* the change's */
    change->tenure = tenure;
    change->was_watched = hold->is_watched;
    change->ended = hold->ends;
    change->replicas = hold->is_kept_anyway ? 0 : hold->replicas;
    tenure->is_lease_changing = true;
    tenure->is_returned = change->how == HLI_LEASE_RETURN;
    if (change->how == HLI_LEASE_SET)
        lease_change_shorten(tenure, hli_lease_validity(turn->now, change->lease_ms));
    if (tenure->longest_lease_ms < change->lease_ms)
        tenure->longest_lease_ms = change->lease_ms;
    return 0;
}

static void lease_change_succeeded(struct hli_turn *turn, const struct hli_lease_change *change,
                                   hli_ns sent_at)
{
    struct hli_tenure *tenure = change->tenure;
    struct hli_hold *hold = &tenure->hold;
    bool is_always_renewed = tenure->name->kind->is_always_renewed && !change->is_watched;
    int64_t watchdog_ms = tenure->name->client->settings.watchdog_timeout_ms;

    if (change->how == HLI_LEASE_SET)
        tenure->valid_until = 0;
    hli_tenure_extend(tenure, sent_at, change->lease_ms, change->replicas, change->term);
    bool is_older = tenure->doubted_at >= sent_at; /* than news, of which it cannot tell */
    tenure->renew_at = sent_at + HLI_MS(is_always_renewed ? watchdog_ms : change->lease_ms) / 3;
    if (is_older)
        tenure->renew_at = turn->now;
    tenure->is_doubted = is_always_renewed || is_older;
    hold->is_watched = change->is_watched;
    hold->watch_ms = change->lease_ms;
    hold->ends = change->is_watched ? HLI_NEVER : hli_lease_validity(sent_at, change->lease_ms);
    if (tenure->in_jeopardy)
        hli_notice_warning(turn, tenure, HL_EVENT_SAFE);
    tenure->in_jeopardy = false;
}

/* Restores the hold's end; a renewal that was left out meanwhile is due now. */
static void lease_change_undo(struct hli_turn *turn, const struct hli_lease_change *change)
{
    struct hli_tenure *tenure = change->tenure;

    tenure->hold.is_watched = change->was_watched;
    tenure->hold.ends = change->ended;
    tenure->renew_at = hli_earlier(tenure->renew_at, turn->now);
}

/* The server has the new lease, which may end sooner than the one before. */
static void lease_change_note_run(const struct hli_lease_change *change, hli_ns sent_at)
{
    struct hli_tenure *tenure = change->tenure;

    if (change->how == HLI_LEASE_SET)
        tenure->valid_until =
            hli_earlier(tenure->valid_until, hli_lease_validity(sent_at, change->lease_ms));
}

/* Ends a hold that was given back; if that is not certain, a release of its own finds out. */
static void lease_change_let_go(struct hli_turn *turn, struct hli_tenure *tenure, bool is_certain)
{
    hli_releasing_begin(turn, tenure);
    tenure->is_release_unsure = true;
    if (is_certain)
        hli_releasing_end(turn, tenure);
}

/* Ends the change of a hold that is OWN. */
static int lease_change_settle(struct hli_turn *turn, const struct hli_lease_change *change,
                               int code, hli_ns sent_at)
{
    struct hli_tenure *tenure = change->tenure;

    if (change->how == HLI_LEASE_RETURN && (code == HL_OK || code == HL_EINDOUBT)) {
        lease_change_let_go(turn, tenure, code == HL_OK);
        return code;
    }
    if (code == HL_ELOST || code == HL_ENOENT) {
        hli_loss_declare(turn, tenure, "gone");
        return code;
    }
    if (code < 0 && code != HL_EINDOUBT && change->how != HLI_LEASE_EXTEND)
        lease_change_undo(turn, change);
    if (change->is_unconfirmed)
        lease_change_note_run(change, sent_at);
    if (hli_loss_by_time(turn, tenure))
        return HL_ELOST; /* a hold that is over does not come back, whatever the answer says */
    if (code == HL_OK)
        lease_change_succeeded(turn, change, sent_at);
    return code;
}

int hli_lease_change_end(struct hli_lease_change *change, int code, hli_ns sent_at)
{
    struct hli_tenure *tenure = change->tenure;
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    tenure->is_lease_changing = tenure->is_returned = false;
    if (tenure->state == HLI_TENURE_OWN)
        code = lease_change_settle(&turn, change, code, sent_at);
    else if (tenure->state == HLI_TENURE_LOST && change->how != HLI_LEASE_RETURN)
        code = HL_ELOST;
    hli_turn_end(&turn);
    change->tenure = NULL;
    hli_tenure_unref(tenure); /* the change's */
    return code;
}

bool hli_lease_change_is_early(const struct hli_lease_change *change)
{
    struct hli_tenure *tenure = change->tenure;

    if (!tenure)
        return false;
    hli_mutex_lock(&tenure->name->mutex);
    bool is_renewed_first = change->how == HLI_LEASE_SET && tenure->is_renewing;
    /* What is given back is brought into the new term first: then the server has it. */
    bool is_brought = change->how != HLI_LEASE_RETURN || !tenure->is_final;
    bool is_early = is_renewed_first ||
                    (!hli_grace_is_met(tenure) && is_brought && tenure->state == HLI_TENURE_OWN &&
                     hli_now() < hli_hold_validity(tenure));
    hli_mutex_unlock(&tenure->name->mutex);
    return is_early;
}

void hli_lease_update_settle(struct hli_call *call, int code)
{
    struct hli_lease_change *change = &HLI_OF(call, struct hli_lease_update, call)->change;

    if (!change->tenure)
        return;
    change->is_unconfirmed = call->is_unconfirmed;
    change->term = call->op.term;
    int ended = hli_lease_change_end(change, code, call->op.sent_at);
    if (ended != code)
        hli_call_overrule(call, ended, hl_err_text(ended));
}
