/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire-all. Each event of a member ends in acquire_all_kick(), which calls acquire_all_step();
 * that derives the next action from the state of all members. While the call waits for a member,
 * only the members before `next` are held; others that a batch took are given back.
 */
#include "lease/several/acquire_all.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/hold/loss.h"
#include "lease/state/command.h"
#include "lease/state/grace.h"

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
}

/* Releases held members in reverse order, and withdraws members that ask. False: the result of one
 * is about to be reported. */
static bool acquire_all_give_back(struct hli_acquire_all *all, size_t from, size_t end)
{
    bool is_quiet = true;

    for (size_t i = end; i-- > from;) {
        struct hli_member *member = &all->members[i];
        if (hli_member_state_of(member) == HLI_MEMBER_ASKS)
            is_quiet = hli_member_withdraw(member, NULL, NULL) && is_quiet;
        else if (hli_member_is_held(member))
            hli_member_give_back(member);
    }
    return is_quiet;
}

static void acquire_all_stop(struct hli_acquire_all *all)
{
    if (acquire_all_give_back(all, 0, all->count))
        acquire_all_end(all, all->stop_code);
}

static void acquire_all_fail(struct hli_acquire_all *all, const struct hli_member *member)
{
    all->stop_code = hli_member_code(member);
    if (all->wait.err)
        *all->wait.err = member->err;
    acquire_all_stop(all);
}

/* The first member of the batch that has failed, or NULL. */
static struct hli_member *acquire_all_find_failed(struct hli_acquire_all *all)
{
    for (size_t i = all->next; i < all->batch_end; i++)
        if (hli_member_has_failed(&all->members[i]))
            return &all->members[i];
    return NULL;
}

/* All answers of a batch are handed out. A member may ask again nevertheless (its answer came too
 * late): then the members behind it are given back. False: the result of one of those is about to
 * be reported. */
static bool acquire_all_trim(struct hli_acquire_all *all)
{
    while (all->next < all->batch_end && hli_member_is_held(&all->members[all->next]))
        all->next++;
    bool is_trimmed = acquire_all_give_back(all, all->next + 1, all->batch_end);
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
static void acquire_all_keep_alive(struct hli_acquire_all *all)
{
    const hl_client *client = all->wait.client;
    int64_t claim_ms = hli_command_claim_ms(client);
    int64_t lease_ms = all->options.lease_ms > claim_ms ? all->options.lease_ms : claim_ms;

    if (all->options.lease_ms == 0)
        return;
    if (lease_ms > client->settings.watchdog_timeout_ms)
        lease_ms = client->settings.watchdog_timeout_ms;
    for (size_t i = 0; i < all->next; i++)
        hli_member_keep_alive(&all->members[i], lease_ms);
}

/* Which names can one request acquire, if they share a lane? Those of a kind with acquire_all. */
static bool acquire_all_may_batch(const struct hli_acquire_all *all,
                                  const struct hli_member *member)
{
    const struct hli_acquire *acquire = &member->acquire;

    return !all->alone && !member->is_nested && acquire->name->kind->acquire_all &&
           !acquire->mode.is_fenced && acquire->mode.backoff_ms == 0;
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
static bool acquire_all_joins_lane(const struct hli_acquire_all *all, struct hli_member *member)
{
    const struct hli_name *first = all->members[all->next].acquire.name;

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
        struct hli_member *member = &all->members[i];
        if (i > all->next &&
            (!acquire_all_may_batch(all, member) || !acquire_all_joins_lane(all, member)))
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
        if (!acquire_all_may_batch(all, member))
            return;
    }
}

static void acquire_all_send_first(struct hli_acquire_all *all)
{
    hli_link_send(hli_name_link(all->members[all->next].acquire.name), all->batch.ops[0]);
}

/* Without memory for the batch's request the first goes alone; the others come later. */
static void acquire_all_unbatch(struct hli_acquire_all *all)
{
    struct hli_batch *batch = &all->batch;

    for (size_t i = 1; i < batch->count; i++)
        hli_member_withdraw(&all->members[all->next + i], batch->ops[i], &acquire_all_unsent);
    acquire_all_send_first(all);
}

static void acquire_all_send(struct hli_acquire_all *all)
{
    struct hli_batch *batch = &all->batch;
    const struct hli_acquire *first = &all->members[all->next].acquire;
    const struct hli_acquire_request request = {
        .lease_ms = first->lease_ms, .count = 1, .queues = !first->is_try};

    if (batch->count == 1) {
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
    struct hli_member *member = &all->members[all->next];

    if (!member->is_nested)
        acquire_all_keep_alive(all);
    acquire_all_collect(all);
    if (all->batch.count > 0) {
        acquire_all_send(all);
    } else if (hli_member_state_of(member) == HLI_MEMBER_NEW) {
        acquire_all_part_asks(all, member);
        hli_acquire_start_part(&member->acquire);
    }
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
    while (all->next < all->count && hli_member_is_held(&all->members[all->next]))
        all->next++;
    struct hli_member *member = all->next < all->count ? &all->members[all->next] : NULL;
    if (!member)
        acquire_all_end(all, HL_OK);
    else if (hli_member_has_failed(member))
        acquire_all_fail(all, member);
    else if (hli_member_state_of(member) == HLI_MEMBER_NEW)
        acquire_all_go_on(all);
    else if (!member->is_nested)
        acquire_all_keep_alive(all);
}

/* A member without a reply of its own is withdrawn, unless it is the kept one. */
static void acquire_all_tell(struct hli_batch *batch, size_t index, const struct hli_answer *answer,
                             bool kept)
{
    struct hli_acquire_all *all = HLI_OF(batch, struct hli_acquire_all, batch);
    struct hli_member *member = &all->members[all->batch_end - batch->count + index];
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

enum { ACQUIRE_ALL_SOON_MS = 1 }; /* when to check again while the call waits for no member */

static void acquire_all_freed(struct hli_async *async)
{
    struct hli_acquire_all *all = HLI_OF(async, struct hli_acquire_all, async);

    for (size_t i = 0; i < all->count; i++)
        hli_acquire_deinit(&all->members[i].acquire);
    hli_batch_deinit(&all->batch);
    free(all);
}

/* The wait of the member that the call waits for; NULL while there is none. */
static struct hli_wait *acquire_all_member_wait(struct hli_acquire_all *all)
{
    size_t next = all->next;
    struct hli_member *member = next < all->count ? &all->members[next] : NULL;

    return member && hli_member_state_of(member) == HLI_MEMBER_ASKS ? &member->acquire.wait : NULL;
}

/* Checks that member; the call ends with it. */
static bool acquire_all_check(struct hli_wait *wait, hli_ns now)
{
    struct hli_acquire_all *all = HLI_OF(wait, struct hli_acquire_all, wait);
    struct hli_wait *member = acquire_all_member_wait(all);

    if (member)
        member->check(member, now);
    wait->check_at = member ? member->check_at : hli_after_ms(now, ACQUIRE_ALL_SOON_MS);
    return !atomic_load(&all->is_over);
}

static bool acquire_all_awaits_message(struct hli_wait *wait)
{
    struct hli_wait *member = acquire_all_member_wait(HLI_OF(wait, struct hli_acquire_all, wait));

    return member && member->awaits_message(member);
}

static int acquire_all_settle(struct hli_async *async);

static void acquire_all_init(struct hli_acquire_all *all, hl_client *client,
                             const hl_acquire_options *options,
                             const struct hli_completion *completion)
{
    hl_error *err = completion->is_async ? &all->async.err : completion->err;
    bool is_try = options->wait_ms == HL_NO_WAIT;

    hli_async_init(&all->async, &all->wait, acquire_all_freed);
    all->async.settle = acquire_all_settle;
    all->async.completion = *completion;
    all->options = *options;
    hli_wait_init(&all->wait, client, is_try ? HL_WAIT_FOREVER : options->wait_ms, err);
    all->wait.check = acquire_all_check;
    all->wait.awaits_message = acquire_all_awaits_message;
    all->wait.check_at = all->wait.first_check_at = hli_earlier(
        all->wait.deadline, hli_after_ms(all->wait.started, client->settings.outage_timeout_ms));
}

/* max_hold and min_hold begin when the call returns. */
static int acquire_all_add_part(struct hli_acquire_all *all, const struct hli_acquire_spec *spec)
{
    struct hli_member *member = &all->members[all->count];
    hl_acquire_options options = all->options;
    const struct hli_acquire_spec own = {spec->name, spec->mode, &options};

    int rc =
        HLI_GRACE_IS_ON(spec->name->client)
            ? hli_grace_check(spec->name->client, "min_hold_ms", options.min_hold_ms, all->wait.err)
            : 0;
    if (rc < 0)
        return rc;
    options.max_hold_ms = options.min_hold_ms = 0;
    rc = hli_acquire_init(&member->acquire, &own, all->wait.err);
    if (rc < 0)
        return rc;
    member->all = all;
    member->acquire.wait.err = &member->err;
    member->acquire.wait.deadline = all->wait.deadline;
    member->acquire.wait.cancel = options.cancel; /* the acquire-all's wait checks it */
    member->acquire.wait.finished = acquire_all_part_finished;
    member->acquire.wait.is_finished = true; /* the member is not begun */
    all->count++;
    return 0;
}

/* The order of members. A nested member that is sure to fail comes first, because it ends the whole
 * call. A nested member that can succeed comes last: it need not wait, and its hold is not changed
 * before all others are held. */
enum acquire_all_rank {
    ACQUIRE_ALL_FAILS,
    ACQUIRE_ALL_FRESH,
    ACQUIRE_ALL_NESTED,
    ACQUIRE_ALL_RANKS
};

static enum acquire_all_rank acquire_all_rank_of(const struct hli_acquire_spec *spec)
{
    bool is_lost = false;

    if (!hli_member_check_outer(spec->name, spec->options->owner, &is_lost))
        return ACQUIRE_ALL_FRESH;
    return is_lost || spec->mode.is_nonreentrant ? ACQUIRE_ALL_FAILS : ACQUIRE_ALL_NESTED;
}

static int acquire_all_add_parts(struct hli_acquire_all *all, const struct hli_acquire_spec *specs,
                                 size_t count)
{
    enum acquire_all_rank rank[HLI_SEVERAL_LIMIT];

    for (size_t i = 0; i < count; i++)
        rank[i] = acquire_all_rank_of(&specs[i]);
    for (int next = 0; next < ACQUIRE_ALL_RANKS; next++)
        for (size_t i = 0; i < count; i++) {
            if ((int)rank[i] != next)
                continue;
            int rc = acquire_all_add_part(all, &specs[i]);
            if (rc < 0)
                return rc;
            all->members[all->count - 1].is_nested = rank[i] != ACQUIRE_ALL_FRESH;
        }
    return 0;
}

static int acquire_all_new(const struct hli_acquire_spec *specs, size_t count,
                           const struct hli_completion *completion,
                           struct hli_acquire_all **ret_all)
{
    hl_client *client = specs->name->client;
    struct hli_acquire_all *all = calloc(1, sizeof(*all) + count * sizeof(struct hli_member));

    if (!all)
        return hli_no_memory(completion->err);
    acquire_all_init(all, client, specs->options, completion);
    int rc = hli_batch_init(&all->batch, count);
    all->batch.tell = acquire_all_tell;
    all->batch.answered = acquire_all_answered;
    rc = rc < 0 ? hli_no_memory(all->wait.err) : acquire_all_add_parts(all, specs, count);
    if (rc == 0) {
        *ret_all = all;
        return 0;
    }
    if (completion->is_async)
        hli_fail(NULL, rc, "%s", all->async.err.text);
    hli_async_unref(&all->async);
    return rc;
}

/* A member's hold was lost, or the answer lay in the socket for too long: the call begins once
 * more. */
static int acquire_all_restart(struct hli_acquire_all *all)
{
    all->next = 0;
    atomic_store(&all->wait.gate.state, HLI_GATE_SHUT);
    all->wait.check_at = hli_now();     /* its wait time may be over too */
    atomic_store(&all->is_over, false); /* from here on a late kick may make the first step */
    acquire_all_kick(all);
    return HLI_ASYNC_GOES_ON;
}

/* Accepts all members. Returns the first member that is not held any more, or NULL. */
static struct hli_member *acquire_all_accept(struct hli_acquire_all *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (!hli_member_is_valid(&all->members[i]))
            return &all->members[i];
    for (size_t i = 0; i < all->count; i++)
        if (!hli_member_accept(&all->members[i], &all->options))
            return &all->members[i];
    return NULL;
}

static int acquire_all_settle(struct hli_async *async)
{
    struct hli_acquire_all *all = HLI_OF(async, struct hli_acquire_all, async);

    if (all->wait.code < 0)
        return all->wait.code;
    const struct hli_member *late = acquire_all_accept(all);
    if (!late)
        return HL_OK;
    acquire_all_give_back(all, 0, all->count);
    if (!late->is_nested)
        return acquire_all_restart(all);
    return hli_name_fail(all->wait.err, HL_ELOST, late->acquire.name, "acquire",
                         "the hold ended before its release" HLI_LOSS_ADVICE);
}

static void acquire_all_start(struct hli_async *async)
{
    struct hli_acquire_all *all = HLI_OF(async, struct hli_acquire_all, async);

    if (!async->completion.is_async) {
        for (size_t i = 0; i < all->count; i++)
            hli_acquire_yield_core(all->members[i].acquire.name);
        hli_wait_lead(&all->wait, hli_name_choose_link(all->members[0].acquire.name));
    }
    hli_wait_attach(&all->wait, all->options.cancel);
    acquire_all_kick(all);
}

int hli_acquire_all_run(const struct hli_acquire_spec *specs, size_t count,
                        const struct hli_completion *completion)
{
    struct hli_acquire_all *all = NULL;
    int rc = acquire_all_new(specs, count, completion, &all);

    return rc < 0 ? rc : hli_async_run(&all->async, acquire_all_start);
}
