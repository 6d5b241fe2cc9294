/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lock's kind: the words of its commands, for one lock and for several at once. */
#include "sync/lock/lock_kind.h"

#include "base/check.h"
#include "lease/hold/tag.h"
#include "lease/hold/write.h"
#include "lease/several/batch.h"
#include "lease/state/name.h"

/* Lifetime in polls of a queue that no waiter renews. */
enum { LOCK_QUEUE_POLLS = 10 };

static int lock_format_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                               const struct hli_acquire_request *request)
{
    const struct hli_name *name = tenure->name;
    bool asks_tag = (name->client->settings.flags & HL_CLIENT_HOLDER_INFO) != 0;
    struct hli_args args;

    hli_command_begin(&args, HLI_SCRIPT_LOCK_ACQUIRE, name);
    hli_command_field(&args, tenure);
    hli_args_number(&args, request->lease_ms);
    hli_args_number(&args, request->count);
    hli_command_derived(&args, name, HLI_NAME_QUEUE);
    hli_args_number(&args, request->queues ? LOCK_QUEUE_POLLS * name->client->settings.poll_ms : 0);
    hli_args_text(&args, HLI_MAILBOX);
    if (request->tokens > 0)
        hli_command_derived(&args, name, HLI_NAME_TOKEN);
    else if (asks_tag)
        hli_args_text(&args, "");
    if (request->tokens > 0 || asks_tag)
        hli_args_number(&args, request->tokens);
    if (asks_tag)
        hli_command_derived(&args, name, HLI_NAME_TAG);
    return hli_args_end(&args, op);
}

/* fence_release has two more keys behind the lock's, and the data behind the words of lock_release.
 */
static void lock_begin_release(struct hli_args *args, const struct hli_name *name,
                               const struct hli_write *write)
{
    if (!write) {
        hli_command_begin(args, HLI_SCRIPT_LOCK_RELEASE, name);
        return;
    }
    hli_args_begin_script(args, HLI_SCRIPT_FENCE_RELEASE, 3);
    hli_command_name(args, name);
    hli_write_keys(write, args);
}

/* A release of a fenced hold passes the token key, so that the next holder gets a token. */
static int lock_format_release(const struct hli_tenure *tenure, struct hli_op *op,
                               const struct hli_release_request *release_request)
{
    const struct hli_name *name = tenure->name;
    struct hli_args args;

    lock_begin_release(&args, name, release_request->write);
    hli_command_field(&args, tenure);
    hli_args_number(&args, release_request->count);
    hli_args_number(&args, release_request->lease_ms);
    hli_args_number(&args, release_request->min_hold_left_ms);
    if (release_request->is_silent)
        hli_args_text(&args, "");
    else
        hli_command_publish(&args, name);
    hli_command_derived(&args, name, HLI_NAME_QUEUE);
    hli_args_text(&args, HLI_MAILBOX);
    hli_args_number(&args, hli_command_claim_ms(name->client));
    hli_command_derived(&args, name, HLI_NAME_OWN_CHANNEL);
    hli_args_number(&args, release_request->yields && !release_request->is_silent);
    hli_args_text(&args, "NUMSUB");
    if (tenure->hold.token != 0)
        hli_command_derived(&args, name, HLI_NAME_TOKEN);
    if (release_request->write)
        hli_write_words(release_request->write, &args);
    return hli_args_end(&args, op);
}

static int lock_keep(const struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms)
{
    const struct hli_name *name = tenure->name;
    struct hli_args args;

    hli_command_begin(&args, HLI_SCRIPT_LOCK_KEEP, name);
    hli_command_field(&args, tenure);
    hli_args_number(&args, lease_ms);
    hli_command_channel(&args, name);
    hli_command_derived(&args, name, HLI_NAME_QUEUE);
    hli_command_derived(&args, name, HLI_NAME_OWN_CHANNEL);
    hli_args_text(&args, "NUMSUB");
    return hli_args_end(&args, op);
}

static int lock_format_acquire_all(struct hli_batch *batch,
                                   const struct hli_acquire_request *request)
{
    struct hli_args args;

    hli_args_begin_script(&args, HLI_SCRIPT_MULTI_ACQUIRE, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        hli_command_name(&args, HLI_OF(batch->ops[i], struct hli_tenure, ask)->name);
    hli_args_number(&args, request->lease_ms);
    hli_args_number(&args, request->queues);
    hli_args_number(
        &args, LOCK_QUEUE_POLLS *
                   HLI_OF(batch->ops[0], struct hli_tenure, ask)->name->client->settings.poll_ms);
    hli_args_text(&args, HLI_MAILBOX);
    for (size_t i = 0; i < batch->count; i++) {
        const struct hli_tenure *tenure = HLI_OF(batch->ops[i], struct hli_tenure, ask);
        hli_command_field(&args, tenure);
        hli_command_derived(&args, tenure->name, HLI_NAME_QUEUE);
        if (hli_tag_is_asked(tenure->name))
            hli_command_derived(&args, tenure->name, HLI_NAME_TAG);
        else
            hli_args_text(&args, "");
    }
    return hli_args_end(&args, &batch->op);
}

static int lock_format_release_all(struct hli_batch *batch)
{
    struct hli_args args;

    hli_args_begin_script(&args, HLI_SCRIPT_MULTI_RELEASE, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        hli_command_name(&args, HLI_OF(batch->ops[i], struct hli_tenure, release)->name);
    hli_args_text(&args, "PUBLISH");
    hli_args_text(&args, "NUMSUB");
    for (size_t i = 0; i < batch->count; i++) {
        const struct hli_tenure *tenure = HLI_OF(batch->ops[i], struct hli_tenure, release);
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
    hli_tag_key(name, args);
}

static void lock_say_force(const struct hli_name *name, struct hli_args *args)
{
    hli_command_begin(args, HLI_SCRIPT_LOCK_FORCE_RELEASE, name);
    hli_command_publish(args, name);
}

const struct hli_kind hli_kind_lock = {
    .id = 'l',
    .is_handed_on = true,
    .writes = true,
    .is_tagged = true,
    .channel = HLI_NAME_REDISSON_CHANNEL,
    .field_suffix = "",
    .renew = HLI_SCRIPT_LOCK_RENEW,
    .tag = HLI_SCRIPT_LOCK_TAG,
    .acquire = lock_format_acquire,
    .release = lock_format_release,
    .keep = lock_keep,
    .acquire_all = lock_format_acquire_all,
    .release_all = lock_format_release_all,
    .inspect = hli_lock_say_inspect,
    .force = lock_say_force,
};
