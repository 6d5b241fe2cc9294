/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Retiming: a hold between two leases. */
#include "lease/retime.h"

#include "lease/hold.h"
#include "lease/loss.h"
#include "lease/name.h"

static bool retime_is_live(const struct hli_tenure *tenure, hli_ns now)
{
    return tenure->state == HLI_TENURE_OWN && tenure->hold.is_accepted &&
           now < hli_hold_validity(tenure);
}

int hli_retime_begin(struct hli_turn *turn, struct hli_tenure *tenure, int64_t lease_ms,
                     struct hli_retiming *ret)
{
    struct hli_hold *hold = &tenure->hold;
    int64_t asked_ms = lease_ms > 0 ? lease_ms : tenure->name->client->settings.watchdog_timeout_ms;

    if (!retime_is_live(tenure, turn->now))
        return tenure->state == HLI_TENURE_DYING ? HL_ENOTOWNER : HL_ELOST;
    if (tenure->is_retimed)
        return HL_EINVAL;
    *ret = (struct hli_retiming){.tenure = tenure,
                                 .lease_ms = asked_ms,
                                 .is_watched = lease_ms == 0,
                                 .was_watched = hold->is_watched,
                                 .ended = hold->ends};
    hli_tenure_ref(tenure); /* the retiming's */
    tenure->is_retimed = true;
    hold->is_watched = false; /* a renewal now could be taken for the new lease, or undo it */
    hold->ends = hli_earlier(hli_hold_validity(tenure), hli_lease_validity(turn->now, asked_ms));
    if (tenure->longest_lease_ms < asked_ms)
        tenure->longest_lease_ms = asked_ms;
    hli_turn_watch(turn, tenure, hli_hold_due(tenure));
    return 0;
}

static void retime_succeeded(const struct hli_retiming *retiming, hli_ns sent_at)
{
    struct hli_tenure *tenure = retiming->tenure;
    struct hli_hold *hold = &tenure->hold;

    tenure->valid_until = hli_lease_validity(sent_at, retiming->lease_ms);
    tenure->valid_ms = retiming->lease_ms;
    tenure->renew_at = sent_at + HLI_MS(retiming->lease_ms) / 3;
    tenure->is_doubted = false;
    hold->is_watched = retiming->is_watched;
    hold->watch_ms = retiming->lease_ms;
    hold->ends = retiming->is_watched ? HLI_NEVER : tenure->valid_until;
}

/* It did not run: as it was before; what should have been renewed meanwhile is due. */
static void retime_undo(const struct hli_retiming *retiming, hli_ns now)
{
    struct hli_tenure *tenure = retiming->tenure;

    tenure->hold.is_watched = retiming->was_watched;
    tenure->hold.ends = retiming->ended;
    if (retiming->was_watched)
        tenure->renew_at = hli_earlier(tenure->renew_at, now);
}

void hli_retime_end(struct hli_retiming *retiming, int code, hli_ns sent_at)
{
    struct hli_tenure *tenure = retiming->tenure;
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    tenure->is_retimed = false;
    if (tenure->state == HLI_TENURE_OWN) {
        if (code == HL_OK)
            retime_succeeded(retiming, sent_at);
        else if (code == HL_ELOST || code == HL_ENOTOWNER)
            hli_loss_of_key(&turn, tenure);
        else if (code != HL_EUNKNOWN)
            retime_undo(retiming, turn.now);
    }
    if (tenure->state == HLI_TENURE_OWN)
        hli_turn_watch(&turn, tenure, hli_hold_due(tenure));
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the retiming's */
}
