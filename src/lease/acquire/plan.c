/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The plan. */
#include "lease/acquire/plan.h"

#include "lease/acquire/ask.h"
#include "lease/acquire/wake.h"
#include "lease/hold/hold.h"
#include "lease/hold/keep.h"
#include "lease/hold/reenter.h"
#include "lease/hold/release.h"
#include "lease/hold/tag.h"
#include "lease/hold/watchdog.h"

/*
 * The order matters: a retained tenure goes to a waiter or ends, and so does a tenure without
 * waiters; its release is sent before another tenure asks; the hold's deadlines come when all of
 * that is known.
 */
static void plan_make(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    if (name->current && name->current->state == HLI_TENURE_IDLE)
        hli_keep_plan(turn);
    if (name->current && TAILQ_EMPTY(&name->waiters) && !name->current->hold.owner)
        hli_ask_abandon(turn);
    if (!TAILQ_EMPTY(&name->past))
        hli_release_plan(turn);
    if (!TAILQ_EMPTY(&name->waiters))
        hli_ask_plan(turn);
    struct hli_tenure *held = name->current && name->current->hold.owner ? name->current : NULL;
    if (held && held->state == HLI_TENURE_OWN && held->asking == HLI_ASKING_NOTHING &&
        (held->reentry || held->shows_at != 0 ||
         (!name->kind->has_no_count && !hli_tenure_shows(held, held->hold.count))))
        hli_reenter_plan(turn);
    if (held && held->tag)
        hli_tag_plan(turn);
    if (held)
        hli_turn_watch(turn, held, hli_hold_due(held));
    if (name->kind->quorum)
        name->kind->quorum->plan(turn);
    if (name->contention)
        hli_wake_plan(turn);
}

const struct hli_engine hli_engine = {
    .plan = plan_make,
    .answered = hli_ask_done,
    .watch = hli_watchdog_wake_by,
    .unwatch = hli_watchdog_remove,
    .free_watchdog = hli_watchdog_free,
    .on_message = hli_wake_on_message,
    .on_yield = hli_wake_on_yield,
    .on_confirmed = hli_wake_on_confirmed,
    .on_moved = hli_wake_on_moved,
    .on_timer = hli_wake_on_timer,
};
