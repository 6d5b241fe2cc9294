/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lock's kind: the words of its commands, for one lock and for several at once. */
#include "sync/lock/lock_kind.h"

#include "base/check.h"
#include "lease/hold/tag.h"
#include "lease/hold/write.h"
#include "lease/several/batch.h"
#include "lease/state/command.h"
#include "lease/state/grace.h"

enum { LOCK_QUEUE_POLLS = 10 }; /* lifetime of a queue that no waiter renews */

/* Behind the words of each ACQUIRE those of the longer ones: for tokens, for the holder's tag, in a
 * cluster the command to publish with, and for a waiter that no message reaches. */
static void lock_add_wishes(struct hli_args *args, const struct hli_name *name, uint32_t tokens,
                            bool asks_tag)
{
    const struct hli_wording *wording = name->client->wording;
    /* A failover may lose the last steps of the counter of tokens; a clock goes on. */
    bool by_clock = tokens > 0 && HLI_GRACE_IS_ON(name->client);
    bool is_deaf = hli_command_is_deaf(name), has_more = by_clock || is_deaf;

    if (tokens > 0)
        hli_command_derived(args, name, HLI_NAME_TOKEN);
    else
        hli_args_text(args, "");
    hli_args_number(args, tokens);
    if (asks_tag)
        hli_command_derived(args, name, HLI_NAME_TAG);
    else if (wording->is_for_cluster || has_more)
        hli_args_text(args, "");
    if (wording->is_for_cluster || has_more)
        hli_args_text(args, wording->publish);
    if (has_more)
        hli_args_text(args, by_clock ? "1" : "");
    if (is_deaf)
        hli_args_number(args, hli_command_sign_ms(name->client));
}

static void lock_declare(struct hli_args *args, const struct hli_name *name, bool is_alone,
                         bool has_token)
{
    if (!is_alone)
        hli_command_declare(args, name, HLI_NAME_QUEUE);
    if (has_token)
        hli_command_declare(args, name, HLI_NAME_TOKEN);
}

static int lock_format_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                               const struct hli_acquire_request *request)
{
    const struct hli_name *name = tenure->name;
    bool is_for_cluster = name->client->wording->is_for_cluster;
    bool asks_tag = (name->client->settings.flags & HL_CLIENT_HOLDER_INFO) != 0;
    bool is_alone = is_for_cluster && hli_command_is_alone(name);
    struct hli_args args;

    hli_command_begin(&args, HLI_SCRIPT_LOCK_ACQUIRE, name);
    if (is_for_cluster) {
        lock_declare(&args, name, is_alone, request->tokens > 0);
        hli_tag_declare(name, &args);
    }
    hli_command_field(&args, tenure);
    hli_args_number(&args, request->lease_ms);
    hli_args_number(&args, request->count);
    hli_command_derived(&args, name, HLI_NAME_QUEUE);
    hli_args_number(&args, request->queues && !is_alone
                               ? LOCK_QUEUE_POLLS * name->client->settings.poll_ms
                               : 0);
    hli_command_mailbox(&args, name);
    if (request->tokens > 0 || asks_tag || is_for_cluster || hli_command_is_deaf(name))
        lock_add_wishes(&args, name, request->tokens, asks_tag);
    return hli_args_end(&args, op);
}

/* fence_release has two more keys behind the lock's, and the data behind the words of lock_release.
 */
static void lock_begin_release(struct hli_args *args, const struct hli_tenure *tenure,
                               const struct hli_write *write)
{
    const struct hli_name *name = tenure->name;

    if (!write) {
        hli_command_begin(args, HLI_SCRIPT_LOCK_RELEASE, name);
    } else {
        hli_args_begin_script(args, HLI_SCRIPT_FENCE_RELEASE, 3);
        hli_command_name(args, name);
        hli_write_keys(write, args);
    }
}

/* Tokens follow the clock; and a value is written for a hold that the server has lost, while it
 * would be reclaimed. */
static void lock_add_grace(struct hli_args *args, const struct hli_tenure *tenure, bool has_token,
                           const struct hli_write *write)
{
    hli_ns now = hli_now(), needed = HLI_MS(tenure->name->client->settings.old_master_ms);
    bool is_unmet = write && hli_grace_is_missed(tenure, now);

    if (!has_token && is_unmet)
        hli_args_text(args, "");
    if (has_token || is_unmet)
        hli_args_text(args, "1");
    if (is_unmet)
        hli_args_number(args,
                        hli_grace_lasts_ms(tenure->name, tenure->was_valid_until - needed, now));
}

/* A release of a fenced hold passes the token key, so that the next holder gets a token. One that
 * goes alone does not: the next holder asks for its token. */
static int lock_format_release(const struct hli_tenure *tenure, struct hli_op *op,
                               const struct hli_release_request *release_request)
{
    const struct hli_name *name = tenure->name;
    bool is_for_cluster = name->client->wording->is_for_cluster;
    bool is_alone = is_for_cluster && hli_command_is_alone(name);
    bool has_token = tenure->hold.token != 0 && !is_alone;
    struct hli_args args;

    lock_begin_release(&args, tenure, release_request->write);
    if (is_for_cluster)
        lock_declare(&args, name, is_alone, has_token);
    hli_command_field(&args, tenure);
    hli_args_number(&args, release_request->count);
    hli_args_number(&args, release_request->lease_ms);
    hli_args_number(&args, release_request->min_hold_left_ms);
    if (release_request->is_silent)
        hli_args_text(&args, "");
    else
        hli_command_channel(&args, name);
    hli_args_text(&args, name->client->wording->publish);
    if (HLI_GRACE_IS_ON(name->client) && hli_grace_until(name, hli_now()) != 0)
        hli_args_text(&args, "");
    else
        hli_command_derived(&args, name, HLI_NAME_QUEUE);
    hli_command_mailbox(&args, name);
    hli_args_number(&args, hli_command_claim_ms(name->client));
    hli_command_derived(&args, name, HLI_NAME_OWN_CHANNEL);
    hli_args_number(&args, release_request->yields && !release_request->is_silent);
    hli_args_text(&args, name->client->wording->numsub);
    if (has_token)
        hli_command_derived(&args, name, HLI_NAME_TOKEN);
    if (HLI_GRACE_IS_ON(name->client))
        lock_add_grace(&args, tenure, has_token, release_request->write);
    if (release_request->write)
        hli_write_words(release_request->write, &args);
    return hli_args_end(&args, op);
}

static int lock_keep(const struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms)
{
    const struct hli_name *name = tenure->name;
    struct hli_args args;

    hli_command_begin(&args, HLI_SCRIPT_LOCK_KEEP, name);
    if (name->client->wording->is_for_cluster)
        lock_declare(&args, name, hli_command_is_alone(name), false);
    hli_command_field(&args, tenure);
    hli_args_number(&args, lease_ms);
    hli_command_channel(&args, name);
    hli_command_derived(&args, name, HLI_NAME_QUEUE);
    hli_command_derived(&args, name, HLI_NAME_OWN_CHANNEL);
    hli_args_text(&args, name->client->wording->numsub);
    return hli_args_end(&args, op);
}

static const struct hli_tenure *lock_asker(const struct hli_batch *batch, size_t index)
{
    return HLI_PART_OF(batch->ops[index], struct hli_tenure, ask);
}

static const struct hli_tenure *lock_releaser(const struct hli_batch *batch, size_t index)
{
    return HLI_PART_OF(batch->ops[index], struct hli_tenure, release);
}

/* Goes alone if any of its names does. */
static bool lock_declare_all(struct hli_args *args, const struct hli_batch *batch)
{
    bool is_alone = false;

    for (size_t i = 0; i < batch->count; i++)
        is_alone = is_alone || hli_command_is_alone(lock_asker(batch, i)->name);
    for (size_t i = 0; i < batch->count; i++) {
        lock_declare(args, lock_asker(batch, i)->name, is_alone, false);
        hli_tag_declare(lock_asker(batch, i)->name, args);
    }
    return is_alone;
}

/* In a cluster each name has a mailbox of its own, which the script writes itself; whether messages
 * reach it, the member's own next request says. */
static int lock_format_acquire_all(struct hli_batch *batch,
                                   const struct hli_acquire_request *request)
{
    const struct hli_name *first = lock_asker(batch, 0)->name;
    const struct hli_wording *wording = first->client->wording;
    bool is_alone = false;
    bool is_deaf = !wording->is_for_cluster && atomic_load(&first->client->is_deaf);
    struct hli_args args;

    hli_args_begin_script(&args, HLI_SCRIPT_MULTI_ACQUIRE, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        hli_command_name(&args, lock_asker(batch, i)->name);
    if (wording->is_for_cluster)
        is_alone = lock_declare_all(&args, batch);
    hli_args_number(&args, request->lease_ms);
    hli_args_number(&args, request->queues);
    hli_args_number(&args, is_alone ? 0 : LOCK_QUEUE_POLLS * first->client->settings.poll_ms);
    hli_args_text(&args, wording->is_for_cluster ? "" : HLI_MAILBOX);
    for (size_t i = 0; i < batch->count; i++) {
        const struct hli_tenure *tenure = lock_asker(batch, i);
        hli_command_field(&args, tenure);
        hli_command_derived(&args, tenure->name, HLI_NAME_QUEUE);
        if (hli_tag_is_asked(tenure->name))
            hli_command_derived(&args, tenure->name, HLI_NAME_TAG);
        else
            hli_args_text(&args, "");
    }
    if (wording->is_for_cluster || is_deaf)
        hli_args_text(&args, wording->publish);
    if (is_deaf)
        hli_args_number(&args, hli_command_sign_ms(first->client));
    return hli_args_end(&args, &batch->op);
}

static int lock_format_release_all(struct hli_batch *batch)
{
    const struct hli_wording *wording = lock_releaser(batch, 0)->name->client->wording;
    struct hli_args args;

    hli_args_begin_script(&args, HLI_SCRIPT_MULTI_RELEASE, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        hli_command_name(&args, lock_releaser(batch, i)->name);
    for (size_t i = 0; wording->is_for_cluster && i < batch->count; i++)
        lock_declare(&args, lock_releaser(batch, i)->name,
                     hli_command_is_alone(lock_releaser(batch, i)->name), false);
    hli_args_text(&args, wording->publish);
    hli_args_text(&args, wording->numsub);
    for (size_t i = 0; i < batch->count; i++) {
        const struct hli_tenure *tenure = lock_releaser(batch, i);
        hli_command_field(&args, tenure);
        hli_command_channel(&args, tenure->name);
        hli_command_derived(&args, tenure->name, HLI_NAME_QUEUE);
        hli_command_derived(&args, tenure->name, HLI_NAME_OWN_CHANNEL);
        hli_args_number(&args, tenure->release_yields);
    }
    return hli_args_end(&args, &batch->op);
}

void hli_lock_say_inspect(const struct hli_name *name, struct hli_args *args)
{
    hli_command_begin(args, HLI_SCRIPT_LOCK_INSPECT, name);
    if (name->client->wording->is_for_cluster)
        hli_tag_declare(name, args);
    hli_tag_key(name, args);
}

static void lock_say_force(const struct hli_name *name, struct hli_args *args)
{
    hli_command_begin(args, HLI_SCRIPT_LOCK_FORCE_RELEASE, name);
    hli_command_publish(args, name);
    hli_command_holders_mailbox(args, name);
}

const struct hli_kind hli_kind_lock = {
    .id = 'l',
    .is_handed_on = true,
    .writes = true,
    .is_tagged = true,
    .channel = HLI_NAME_REDISSON_CHANNEL,
    .field_suffix = "",
    .renew = HLI_SCRIPT_LOCK_RENEW,
    .reclaim = HLI_SCRIPT_LOCK_RECLAIM,
    .tag = HLI_SCRIPT_LOCK_TAG,
    .acquire = lock_format_acquire,
    .release = lock_format_release,
    .keep = lock_keep,
    .acquire_all = lock_format_acquire_all,
    .release_all = lock_format_release_all,
    .inspect = hli_lock_say_inspect,
    .force = lock_say_force,
};
