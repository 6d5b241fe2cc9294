/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire-all: its steps. Each event of a member ends in acquire_all_kick(), which calls
 * acquire_all_step(); that derives the next action from the state of all members. While the call
 * waits for a member, only the members before `next` are held; others that a batch took are given
 * back.
 */
#include "lease/several/acquire_all.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "lease/hold/loss.h"
#include "lease/state/command.h"

static void acquire_all_step(struct hli_acquire_all *all);

/* Makes one step for each kick; with the caller's reference. */
static void acquire_all_kick(struct hli_acquire_all *all)
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
        HLI_OF(HLI_OF(wait, struct hli_acquire, wait), struct hli_member, acquire);
    struct hli_acquire_all *all = member->all;

    atomic_store(&member->state, HLI_MEMBER_DONE);
    acquire_all_kick(all);
    hli_async_unref(&all->async); /* the member's */
}

static void acquire_all_end(struct hli_acquire_all *all, int code)
{
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
        struct hli_member *member = all->sequence.at[i];
        if (hli_member_state_of(member) == HLI_MEMBER_ASKS)
            is_quiet = hli_member_withdraw(member, NULL, NULL) && is_quiet;
        else if (hli_member_is_held(member))
            hli_member_give_back(member);
    }
    return is_quiet;
}

static void acquire_all_stop(struct hli_acquire_all *all)
{
    if (hli_acquire_all_give_back(all, 0, all->count))
        acquire_all_end(all, all->stop_code);
}

/* Is a member that the call holds the same lock as this one, which is busy? Then the call ends. */
static bool acquire_all_has_twin(struct hli_acquire_all *all, const struct hli_member *member)
{
    for (size_t i = 0; all->span && i < all->count; i++) {
        if (!hli_member_is_twin_of(member, &all->members[i]))
            continue;
        all->stop_code = hli_name_fail(all->wait.err, HL_EDEADLK, member->acquire.name, "acquire",
                                       "it is a member twice, by two clients of one server");
        return true;
    }
    return false;
}

static void acquire_all_fail(struct hli_acquire_all *all, const struct hli_member *member)
{
    if (hli_member_code(member) == HL_ECANCELED || !acquire_all_has_twin(all, member)) {
        all->stop_code = hli_member_code(member);
        if (all->wait.err)
            *all->wait.err = member->err;
    }
    acquire_all_stop(all);
}

/* The first member of the batch that has failed, or NULL. */
static struct hli_member *acquire_all_find_failed(struct hli_acquire_all *all)
{
    for (size_t i = all->next; i < all->batch_end; i++)
        if (hli_member_has_failed(all->sequence.at[i]))
            return all->sequence.at[i];
    return NULL;
}

/* The call is about to wait: from now on the strict order holds, for what it has taken, too. */
static void acquire_all_be_strict(struct hli_acquire_all *all)
{
    hli_sequence_be_strict(&all->sequence);
    all->next = 0;
    all->batch_end = all->count;
}

static void acquire_all_skip_held(struct hli_acquire_all *all, size_t end)
{
    while (all->next < end && hli_member_is_held(all->sequence.at[all->next]))
        all->next++;
}

/* All answers of a batch are handed out. A member may ask again nevertheless (its answer came too
 * late): then the members behind it are given back. False: the result of one of those is about to
 * be reported. */
static bool acquire_all_trim(struct hli_acquire_all *all)
{
    acquire_all_skip_held(all, all->batch_end);
    if (all->next < all->batch_end && !all->sequence.is_strict) {
        acquire_all_be_strict(all);
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
        struct hli_member *member = all->sequence.at[i];
        hli_member_keep_alive(member, acquire_all_alive_ms(all, member->acquire.name->client));
    }
}

/* A request that was begun, and is not sent after all. */
static const struct hli_answer acquire_all_unsent = {
    .verdict = HLI_BOUNCED, .code = HL_ENOMEM, .text = "not sent"};

static void acquire_all_part_asks(struct hli_acquire_all *all, struct hli_member *member)
{
    hli_async_ref(&all->async); /* the member's */
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
    const struct hli_name *first = all->sequence.at[all->next]->acquire.name;

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
        struct hli_member *member = all->sequence.at[i];
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
    hli_link_send(hli_name_link(all->sequence.at[all->next]->acquire.name), all->batch.ops[0]);
}

/* Makes the next step in the strict order, and gives back what the call has out of it. */
static void acquire_all_go_on_strictly(struct hli_acquire_all *all)
{
    acquire_all_be_strict(all);
    atomic_store(&all->batch_state, HLI_BATCH_DONE);
    acquire_all_kick(all);
}

/* Without memory for the batch's request the first goes alone; the others come later. Only in the
 * strict order may one go alone, as it waits if it is busy. */
static void acquire_all_unbatch(struct hli_acquire_all *all)
{
    struct hli_batch *batch = &all->batch;
    size_t kept = all->sequence.is_strict ? 1 : 0;

    for (size_t i = kept; i < batch->count; i++)
        hli_member_withdraw(all->sequence.at[all->next + i], batch->ops[i], &acquire_all_unsent);
    if (kept > 0)
        acquire_all_send_first(all);
    else
        acquire_all_go_on_strictly(all);
}

static void acquire_all_send(struct hli_acquire_all *all)
{
    struct hli_batch *batch = &all->batch;
    const struct hli_acquire *first = &all->sequence.at[all->next]->acquire;
    const struct hli_acquire_request request = {
        .lease_ms = first->lease_ms, .count = 1, .queues = !first->is_try};

    if (batch->count == 1 && all->sequence.is_strict) {
        acquire_all_send_first(all);
    } else if (first->name->kind->acquire_all(batch, &request) < 0) {
        acquire_all_unbatch(all);
    } else {
        all->batch_end = all->next + batch->count;
        atomic_store(&all->batch_state, HLI_BATCH_SENT);
        hli_async_ref(&all->async); /* the batch's */
        hli_batch_send(batch, first->name);
    }
}

static void acquire_all_go_on(struct hli_acquire_all *all)
{
    struct hli_member *member = all->sequence.at[all->next];

    if (!member->is_nested)
        acquire_all_keep_alive(all);
    acquire_all_collect(all);
    if (all->batch.count > 0) {
        acquire_all_send(all);
    } else if (!all->sequence.is_strict) {
        acquire_all_go_on_strictly(all);
    } else if (hli_member_state_of(member) == HLI_MEMBER_NEW) {
        acquire_all_part_asks(all, member);
        hli_acquire_start_part(&member->acquire);
    }
}

enum { ACQUIRE_ALL_PATIENCE_MS = 16, ACQUIRE_ALL_PATIENCE_MOST_MS = 128 };

/* So long does a call hold other members of a tie while it waits for one. The time is random: of
 * two callers that hold what the other one waits for, one gives way while the other still waits.
 * It grows, as the answers of a server that is far away take their time. */
static void acquire_all_be_patient(struct hli_acquire_all *all, const struct hli_member *member)
{
    if (all->patience_ms < ACQUIRE_ALL_PATIENCE_MOST_MS)
        all->patience_ms *= 2;
    all->tied = member;
    all->patient_until =
        hli_after_ms(hli_now(), all->patience_ms + hli_random_upto(all->patience_ms));
    hli_async_ref(&all->async); /* the timer's */
    if (!hli_timer_set(all->wait.client->loop, &all->patience, all->patient_until))
        hli_async_unref(&all->async);
}

static void acquire_all_on_patience_orphaned(void *arg)
{
    struct hli_acquire_all *all = arg;

    hli_async_unref(&all->async); /* the timer's */
}

static void acquire_all_on_patience(void *arg)
{
    acquire_all_kick(arg);
    acquire_all_on_patience_orphaned(arg);
}

/* Gives back what it holds of the tie, and keeps its place in the queue of the member for which it
 * waits. */
static void acquire_all_give_way(struct hli_acquire_all *all, size_t first)
{
    all->tied = NULL;
    if (acquire_all_has_twin(all, all->sequence.at[all->next])) {
        acquire_all_stop(all);
        return;
    }
    hli_acquire_all_give_back(all, first, all->next);
    hli_sequence_prefer(&all->sequence, first, all->next);
    all->next = first;
}

/* While the call waits: two callers may take the members of a tie in different orders. */
static void acquire_all_mind_tie(struct hli_acquire_all *all, const struct hli_member *member)
{
    size_t first = all->next;

    if (all->sequence.is_strict && !member->is_nested)
        first = hli_sequence_tie(&all->sequence, all->next);
    if (first == all->next)
        all->tied = NULL;
    else if (all->tied != member)
        acquire_all_be_patient(all, member);
    else if (hli_now() >= all->patient_until)
        acquire_all_give_way(all, first);
}

static void acquire_all_await(struct hli_acquire_all *all, struct hli_member *member)
{
    atomic_store(&all->awaited, member);
    if (hli_member_state_of(member) == HLI_MEMBER_NEW)
        acquire_all_go_on(all);
    else if (!member->is_nested)
        acquire_all_keep_alive(all);
    if (all->span)
        acquire_all_mind_tie(all, all->sequence.at[all->next]);
}

static void acquire_all_step(struct hli_acquire_all *all)
{
    if (atomic_load(&all->is_over))
        return;
    if (all->stop_code < 0) {
        acquire_all_stop(all);
        return;
    }
    if (!acquire_all_is_settled(all))
        return;
    acquire_all_skip_held(all, all->count);
    struct hli_member *member = all->next < all->count ? all->sequence.at[all->next] : NULL;
    if (!member)
        acquire_all_end(all, HL_OK);
    else if (hli_member_has_failed(member))
        acquire_all_fail(all, member);
    else
        acquire_all_await(all, member);
}

/* A member without a reply of its own is withdrawn, unless it is the kept one. */
static void acquire_all_tell(struct hli_batch *batch, size_t index, const struct hli_answer *answer,
                             bool kept)
{
    struct hli_acquire_all *all = HLI_OF(batch, struct hli_acquire_all, batch);
    struct hli_member *member = all->sequence.at[all->batch_end - batch->count + index];
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
    acquire_all_kick(all);
    hli_async_unref(&all->async); /* the batch's */
}

void hli_acquire_all_prepare(struct hli_acquire_all *all)
{
    all->batch.tell = acquire_all_tell;
    all->batch.answered = acquire_all_answered;
    all->patience = (struct hli_timer){
        .run = acquire_all_on_patience, .orphaned = acquire_all_on_patience_orphaned, .arg = all};
    all->patience_ms = ACQUIRE_ALL_PATIENCE_MS;
    for (size_t i = 0; i < all->count; i++)
        all->members[i].acquire.wait.finished = acquire_all_part_finished;
}

void hli_acquire_all_begin(struct hli_acquire_all *all)
{
    all->next = 0;
    all->tied = NULL;
    hli_sequence_be_strict(&all->sequence);
    if (all->span && !all->alone)
        hli_sequence_gather(&all->sequence);
    if (all->span)
        hli_span_keep(all->span);
    atomic_store(&all->is_over, false); /* from here on a late kick may make the first step */
    acquire_all_kick(all);
}
