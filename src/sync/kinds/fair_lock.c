/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The fair lock: a kind in which each owner has its own place in the queue, under the number of its
 * tenure, and its own channel. */
#include "lease/hold/tag.h"
#include "lease/state/command.h"
#include "sync/kinds/types.h"
#include "sync/lock/lock_kind.h"

#include <stdio.h>

enum {
    FAIR_GRACE_MS = 1000, /* time to subscribe for a waiter that has just queued */
    FAIR_STAND_POLLS = 5, /* polls that a waiter may miss before it loses its place */
};

/* The keys of each call. */
static void fair_begin(struct hli_args *args, hli_script_id script, const struct hli_name *name)
{
    hli_command_begin(args, script, name);
    if (!name->client->wording->is_for_cluster)
        return;
    hli_command_declare(args, name, "redisson_lock_queue:");
    hli_command_declare(args, name, "redisson_lock_timeout:");
    hli_command_declare(args, name, HLI_NAME_FAIR);
}

static void fair_add_times(struct hli_args *args, const struct hli_name *name)
{
    const struct hli_wording *wording = name->client->wording;

    hli_args_text(args, wording->publish);
    hli_args_text(args, wording->numsub);
    hli_args_number(args, FAIR_STAND_POLLS * name->client->settings.poll_ms);
    hli_args_number(args, FAIR_GRACE_MS);
}

static int fair_format_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                               const struct hli_acquire_request *request)
{
    struct hli_args args;

    fair_begin(&args, HLI_SCRIPT_FAIR_LOCK_ACQUIRE, tenure->name);
    if (tenure->name->client->wording->is_for_cluster)
        hli_tag_declare(tenure->name, &args);
    fair_add_times(&args, tenure->name);
    hli_command_field(&args, tenure);
    hli_args_number(&args, request->lease_ms);
    hli_args_number(&args, request->count);
    hli_args_number(&args, request->queues);
    hli_tag_key(tenure->name, &args);
    return hli_args_end(&args, op);
}

static int fair_format_release(const struct hli_tenure *tenure, struct hli_op *op,
                               const struct hli_release_request *release_request)
{
    struct hli_args args;

    fair_begin(&args, HLI_SCRIPT_FAIR_LOCK_RELEASE, tenure->name);
    fair_add_times(&args, tenure->name);
    hli_command_field(&args, tenure);
    hli_args_number(&args, release_request->count);
    hli_args_number(&args, release_request->lease_ms);
    hli_args_number(&args, release_request->min_hold_left_ms);
    return hli_args_end(&args, op);
}

/* Redisson's channel for this one waiter: the lock's, and the waiter's field. */
static size_t fair_write_channel(const struct hli_tenure *tenure, char *text)
{
    size_t used = hli_name_write(tenure->name, HLI_NAME_REDISSON_CHANNEL, text);
    char field[HLI_FIELD_SIZE];

    return used + (size_t)snprintf(text + used, HLI_CHANNEL_SIZE - used, ":%s",
                                   hli_tenure_field(tenure, field));
}

static void fair_say_force(const struct hli_name *name, struct hli_args *args)
{
    fair_begin(args, HLI_SCRIPT_FAIR_LOCK_FORCE_RELEASE, name);
    fair_add_times(args, name);
    hli_command_holders_mailbox(args, name);
}

static const struct hli_kind fair_kind = {
    .id = 'f',
    .is_per_owner = true,
    .is_braced = true,
    .is_tagged = true,
    .field_suffix = "",
    .renew = HLI_SCRIPT_LOCK_RENEW,
    .reclaim = HLI_SCRIPT_LOCK_RECLAIM,
    .tag = HLI_SCRIPT_LOCK_TAG,
    .acquire = fair_format_acquire,
    .release = fair_format_release,
    .write_channel = fair_write_channel,
    .inspect = hli_lock_say_inspect,
    .force = fair_say_force,
};

const struct hli_lock_type hli_fair_type = {.kind = &fair_kind};
