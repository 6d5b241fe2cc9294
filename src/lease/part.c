/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Parts: what a gather does with one name, each in a turn of its own. */
#include "lease/part.h"

#include "lease/ask.h"
#include "lease/deepen.h"
#include "lease/hold.h"
#include "lease/release.h"

bool hli_part_look_at_outer(struct hli_name *name, const struct hl_owner *owner, bool *ret_is_lost)
{
    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *outer = owner ? hli_name_hold_of(name, owner) : NULL;
    *ret_is_lost =
        outer && (outer->state != HLI_TENURE_OWN || hli_now() >= hli_hold_validity(outer));
    pthread_mutex_unlock(&name->mutex);
    return outer != NULL;
}

static void part_let_go(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->hold.is_accepted = false; /* nobody was told of it: no event, no rest */
    if (tenure->state == HLI_TENURE_OWN)
        hli_hold_end(tenure, turn->now);
    if (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_LOST)
        hli_release_quietly(turn, tenure);
}

static void part_flatten(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (tenure->hold.count > 1)
        tenure->hold.count--;
    hli_deepen_go(turn, tenure);
}

void hli_part_give_back(struct hli_part *part)
{
    struct hli_tenure *tenure = part->acquire.got;
    struct hli_turn turn;

    hli_turn_begin(&turn, part->acquire.name);
    if (tenure && part->is_nested)
        part_flatten(&turn, tenure);
    else if (tenure)
        part_let_go(&turn, tenure);
    part->acquire.got = NULL;
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the call's */
    part->is_tamed = false;
    atomic_store(&part->state, HLI_PART_RESTS);
}

/* Of a nested call the reference on its hold goes with it. */
static struct hli_tenure *part_leave(struct hli_turn *turn, struct hli_part *part)
{
    struct hli_tenure *outer = part->acquire.got;

    part->acquire.got = NULL;
    atomic_store(&part->state, HLI_PART_RESTS);
    if (TAILQ_EMPTY(&turn->name->waiters))
        hli_ask_abandon(turn);
    return outer;
}

bool hli_part_leave(struct hli_part *part)
{
    struct hli_tenure *outer = NULL;
    struct hli_turn turn;

    hli_turn_begin(&turn, part->acquire.name);
    bool leaves = hli_acquire_leave(&turn, &part->acquire);
    if (leaves)
        outer = part_leave(&turn, part);
    hli_turn_end(&turn);
    hli_tenure_unref(outer);
    return leaves;
}

/* Not in one turn, for the answer has one of its own. Whoever joins in between asks by it. */
bool hli_part_leave_answered(struct hli_part *part, struct hli_op *op,
                             const struct hli_answer *answer)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, part->acquire.name);
    bool leaves = hli_acquire_leave(&turn, &part->acquire);
    hli_turn_end(&turn);
    op->done(op, answer);
    if (!leaves)
        return false;
    hli_turn_begin(&turn, part->acquire.name);
    part_leave(&turn, part);
    hli_turn_end(&turn);
    return true;
}

void hli_part_tame(struct hli_part *part, int64_t lease_ms)
{
    struct hli_turn turn;

    if (part->is_nested || part->is_tamed)
        return;
    part->is_tamed = true;
    hli_turn_begin(&turn, part->acquire.name);
    struct hli_tenure *tenure = part->acquire.got;
    if (tenure->state == HLI_TENURE_OWN) {
        tenure->hold.is_watched = true;
        tenure->hold.watch_ms = lease_ms;
        tenure->hold.ends = HLI_NEVER;
        hli_turn_watch(&turn, tenure, hli_hold_due(tenure));
    }
    hli_turn_end(&turn);
}

bool hli_part_is_valid(const struct hli_part *part)
{
    struct hli_name *name = part->acquire.name;

    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = part->acquire.got;
    bool is_valid = tenure->state == HLI_TENURE_OWN && hli_now() < hli_hold_validity(tenure);
    pthread_mutex_unlock(&name->mutex);
    return is_valid;
}

/* The lease time runs from now on; if the key's is shorter, a renewal makes it as long. */
static void part_untame(struct hli_tenure *tenure, int64_t lease_ms, hli_ns now)
{
    struct hli_hold *hold = &tenure->hold;

    hold->is_watched = false;
    hold->watch_ms = lease_ms;
    hold->ends = hli_lease_validity(now, lease_ms);
    if (hold->ends > tenure->valid_until)
        tenure->renew_at = now;
    tenure->is_doubted = hold->ends > tenure->valid_until || tenure->name->kind->is_kept_up;
}

/* One level of the owner's, whose times count from the moment in which it has all. */
static void part_begin_hold(struct hli_turn *turn, const struct hli_part *part,
                            const hl_acquire_options *options)
{
    struct hli_tenure *tenure = part->acquire.got;
    struct hli_hold *hold = &tenure->hold;

    if (part->is_tamed)
        part_untame(tenure, options->lease_ms, turn->now);
    hold->began = turn->now;
    if (options->max_hold_ms > 0)
        hold->leash = hli_after_ms(turn->now, options->max_hold_ms);
    if (options->min_hold_ms > 0)
        hold->rests_until = hli_after_ms(turn->now, options->min_hold_ms);
    hli_turn_watch(turn, tenure, hli_hold_due(tenure));
}

static bool part_accept(struct hli_part *part, const hl_acquire_options *options)
{
    struct hli_tenure *tenure = part->acquire.got;
    struct hli_turn turn;

    hli_turn_begin(&turn, part->acquire.name);
    bool accepts = tenure->state == HLI_TENURE_OWN && turn.now < hli_hold_validity(tenure);
    if (accepts) {
        tenure->hold.is_accepted = true;
        part_begin_hold(&turn, part, options);
    }
    hli_turn_end(&turn);
    return accepts;
}

/* Too late: its level has gone by that. */
static bool part_accept_nested(struct hli_part *part)
{
    if (hli_acquire_settle(&part->acquire) == HL_OK)
        return true;
    hli_tenure_unref(part->acquire.got);
    part->acquire.got = NULL;
    atomic_store(&part->state, HLI_PART_RESTS);
    return false;
}

bool hli_part_accept(struct hli_part *part, const hl_acquire_options *options)
{
    struct hli_counters *counters = &part->acquire.wait.client->counters;

    if (part->is_nested)
        return part_accept_nested(part);
    if (!part_accept(part, options))
        return false;
    hli_count(&counters->acquires);
    hli_histogram_add(&counters->wait, hli_now() - part->acquire.wait.started);
    return true;
}
