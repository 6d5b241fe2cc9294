/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Release-all: every member is begun at once, and none waits for another. */
#include "lease/several/release_all.h"

#include "base/check.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

struct release_all_member {
    struct release_all *all; /* borrowed, immutable */
    struct hli_release_wait released;
    struct hli_release_mode mode; /* immutable */
    bool is_closed;               /* immutable: nothing is done */
    hl_error err;
};

struct release_all {
    struct hli_async async; /* references: each member under way has one, and a batch */
    struct hli_wait wait;
    struct hl_owner *owner; /* borrowed until all are begun */
    struct hli_release_all_codes codes;
    atomic_size_t pending; /* members without a result, plus one while members are begun; 0: over */
    struct hli_span *span; /* counted, immutable; NULL: one client */
    struct hli_batch *batches; /* behind the members, one for each client */
    size_t batch_count;
    size_t count;
    struct release_all_member members[];
};

static struct release_all *release_all_of(struct hli_async *async)
{
    return HLI_PART_OF(async, struct release_all, async);
}

static void release_all_freed(struct hli_async *async)
{
    struct release_all *all = release_all_of(async);

    for (size_t i = 0; i < all->count; i++)
        hli_name_unref(all->members[i].released.name);
    for (size_t i = 0; i < all->batch_count; i++)
        hli_batch_deinit(&all->batches[i]);
    if (all->span)
        hli_span_unref(all->span);
    free(all);
}

/* The rank of a code, from harmless to bad: nothing was held; perhaps not released; refused; the
 * lock was lost; all others: still held, or nothing done. */
static int release_all_rank(int code)
{
    static const int ranks[] = {HL_OK, HL_ENOTOWNER, HL_EINDOUBT, HL_ESERVER, HL_EDENIED, HL_ELOST};
    enum { RANKS = sizeof(ranks) / sizeof(ranks[0]) };

    for (int i = 0; i < RANKS; i++)
        if (ranks[i] == code)
            return i;
    return RANKS;
}

int hli_release_all_worse(int code, int other)
{
    return release_all_rank(other) > release_all_rank(code) ? other : code;
}

static int release_all_code(const struct release_all *all, size_t index)
{
    return all->members[index].released.wait.code;
}

/* "release 'a': ...; release 'c': ...", as far as there is room. */
static void release_all_write_error(const struct release_all *all, int code, hl_error *err)
{
    size_t used = 0;

    if (!err)
        return;
    err->code = code;
    for (size_t i = 0; i < all->count && used < sizeof(err->text); i++)
        if (release_all_code(all, i) < 0)
            used += (size_t)snprintf(err->text + used, sizeof(err->text) - used, "%s%s",
                                     used > 0 ? "; " : "", all->members[i].err.text);
}

static void release_all_end(struct release_all *all)
{
    int code = HL_OK;

    for (size_t i = 0; i < all->count; i++) {
        if (!all->members[i].is_closed)
            hli_release_wait_count(&all->members[i].released);
        code = hli_release_all_worse(code, release_all_code(all, i));
    }
    if (code < 0)
        release_all_write_error(all, code, all->wait.err);
    all->wait.code = code;
    hli_wait_wake(&all->wait);
    if (all->span)
        hli_span_drop(all->span);
}

static void release_all_has_one_less(struct release_all *all)
{
    if (atomic_fetch_sub(&all->pending, 1) == 1)
        release_all_end(all);
}

static void release_all_member_finished(struct hli_wait *wait)
{
    struct release_all_member *member = HLI_PART_OF(
        HLI_PART_OF(wait, struct hli_release_wait, wait), struct release_all_member, released);
    struct release_all *all = member->all;

    release_all_has_one_less(all);
    hli_async_unref(&all->async); /* the member's */
}

/* Checks all members, which end with the call; and with the close of a client, which waits for the
 * call. The wait's own span is not asked: the completion's thread may be taking it away just now.
 */
static bool release_all_check(struct hli_wait *wait, hli_ns now)
{
    struct release_all *all = HLI_PART_OF(wait, struct release_all, wait);
    bool is_late = now >= wait->deadline || (all->span && hli_span_is_closing(all->span));

    for (size_t i = 0; i < all->count; i++) {
        struct hli_wait *member = &all->members[i].released.wait;
        if (!all->members[i].is_closed)
            member->check(member, is_late ? hli_later(now, member->deadline) : now);
    }
    return atomic_load(&all->pending) > 0;
}

/* A name that the batch left as it is, or a batch that was refused for good, is released by a
 * request of its own. */
static void release_all_tell(struct hli_batch *batch, size_t index, const struct hli_answer *answer,
                             bool kept)
{
    struct hli_answer own = *answer;

    (void)kept;
    if (own.verdict == HLI_FAILED)
        own.verdict = HLI_BOUNCED;
    batch->ops[index]->done(batch->ops[index], &own);
}

static void release_all_answered(struct hli_batch *batch)
{
    struct release_all *all = batch->arg;

    hli_async_unref(&all->async); /* the batch's */
}

static int release_all_settle(struct hli_async *async)
{
    struct release_all *all = release_all_of(async);
    const struct hli_release_all_codes *codes = &all->codes;

    for (size_t i = 0; codes->ret && i < codes->count; i++)
        codes->ret[i] = release_all_code(all, codes->item[i]);
    return all->wait.code;
}

static void release_all_add_part(struct release_all *all, const struct hli_release_all_item *item)
{
    struct release_all_member *member = &all->members[all->count++];

    hli_name_ref(item->name);
    member->all = all;
    member->mode = item->mode;
    member->is_closed = item->is_closed;
    hli_release_wait_init(&member->released, item->name, &member->err);
    HLI_PART_IS(&member->released, struct release_all_member, released);
    if (item->is_closed)
        member->released.wait.code = hli_name_refuse(&member->err, HL_ECLOSED, item->name,
                                                     HL_CALL_RELEASE, hl_err_text(HL_ECLOSED));
    member->released.wait.finished = release_all_member_finished;
}

static int release_all_add_batches(struct release_all *all, const struct hli_release_all_spec *what,
                                   size_t clients)
{
    all->batches = (struct hli_batch *)&all->members[what->count];
    while (all->batch_count < clients) {
        struct hli_batch *batch = &all->batches[all->batch_count];
        if (hli_batch_init(batch, what->count) < 0)
            return HL_ENOMEM;
        batch->tell = release_all_tell;
        batch->answered = release_all_answered;
        batch->arg = all;
        all->batch_count++;
    }
    return 0;
}

static struct release_all *release_all_new(const struct hli_release_all_spec *what,
                                           const struct hli_completion *completion)
{
    size_t clients = what->span ? what->span->count : 1;
    struct release_all *all =
        calloc(1, sizeof(*all) + what->count * sizeof(struct release_all_member) +
                      clients * sizeof(struct hli_batch));

    if (!all)
        return NULL;
    hli_async_init(&all->async, &all->wait, release_all_freed);
    HLI_PART_IS(&all->async, struct release_all, async);
    all->async.settle = release_all_settle;
    all->async.completion = *completion;
    all->owner = what->owner;
    all->codes = what->codes;
    all->span = what->span;
    if (all->span)
        hli_span_ref(all->span);
    hli_wait_init(&all->wait, what->client, what->client->settings.request_timeout_ms,
                  completion->is_async ? &all->async.err : completion->err);
    HLI_PART_IS(&all->wait, struct release_all, wait);
    all->wait.span = what->span;
    all->wait.check = release_all_check;
    if (release_all_add_batches(all, what, clients) < 0) {
        hli_async_unref(&all->async);
        return NULL;
    }
    for (size_t i = 0; i < what->count; i++)
        release_all_add_part(all, &what->items[i]);
    return all;
}

static const struct hli_name *release_all_name_of(struct hli_op *op)
{
    return HLI_PART_OF(op, struct hli_tenure, release)->name;
}

/* One request can release names of one slot, whose requests take one lane. */
static bool release_all_may_batch(const struct hli_batch *batch)
{
    const struct hli_name *first = batch->count > 0 ? release_all_name_of(batch->ops[0]) : NULL;

    for (size_t i = 1; i < batch->count; i++)
        if (!hli_name_shares_lane(release_all_name_of(batch->ops[i]), first))
            return false;
    return batch->count >= 2;
}

static int release_all_format(struct hli_batch *batch)
{
    return release_all_name_of(batch->ops[0])->kind->release_all(batch);
}

/* Sends one batch; for names of several slots, or without memory for it, each request alone. */
static void release_all_send(struct release_all *all, struct hli_batch *batch)
{
    if (release_all_may_batch(batch) && release_all_format(batch) == 0) {
        hli_async_ref(&all->async); /* the batch's */
        hli_batch_send(batch, release_all_name_of(batch->ops[0]));
        return;
    }
    for (size_t i = 0; i < batch->count; i++)
        hli_link_send(hli_name_link(release_all_name_of(batch->ops[i])), batch->ops[i]);
}

static void release_all_begin_part(struct release_all *all, struct release_all_member *member)
{
    struct hli_name *name = member->released.name;
    struct hli_batch *batch =
        &all->batches[all->span ? hli_span_place(all->span, name->client) : 0];
    struct hli_op *op = NULL;

    if (member->is_closed) {
        atomic_fetch_sub(&all->pending, 1); /* not the last: the begin's own is there */
        return;
    }
    hli_async_ref(&all->async); /* the member's */
    hli_release_start(name, all->owner, &member->mode, &member->released.wait, &op);
    if (op)
        batch->ops[batch->count++] = op;
}

static void release_all_start(struct hli_async *async)
{
    struct release_all *all = release_all_of(async);

    if (!async->completion.is_async && !all->members[0].mode.is_posted && !all->span)
        hli_wait_lead(&all->wait, hli_name_link(all->members[0].released.name));
    if (all->span) {
        hli_wait_attach(&all->wait, NULL);
        hli_span_keep(all->span); /* until its end */
    }
    atomic_store(&all->pending, all->count + 1);
    for (size_t i = 0; i < all->count; i++)
        release_all_begin_part(all, &all->members[i]);
    for (size_t i = 0; i < all->batch_count; i++)
        release_all_send(all, &all->batches[i]);
    release_all_has_one_less(all);
}

int hli_release_all_run(const struct hli_release_all_spec *what,
                        const struct hli_completion *completion)
{
    struct release_all *all = release_all_new(what, completion);

    return all ? hli_async_run(&all->async, release_all_start) : hli_no_memory(completion->err);
}
