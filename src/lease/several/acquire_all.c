/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire-all: its steps. Each event of a member ends in hli_acquire_all_kick(), which calls
 * acquire_all_step(); that derives the next action from the state of all members. While the call
 * waits for a member, only the members before `next` are held; others that a batch took are given
 * back.
 */
#include "lease/several/acquire_all.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/state/command.h"

static void acquire_all_step(struct hli_acquire_all *all);

void hli_acquire_all_kick(struct hli_acquire_all *all)
{
    unsigned pending = 1;

    if (atomic_fetch_add(&all->kicks, 1) > 0)
        return;
    do {
        acquire_all_step(all);
        pending = atomic_fetch_sub(&all->kicks, pending) - pending;
    } while (pending > 0);
}

static void acquire_all_part_finished(struct hli_wait *wait)
{
    struct hli_member *member =
        HLI_PART_OF(HLI_PART_OF(wait, struct hli_acquire, wait), struct hli_member, acquire);
    struct hli_acquire_all *all = member->all;

    atomic_store(&member->state, HLI_MEMBER_DONE);
    hli_acquire_all_kick(all);
    hli_async_unref(&all->async); /* the member's */
}

static void acquire_all_end(struct hli_acquire_all *all, int code)
{
    if (all->blocked.acquire)
        hli_blocked_end(&all->blocked);
    all->wait.code = code;
    atomic_store(&all->is_over, true);
    hli_wait_wake(&all->wait); /* from here on the call's own thread goes on */
    if (all->span)
        hli_span_drop(all->span); /* the run's */
}

bool hli_acquire_all_give_back(struct hli_acquire_all *all, size_t from, size_t end)
{
    bool is_quiet = true;

    for (size_t i = end; i-- > from;) {
        struct hli_member *member = all->at[i];
        if (hli_member_state_of(member) == HLI_MEMBER_ASKS)
            is_quiet = hli_member_withdraw(member, NULL, NULL) && is_quiet;
        else if (hli_member_is_held(member))
            hli_member_give_back(member);
    }
    return is_quiet;
}

void hli_acquire_all_stop(struct hli_acquire_all *all)
{
    if (hli_acquire_all_give_back(all, 0, all->count))
        acquire_all_end(all, all->stop_code);
}

static void acquire_all_fail(struct hli_acquire_all *all, const struct hli_member *member)
{
    bool is_twin = all->span && hli_member_code(member) != HL_ECANCELED &&
                   hli_acquire_all_has_twin(all, member);

    if (!is_twin) {
        all->stop_code = hli_member_code(member);
        if (all->wait.err)
            *all->wait.err = member->err;
    }
    hli_acquire_all_stop(all);
}

/* The first member of the batch that has failed, or NULL. */
static struct hli_member *acquire_all_find_failed(struct hli_acquire_all *all)
{
    for (size_t i = all->next; i < all->batch_end; i++)
        if (hli_member_has_failed(all->at[i]))
            return all->at[i];
    return NULL;
}

static void acquire_all_skip_held(struct hli_acquire_all *all, size_t end)
{
    while (all->next < end && hli_member_is_held(all->at[all->next]))
        all->next++;
}

/* All answers of a batch are handed out. A member may ask again nevertheless (its answer came too
 * late): then the members behind it are given back. False: the result of one of those is about to
 * be reported. */
static bool acquire_all_trim(struct hli_acquire_all *all)
{
    acquire_all_skip_held(all, all->batch_end);
    if (all->next < all->batch_end && !all->is_strict) {
        hli_acquire_all_be_strict(all);
        acquire_all_skip_held(all, all->batch_end);
    }
    bool is_trimmed = hli_acquire_all_give_back(all, all->next + 1, all->batch_end);
    if (is_trimmed)
        atomic_store(&all->batch_state, HLI_BATCH_NONE);
    return is_trimmed;
}

/* True when no batch is under way, so that the next member may begin. */
static bool acquire_all_is_settled(struct hli_acquire_all *all)
{
    int state = atomic_load(&all->batch_state);

    if (state == HLI_BATCH_NONE || state == HLI_BATCH_TELLING)
        return state == HLI_BATCH_NONE;
    const struct hli_member *failed = acquire_all_find_failed(all);
    if (failed)
        acquire_all_fail(all, failed);
    return !failed && state == HLI_BATCH_DONE && acquire_all_trim(all);
}

/* Lease times do not run while the call waits: until it returns, the watchdog renews its holds. The
 * lease is at least a claim, so that a granted process has time to come, and at most the watchdog's
 * lease. */
static int64_t acquire_all_alive_ms(const struct hli_acquire_all *all, const hl_client *client)
{
    int64_t claim_ms = hli_command_claim_ms(client);
    int64_t lease_ms = all->options.lease_ms > claim_ms ? all->options.lease_ms : claim_ms;

    return lease_ms > client->settings.watchdog_timeout_ms ? client->settings.watchdog_timeout_ms
                                                           : lease_ms;
}

static void acquire_all_keep_alive(struct hli_acquire_all *all)
{
    if (all->options.lease_ms == 0)
        return;
    for (size_t i = 0; i < all->next; i++) {
        struct hli_member *member = all->at[i];
        hli_member_keep_alive(member, acquire_all_alive_ms(all, member->acquire.name->client));
    }
}

/* A request that was begun, and is not sent after all. */
static const struct hli_answer acquire_all_unsent = {
    .verdict = HLI_BOUNCED, .code = HL_ENOMEM, .text = "not sent"};

static void acquire_all_part_asks(struct hli_acquire_all *all, struct hli_member *member)
{
    hli_async_ref(&all->async); /* the member's */
    member->acquire.wait.finished = acquire_all_part_finished;
    atomic_store(&member->state, HLI_MEMBER_ASKS);
}

/* Begins a member whose first request can go out now, and returns the request. NULL: there is no
 * request; the member asks without memory for one, or was not begun. */
static struct hli_op *acquire_all_begin_together(struct hli_acquire_all *all,
                                                 struct hli_member *member)
{
    struct hli_op *op = NULL;

    acquire_all_part_asks(all, member);
    if (!hli_acquire_start_together(&member->acquire, &op)) {
        atomic_store(&member->state, HLI_MEMBER_NEW);
        hli_async_unref(&all->async); /* the member's */
    }
    return op;
}

/* A further member of the batch takes the lane of the first, whose connection the request takes.
 * Another call may have sent it elsewhere before it has begun. */
static bool acquire_all_joins_lane(struct hli_acquire_all *all, struct hli_member *member)
{
    const struct hli_name *first = all->at[all->next]->acquire.name;

    hli_name_join_lane(member->acquire.name, first);
    return hli_name_shares_lane(member->acquire.name, first);
}

/* Collects the requests of as many members as can ask now, from `next` on. */
static void acquire_all_collect(struct hli_acquire_all *all)
{
    struct hli_batch *batch = &all->batch;
    struct hli_op *op;

    batch->count = 0;
    for (size_t i = all->next; i < all->count; i++) {
        struct hli_member *member = all->at[i];
        if (i > all->next &&
            (all->alone || !hli_member_may_share(member) || !acquire_all_joins_lane(all, member)))
            return;
        if (member->is_nested || !(op = acquire_all_begin_together(all, member))) {
            if (i > all->next && hli_member_state_of(member) == HLI_MEMBER_ASKS)
                hli_member_withdraw(member, NULL, NULL);
            return;
        }
        if (!acquire_all_joins_lane(all, member)) {
            hli_member_withdraw(member, op, &acquire_all_unsent);
            return;
        }
        batch->ops[batch->count++] = op;
        if (all->alone || !hli_member_may_share(member))
            return;
    }
}

static void acquire_all_send_first(struct hli_acquire_all *all)
{
    hli_link_send(hli_name_link(all->at[all->next]->acquire.name), all->batch.ops[0]);
}

/* A member without a reply of its own is withdrawn, unless it is the kept one. */
static void acquire_all_tell(struct hli_batch *batch, size_t index, const struct hli_answer *answer,
                             bool kept)
{
    struct hli_acquire_all *all = HLI_OF(batch, struct hli_acquire_all, batch);
    struct hli_member *member = all->at[all->batch_end - batch->count + index];
    struct hli_answer own = *answer;

    atomic_store(&all->batch_state, HLI_BATCH_TELLING);
    if (answer->verdict == HLI_FAILED) {
        all->alone = true;
        own.verdict = kept ? HLI_BOUNCED : HLI_REFUSED; /* asks alone; or may be in Redis */
    }
    if (own.verdict == HLI_REPLIED || kept)
        batch->ops[index]->done(batch->ops[index], &own);
    else
        hli_member_withdraw(member, batch->ops[index], &own);
}

static void acquire_all_answered(struct hli_batch *batch)
{
    struct hli_acquire_all *all = HLI_OF(batch, struct hli_acquire_all, batch);

    atomic_store(&all->batch_state, HLI_BATCH_DONE);
    hli_acquire_all_kick(all);
    hli_async_unref(&all->async); /* the batch's */
}

/* Makes the next step in the strict order, and gives back what the call has out of it. */
static void acquire_all_go_on_strictly(struct hli_acquire_all *all)
{
    hli_acquire_all_be_strict(all);
    atomic_store(&all->batch_state, HLI_BATCH_DONE);
    hli_acquire_all_kick(all);
}

/* Without memory for the batch's request the first goes alone; the others come later. Only in the
 * strict order may one go alone, as it waits if it is busy. */
static void acquire_all_unbatch(struct hli_acquire_all *all)
{
    struct hli_batch *batch = &all->batch;
    size_t kept = all->is_strict ? 1 : 0;

    for (size_t i = kept; i < batch->count; i++)
        hli_member_withdraw(all->at[all->next + i], batch->ops[i], &acquire_all_unsent);
    if (kept > 0)
        acquire_all_send_first(all);
    else
        acquire_all_go_on_strictly(all);
}

static void acquire_all_send(struct hli_acquire_all *all)
{
    struct hli_batch *batch = &all->batch;
    const struct hli_acquire *first = &all->at[all->next]->acquire;
    const struct hli_acquire_request request = {
        .lease_ms = first->lease_ms, .count = 1, .queues = !first->is_try};

    if (batch->count == 1 && all->is_strict) {
        acquire_all_send_first(all);
    } else if (first->name->kind->acquire_all(batch, &request) < 0) {
        acquire_all_unbatch(all);
    } else {
        all->batch_end = all->next + batch->count;
        batch->tell = acquire_all_tell;
        batch->answered = acquire_all_answered;
        atomic_store(&all->batch_state, HLI_BATCH_SENT);
        hli_async_ref(&all->async); /* the batch's */
        hli_batch_send(batch, first->name);
    }
}

static void acquire_all_go_on(struct hli_acquire_all *all)
{
    struct hli_member *member = all->at[all->next];

    if (!member->is_nested)
        acquire_all_keep_alive(all);
    acquire_all_collect(all);
    if (all->batch.count > 0) {
        acquire_all_send(all);
    } else if (!all->is_strict) {
        acquire_all_go_on_strictly(all);
    } else if (hli_member_state_of(member) == HLI_MEMBER_NEW) {
        acquire_all_part_asks(all, member);
        hli_acquire_start_part(&member->acquire);
    }
}

/* A call of several clients is not looked at: in a tie it gives way. */
static void acquire_all_mind_deadlock(struct hli_acquire_all *all, struct hli_member *member)
{
    if (!all->async.completion.is_async && !all->span &&
        hli_member_state_of(member) == HLI_MEMBER_ASKS && !member->is_nested)
        hli_blocked_begin(&all->blocked, &member->acquire);
}

static void acquire_all_await(struct hli_acquire_all *all, struct hli_member *member)
{
    atomic_store(&all->awaited, member);
    if (hli_member_state_of(member) == HLI_MEMBER_NEW)
        acquire_all_go_on(all);
    else if (!member->is_nested)
        acquire_all_keep_alive(all);
    if (all->span)
        hli_acquire_all_mind_tie(all);
    if (atomic_load(&all->members[0].acquire.owner->holds) > 0)
        acquire_all_mind_deadlock(all, member);
}

static void acquire_all_step(struct hli_acquire_all *all)
{
    if (atomic_load(&all->is_over))
        return;
    if (all->stop_code < 0) {
        hli_acquire_all_stop(all);
        return;
    }
    if (!acquire_all_is_settled(all))
        return;
    acquire_all_skip_held(all, all->count);
    struct hli_member *member = all->next < all->count ? all->at[all->next] : NULL;
    if (!member)
        acquire_all_end(all, HL_OK);
    else if (hli_member_has_failed(member))
        acquire_all_fail(all, member);
    else
        acquire_all_await(all, member);
}

void hli_acquire_all_begin(struct hli_acquire_all *all)
{
    all->next = 0;
    if (all->span)
        hli_acquire_all_begin_span(all);
    atomic_store(&all->is_over, false); /* from here on a late kick may make the first step */
    hli_acquire_all_kick(all);
}
