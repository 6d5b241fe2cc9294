/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Acquire-all as a call: its arguments, its wait, and the second look at what it holds. */
#include "base/check.h"
#include "base/error.h"
#include "lease/hold/loss.h"
#include "lease/several/acquire_all.h"
#include "lease/state/grace.h"

#include <stdlib.h>

enum {
    ACQUIRE_ALL_SOON_MS = 1, /* when to check again while the call waits for no member, and ends */
    ACQUIRE_ALL_TAG_MS = 1000, /* or when a member's tag may be due */
};

static void acquire_all_freed(struct hli_async *async)
{
    struct hli_acquire_all *all = HLI_PART_OF(async, struct hli_acquire_all, async);

    for (size_t i = 0; i < all->count; i++)
        hli_acquire_deinit(&all->members[i].acquire);
    hli_batch_deinit(&all->batch);
    if (all->span)
        hli_span_unref(all->span);
    free(all);
}

/* The member that the call waits for; NULL while there is none. */
static struct hli_member *acquire_all_awaited(struct hli_acquire_all *all)
{
    struct hli_member *member = atomic_load(&all->awaited);

    return member && hli_member_state_of(member) == HLI_MEMBER_ASKS ? member : NULL;
}

/* When to check next: at this time, or earlier if an outage of one of the servers that began by now
 * may end the call then. */
static hli_ns acquire_all_check_at(const struct hli_acquire_all *all, hli_ns now, hli_ns at)
{
    int64_t least_ms = all->wait.client->settings.outage_timeout_ms;

    for (size_t i = 0; all->span && i < all->span->count; i++)
        if (all->span->clients[i]->settings.outage_timeout_ms < least_ms)
            least_ms = all->span->clients[i]->settings.outage_timeout_ms;
    hli_ns outage_at = hli_after_ms(now, least_ms);
    return outage_at < at ? outage_at : at;
}

/* While the call waits for no member. It must end by the next one if its time is over. */
static hli_ns acquire_all_check_soon(struct hli_acquire_all *all, hli_ns now)
{
    hli_ns ends_at = acquire_all_check_at(all, all->wait.started, all->wait.deadline);

    if (now >= ends_at || hli_wait_is_attached_and_cancelled(&all->wait))
        return hli_after_ms(now, ACQUIRE_ALL_SOON_MS);
    return hli_earlier(ends_at, hli_after_ms(now, ACQUIRE_ALL_TAG_MS));
}

/* Checks that member; the call ends with it. The next member's server may be known for a shorter
 * outage. */
static bool acquire_all_check(struct hli_wait *wait, hli_ns now)
{
    struct hli_acquire_all *all = HLI_PART_OF(wait, struct hli_acquire_all, wait);
    struct hli_member *member = acquire_all_awaited(all);

    if (member) {
        member->acquire.wait.check(&member->acquire.wait, now);
        wait->check_at = member->acquire.wait.check_at;
    } else {
        wait->check_at = acquire_all_check_soon(all, now);
    }
    if (all->span)
        wait->check_at = acquire_all_check_at(all, now, wait->check_at);
    return !atomic_load(&all->is_over);
}

/* The call's thread listens to the first member's server. */
static bool acquire_all_awaits_message(struct hli_wait *wait)
{
    struct hli_acquire_all *all = HLI_PART_OF(wait, struct hli_acquire_all, wait);
    struct hli_member *member = acquire_all_awaited(all);

    return member && member->acquire.name->client == all->members[0].acquire.name->client &&
           member->acquire.wait.awaits_message(&member->acquire.wait);
}

static int acquire_all_settle(struct hli_async *async);

static void acquire_all_init(struct hli_acquire_all *all, const struct hli_acquire_all_spec *what,
                             const struct hli_completion *completion)
{
    const hl_acquire_options *options = what->specs->options;
    hl_error *err = completion->is_async ? &all->async.err : completion->err;
    bool is_try = options->wait_ms == HL_NO_WAIT;

    hli_async_init(&all->async, &all->wait, acquire_all_freed);
    HLI_PART_IS(&all->async, struct hli_acquire_all, async);
    all->async.settle = acquire_all_settle;
    all->async.completion = *completion;
    all->options = *options;
    all->at = (struct hli_member **)&all->members[what->count];
    all->is_strict = true;
    all->span = what->span;
    if (all->span)
        hli_span_ref(all->span);
    hli_wait_init(&all->wait, what->client, is_try ? HL_WAIT_FOREVER : options->wait_ms, err);
    HLI_PART_IS(&all->wait, struct hli_acquire_all, wait);
    all->wait.span = what->span;
    all->wait.check = acquire_all_check;
    all->wait.awaits_message = acquire_all_awaits_message;
    all->wait.check_at = all->wait.first_check_at =
        acquire_all_check_at(all, all->wait.started, all->wait.deadline);
}

/* max_hold and min_hold begin when the call returns. */
static int acquire_all_add_part(struct hli_acquire_all *all, const struct hli_acquire_spec *spec)
{
    struct hli_member *member = &all->members[all->count];
    hl_client *client = spec->name->client;
    hl_acquire_options options = all->options;
    const struct hli_acquire_spec own = {spec->name, spec->mode, &options};
    int rc = 0;

    if (HLI_GRACE_IS_ON(client))
        rc = hli_grace_check(client, "min_hold_ms", options.min_hold_ms, all->wait.err);
    if (rc < 0)
        return rc;
    options.max_hold_ms = options.min_hold_ms = 0;
    rc = hli_acquire_init(&member->acquire, &own, all->wait.err);
    if (rc < 0)
        return rc;
    HLI_PART_IS(&member->acquire, struct hli_member, acquire);
    member->all = all;
    member->acquire.wait.err = &member->err;
    member->acquire.wait.deadline = all->wait.deadline;
    member->acquire.wait.cancel = options.cancel; /* the acquire-all's wait checks it, and these */
    member->acquire.wait.span = all->span;
    member->acquire.wait.is_finished = true; /* the member is not begun */
    if (member->acquire.tag_at < all->wait.first_check_at)
        all->wait.check_at = all->wait.first_check_at = member->acquire.tag_at;
    all->at[all->count++] = member;
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

static int acquire_all_new(const struct hli_acquire_all_spec *what,
                           const struct hli_completion *completion,
                           struct hli_acquire_all **ret_all)
{
    struct hli_acquire_all *all = calloc(
        1, sizeof(*all) + what->count * (sizeof(struct hli_member) + sizeof(struct hli_member *)));

    if (!all)
        return hli_no_memory(completion->err);
    acquire_all_init(all, what, completion);
    int rc = hli_batch_init(&all->batch, what->count);
    rc = rc < 0 ? hli_no_memory(all->wait.err)
                : acquire_all_add_parts(all, what->specs, what->count);
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
    atomic_store(&all->wait.gate.state, HLI_GATE_SHUT);
    if (!all->wait.timer)
        all->wait.check_at = hli_now(); /* its wait time may be over too */
    hli_acquire_all_begin(all);
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

/* A client was closed before the completion could run: the members of the others are given back. */
static int acquire_all_forsake(struct hli_acquire_all *all)
{
    const struct hli_name *closed = NULL;

    for (size_t i = 0; i < all->count; i++) {
        struct hli_member *member = &all->members[i];
        hl_client *client = member->acquire.name->client;
        if (hli_client_enter(client) < 0) {
            closed = member->acquire.name;
            hli_member_forget(member);
            continue;
        }
        hli_member_give_back(member);
        hli_client_leave(client);
    }
    return hli_name_refuse(all->wait.err, HL_ECANCELED,
                           closed ? closed : all->members[0].acquire.name, HL_CALL_ACQUIRE,
                           "the client is closed");
}

static int acquire_all_settle_held(struct hli_acquire_all *all)
{
    const struct hli_member *late = acquire_all_accept(all);

    if (!late)
        return HL_OK;
    hli_acquire_all_give_back(all, 0, all->count);
    if (!late->is_nested)
        return acquire_all_restart(all);
    return hli_name_fail(all->wait.err, HL_ELOST, late->acquire.name, "acquire", /* it is counted */
                         "the hold ended before its release" HLI_LOSS_ADVICE);
}

/* The thread of a blocking call has entered the clients already. */
static int acquire_all_settle(struct hli_async *async)
{
    struct hli_acquire_all *all = HLI_PART_OF(async, struct hli_acquire_all, async);

    if (all->wait.code < 0)
        return all->wait.code;
    if (!all->span || !async->completion.is_async)
        return acquire_all_settle_held(all);
    if (hli_span_enter(all->span) < 0)
        return acquire_all_forsake(all);
    int code = acquire_all_settle_held(all);
    hli_span_leave(all->span);
    return code;
}

static void acquire_all_start(struct hli_async *async)
{
    struct hli_acquire_all *all = HLI_PART_OF(async, struct hli_acquire_all, async);

    if (!async->completion.is_async) {
        for (size_t i = 0; i < all->count; i++)
            hli_acquire_yield_core(all->members[i].acquire.name);
        hli_wait_lead(&all->wait, hli_name_choose_link(all->members[0].acquire.name));
    }
    hli_wait_attach(&all->wait, all->options.cancel);
    hli_acquire_all_begin(all);
}

int hli_acquire_all_run(const struct hli_acquire_all_spec *what,
                        const struct hli_completion *completion)
{
    struct hli_acquire_all *all = NULL;
    int rc = acquire_all_new(what, completion, &all);

    return rc < 0 ? rc : hli_async_run(&all->async, acquire_all_start);
}
