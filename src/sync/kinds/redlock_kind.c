/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The Redlock's kinds, and the words of its requests: those at one server, and those at all
 * masters.
 */
#include "lease/several/ballot_steps.h"
#include "lease/several/voter.h"
#include "lease/state/command.h"
#include "sync/kinds/redlock.h"

#include <string.h>

static int redlock_format_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                                  const struct hli_acquire_request *request)
{
    struct hli_args args;

    hli_command_begin(&args, HLI_SCRIPT_REDLOCK_ACQUIRE, tenure->name);
    if (request->young_ms > 0)
        hli_args_key(&args, (struct hli_bytes){HLI_NAME_DATA, strlen(HLI_NAME_DATA)});
    hli_command_field(&args, tenure);
    hli_args_number(&args, request->lease_ms);
    if (request->young_ms > 0)
        hli_args_number(&args, request->young_ms);
    return hli_args_end(&args, op);
}

static int redlock_format_release(const struct hli_tenure *tenure, struct hli_op *op,
                                  const struct hli_release_request *release_request)
{
    const struct hli_name *name = tenure->name;
    struct hli_args args;

    hli_command_begin(&args, HLI_SCRIPT_REDLOCK_RELEASE, name);
    hli_command_field(&args, tenure);
    hli_args_number(&args, release_request->min_hold_left_ms);
    if (release_request->is_silent)
        hli_args_text(&args, "");
    else
        hli_command_channel(&args, name);
    hli_args_text(&args, name->client->wording->publish);
    return hli_args_end(&args, op);
}

static void redlock_say_inspect(const struct hli_name *name, struct hli_args *args)
{
    hli_command_begin(args, HLI_SCRIPT_REDLOCK_INSPECT, name);
}

static void redlock_say_force(const struct hli_name *name, struct hli_args *args)
{
    hli_command_begin(args, HLI_SCRIPT_REDLOCK_FORCE_RELEASE, name);
    hli_command_publish(args, name);
    hli_command_holders_mailbox(args, name);
}

const struct hli_kind hli_kind_classic = {
    .id = 'k',
    .has_no_count = true,
    .channel = HLI_NAME_REDLOCK_CHANNEL,
    .field_suffix = "",
    .renew = HLI_SCRIPT_REDLOCK_RENEW,
    .acquire = redlock_format_acquire,
    .release = redlock_format_release,
    .inspect = redlock_say_inspect,
    .force = redlock_say_force,
};

const struct hli_kind hli_kind_voter = {
    .id = 'v',
    .is_per_owner = true,
    .has_no_count = true,
    .channel = HLI_NAME_REDLOCK_CHANNEL,
    .field_suffix = "",
    .renew = HLI_SCRIPT_REDLOCK_RENEW,
    .acquire = redlock_format_acquire,
    .release = redlock_format_release,
    .inspect = redlock_say_inspect,
    .force = redlock_say_force,
    .whole = &hli_kind_redlock,
    .changed = hli_voter_changed,
    .heard = hli_voter_heard,
};

const struct hli_kind hli_kind_redlock = {
    .id = 'q',
    .has_no_count = true,
    .channel = HLI_NAME_REDLOCK_CHANNEL,
    .field_suffix = "",
    .acquire = hli_ballot_acquire,
    .release = hli_ballot_release,
    .quorum = &hli_ballot_hooks,
};
