/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The fair lock: a kind in which each owner queues for himself, under the number of his one tenure,
 * and listens to a channel of his own. */
#include <hirelock/fair_lock.h>

#include "lease/command.h"
#include "lease/tag.h"
#include "sync/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FAIR_GRACE_MS = 1000, /* to subscribe in, for one who has just queued */
    FAIR_STAND_POLLS = 5, /* so many polls may be missed before the place is given up */
    /* What one of ours adds to the end of a predecessor of Redisson's: Redisson's own default. That
     * one's turn takes as much away from it, however short this caller wants to wait. */
    FAIR_WAIT_MS = 300000,
    FAIR_COMMON = 4, /* words of each call */
    FAIR_OWN = 5,    /* words behind them, at most */
};

static int fair_say(struct hli_op *op, hli_script_id script, const struct hli_name *name,
                    const struct hli_bytes *own, size_t own_count)
{
    char stand[HLI_NUMBER_SIZE], grace[HLI_NUMBER_SIZE];
    const struct hli_bytes key = {name->bytes, name->length};
    struct hli_bytes args[FAIR_COMMON + FAIR_OWN] = {
        hli_bytes_of("PUBLISH"), hli_bytes_of("NUMSUB"),
        hli_command_number(stand, FAIR_STAND_POLLS * name->client->settings.poll_ms),
        hli_command_number(grace, FAIR_GRACE_MS)};

    if (own_count > 0)
        memcpy(args + FAIR_COMMON, own, own_count * sizeof(*own));
    return hli_op_script(op, script,
                         &(struct hli_script_words){&key, 1, args, FAIR_COMMON + own_count});
}

static int fair_take(const struct hli_tenure *tenure, struct hli_op *op,
                     const struct hli_taking *taking)
{
    char field[HLI_FIELD_SIZE], lease[HLI_NUMBER_SIZE], want[HLI_NUMBER_SIZE];
    char wait[HLI_NUMBER_SIZE], tag[HLI_CHANNEL_SIZE];
    const struct hli_bytes own[FAIR_OWN] = {
        hli_bytes_of(hli_tenure_field(tenure, field)), hli_command_number(lease, taking->lease_ms),
        hli_command_number(want, taking->count),
        hli_command_number(wait, taking->queues ? FAIR_WAIT_MS : 0),
        hli_tag_key(tenure->name, tag)};

    return fair_say(op, HLI_SCRIPT_FAIR_LOCK_ACQUIRE, tenure->name, own, own[4].length > 0 ? 5 : 4);
}

static int fair_leave(const struct hli_tenure *tenure, struct hli_op *op,
                      const struct hli_leaving *leaving)
{
    char field[HLI_FIELD_SIZE], want[HLI_NUMBER_SIZE], lease[HLI_NUMBER_SIZE];
    char rest[HLI_NUMBER_SIZE];
    const struct hli_bytes own[] = {
        hli_bytes_of(hli_tenure_field(tenure, field)), hli_command_number(want, leaving->count),
        hli_command_number(lease, leaving->lease_ms), hli_command_number(rest, leaving->rest_ms)};

    return fair_say(op, HLI_SCRIPT_FAIR_LOCK_RELEASE, tenure->name, own, 4);
}

/* Redisson's channel for this one waiter: the lock's, and the waiter's field. */
static size_t fair_write_channel(const struct hli_name *name, char *text)
{
    size_t used = hli_name_write(name, HLI_NAME_REDISSON_CHANNEL, text);

    return used + (size_t)snprintf(text + used, HLI_CHANNEL_SIZE - used, ":%s:%" PRIu64,
                                   name->client->id, hli_name_number(name));
}

static const struct hli_kind fair_kind = {
    .id = 'f',
    .is_per_owner = true,
    .is_used_once = true,
    .is_tagged = true,
    .field_suffix = "",
    .renew = HLI_SCRIPT_LOCK_RENEW,
    .take = fair_take,
    .leave = fair_leave,
    .write_channel = fair_write_channel,
};

static int fair_inspect(const struct hli_name *name, struct hli_op *op)
{
    return hli_lock_type.inspect(name, op);
}

static int fair_force(const struct hli_name *name, struct hli_op *op)
{
    return fair_say(op, HLI_SCRIPT_FAIR_LOCK_FORCE_RELEASE, name, NULL, 0);
}

static const struct hli_lock_type fair_type = {
    .kind = &fair_kind,
    .inspect = fair_inspect,
    .force = fair_force,
};

int hl_fair_lock_new(hl_client *client, const char *name, const hl_lock_options *options,
                     hl_lock **ret_lock, hl_error *err)
{
    const struct hli_lock_said said = {&fair_type, name, options};

    return hli_lock_new(client, &said, ret_lock, err);
}
