/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Members: the steps of an acquire-all on one name, each in a turn of its own. */
#include "lease/several/member.h"

#include "base/check.h"
#include "lease/acquire/ask.h"
#include "lease/hold/hold.h"
#include "lease/hold/reenter.h"
#include "lease/several/acquire_all.h"
#include "lease/state/contention.h"

#include <string.h>

bool hli_member_check_outer(struct hli_name *name, const struct hl_owner *owner, bool *ret_is_lost)
{
    hli_mutex_lock(&name->mutex);
    const struct hli_tenure *outer = hli_name_hold_of(name, owner);
    *ret_is_lost = outer && !hli_hold_is_valid(outer, hli_now());
    hli_mutex_unlock(&name->mutex);
    return outer != NULL;
}

static void member_let_go(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->hold.is_accepted = false; /* it was never reported: no event, no rest */
    if (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_LOST)
        hli_releasing_begin(turn, tenure);
}

void hli_member_give_back(struct hli_member *member)
{
    struct hli_tenure *tenure = member->acquire.got;
    struct hli_turn turn;

    hli_turn_begin(&turn, member->acquire.name);
    if (tenure && member->is_nested)
        hli_reenter_undo(tenure, &member->acquire);
    else if (tenure)
        member_let_go(&turn, tenure);
    member->acquire.got = NULL;
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the call's */
    member->is_kept_alive = false;
    atomic_store(&member->state, HLI_MEMBER_NEW);
}

bool hli_member_withdraw(struct hli_member *member, struct hli_op *op,
                         const struct hli_answer *answer)
{
    struct hli_tenure *tenure = op ? HLI_PART_OF(op, struct hli_tenure, ask) : NULL, *outer = NULL;
    struct hli_turn turn;

    hli_turn_begin(&turn, member->acquire.name);
    bool leaves = hli_acquire_withdraw(&turn, &member->acquire);
    if (leaves) {
        outer = member->acquire.got;
        member->acquire.got = NULL;
        atomic_store(&member->state, HLI_MEMBER_NEW);
    }
    if (tenure)
        hli_ask_answered(&turn, tenure, answer);
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the op's */
    hli_tenure_unref(outer);  /* a nested call's */
    if (leaves)
        hli_async_unref(&member->all->async); /* the member's */
    return leaves;
}

void hli_member_keep_alive(struct hli_member *member, int64_t lease_ms)
{
    struct hli_turn turn;

    if (member->is_nested || member->is_kept_alive)
        return;
    member->is_kept_alive = true;
    hli_turn_begin(&turn, member->acquire.name);
    struct hli_tenure *tenure = member->acquire.got;
    if (tenure->state == HLI_TENURE_OWN) {
        tenure->hold.is_watched = true;
        tenure->hold.watch_ms = lease_ms;
        tenure->hold.ends = HLI_NEVER;
    }
    hli_turn_end(&turn);
}

bool hli_member_may_share(const struct hli_member *member)
{
    const struct hli_acquire *acquire = &member->acquire;

    return !member->is_nested && acquire->name->kind->acquire_all && !acquire->mode.is_fenced &&
           acquire->mode.backoff_ms == 0;
}

bool hli_member_is_twin_of(const struct hli_member *member, const struct hli_member *other)
{
    struct hli_name *name = member->acquire.name;
    char field[HLI_FIELD_SIZE];

    if (!hli_member_is_held(other) || !other->acquire.got)
        return false;
    hli_tenure_field(other->acquire.got, field);
    hli_mutex_lock(&name->mutex);
    bool is_twin = name->contention && strcmp(name->contention->busy.info.owner, field) == 0;
    hli_mutex_unlock(&name->mutex);
    return is_twin;
}

void hli_member_forget(struct hli_member *member)
{
    hli_tenure_unref(member->acquire.got);
    member->acquire.got = NULL;
    atomic_store(&member->state, HLI_MEMBER_NEW);
}

bool hli_member_is_valid(const struct hli_member *member)
{
    struct hli_name *name = member->acquire.name;

    hli_mutex_lock(&name->mutex);
    bool is_valid = hli_hold_is_valid(member->acquire.got, hli_now());
    hli_mutex_unlock(&name->mutex);
    return is_valid;
}

/* The lease time runs from now on; if the key's is shorter, a renewal makes it as long. */
static void member_stop_keep_alive(struct hli_tenure *tenure, int64_t lease_ms, hli_ns now)
{
    struct hli_hold *hold = &tenure->hold;

    hold->is_watched = false;
    hold->watch_ms = lease_ms;
    hold->ends = hli_lease_validity(now, lease_ms);
    if (hold->ends > tenure->valid_until)
        tenure->renew_at = now;
    tenure->is_doubted = hold->ends > tenure->valid_until || tenure->name->kind->is_always_renewed;
}

/* Starts the hold's times: they count from the moment at which the owner has all names. */
static void member_begin_hold(struct hli_turn *turn, const struct hli_member *member,
                              const hl_acquire_options *options)
{
    struct hli_tenure *tenure = member->acquire.got;
    struct hli_hold *hold = &tenure->hold;

    if (member->is_kept_alive)
        member_stop_keep_alive(tenure, options->lease_ms, turn->now);
    hold->began = turn->now;
    if (options->max_hold_ms > 0)
        hold->max_hold_at = hli_after_ms(turn->now, options->max_hold_ms);
    if (options->min_hold_ms > 0)
        hold->min_hold_until = hli_after_ms(turn->now, options->min_hold_ms);
}

static bool member_accept(struct hli_member *member, const hl_acquire_options *options)
{
    struct hli_tenure *tenure = member->acquire.got;
    struct hli_turn turn;

    hli_turn_begin(&turn, member->acquire.name);
    bool accepts = hli_hold_is_valid(tenure, turn.now);
    if (accepts) {
        tenure->hold.is_accepted = true;
        member_begin_hold(&turn, member, options);
    }
    hli_turn_end(&turn);
    return accepts;
}

/* False: too late, and its level is undone. */
static bool member_accept_nested(struct hli_member *member)
{
    if (hli_acquire_settle(&member->acquire) == HL_OK)
        return true;
    hli_tenure_unref(member->acquire.got);
    member->acquire.got = NULL;
    atomic_store(&member->state, HLI_MEMBER_NEW);
    return false;
}

bool hli_member_accept(struct hli_member *member, const hl_acquire_options *options)
{
    struct hli_counters *counters = &member->acquire.wait.client->counters;

    if (member->is_nested)
        return member_accept_nested(member);
    if (!member_accept(member, options))
        return false;
    hli_count(&counters->acquires);
    hli_histogram_add(&counters->wait, hli_now() - member->acquire.wait.started);
    return true;
}
