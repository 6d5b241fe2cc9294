/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The words of the read-write lock's commands. */
#include "sync/rw_command.h"

#include "lease/acquire.h"
#include "lease/command.h"
#include "lease/tag.h"

#include <inttypes.h>
#include <stdio.h>

#define RW_CHANNEL "redisson_rwlock:"
#define RW_WRITE_SUFFIX ":write"

enum { RW_PREFER_POLLS = 3 }; /* so many the key stands; the writer asks again with each */

/* The field by which the reader that asks holds the lock for writing, or "". */
static struct hli_bytes rw_under(const struct hli_name *name, char text[HLI_FIELD_SIZE])
{
    const struct hli_acquire *acquire = TAILQ_FIRST(&name->waiters);

    text[0] = '\0';
    if (acquire && acquire->way.under != 0)
        snprintf(text, HLI_FIELD_SIZE, "%s:%" PRIu64 RW_WRITE_SUFFIX, name->client->id,
                 acquire->way.under);
    return hli_bytes_of(text);
}

static int rw_read_take(const struct hli_tenure *tenure, struct hli_op *op,
                        const struct hli_taking *taking)
{
    char field[HLI_FIELD_SIZE], under[HLI_FIELD_SIZE], writer[HLI_CHANNEL_SIZE];
    char lease[HLI_NUMBER_SIZE], want[HLI_NUMBER_SIZE], tag[HLI_CHANNEL_SIZE];
    const struct hli_bytes key = hli_command_key(tenure);
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     hli_command_number(lease, taking->lease_ms),
                                     hli_command_number(want, taking->count),
                                     hli_command_derived(tenure, HLI_NAME_WRITER, writer),
                                     rw_under(tenure->name, under),
                                     hli_tag_key(tenure->name, tag)};

    return hli_op_script(op, HLI_SCRIPT_RW_READ_ACQUIRE,
                         &(struct hli_script_words){&key, 1, args, args[5].length > 0 ? 6 : 5});
}

/* For how long new readers are asked to stay away: 0 unless somebody waits who wants that. A try is
 * over with its answer, and nobody's time is worth less for it. */
static int64_t rw_prefer_ms(const struct hli_name *name)
{
    const struct hli_acquire *acquire;

    TAILQ_FOREACH (acquire, &name->waiters, link)
        if (acquire->way.goes_first && !acquire->is_try)
            return RW_PREFER_POLLS * name->client->settings.poll_ms;
    return 0;
}

static int rw_write_take(const struct hli_tenure *tenure, struct hli_op *op,
                         const struct hli_taking *taking)
{
    char field[HLI_FIELD_SIZE], writer[HLI_CHANNEL_SIZE];
    char lease[HLI_NUMBER_SIZE], want[HLI_NUMBER_SIZE], prefer[HLI_NUMBER_SIZE];
    char tag[HLI_CHANNEL_SIZE];
    const struct hli_bytes key = hli_command_key(tenure);
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     hli_command_number(lease, taking->lease_ms),
                                     hli_command_number(want, taking->count),
                                     hli_command_derived(tenure, HLI_NAME_WRITER, writer),
                                     hli_command_number(prefer, rw_prefer_ms(tenure->name)),
                                     hli_tag_key(tenure->name, tag)};

    return hli_op_script(op, HLI_SCRIPT_RW_WRITE_ACQUIRE,
                         &(struct hli_script_words){&key, 1, args, args[5].length > 0 ? 6 : 5});
}

static int rw_leave(const struct hli_tenure *tenure, struct hli_op *op,
                    const struct hli_leaving *leaving)
{
    char field[HLI_FIELD_SIZE], channel[HLI_CHANNEL_SIZE], writer[HLI_CHANNEL_SIZE];
    char want[HLI_NUMBER_SIZE], lease[HLI_NUMBER_SIZE], rest[HLI_NUMBER_SIZE];
    bool is_write = tenure->name->kind == &hli_kind_write;
    const struct hli_bytes key = hli_command_key(tenure);
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     hli_command_number(want, leaving->count),
                                     hli_command_number(lease, leaving->lease_ms),
                                     hli_command_number(rest, leaving->rest_ms),
                                     hli_command_derived(tenure, RW_CHANNEL, channel),
                                     hli_bytes_of("PUBLISH"),
                                     hli_command_derived(tenure, HLI_NAME_WRITER, writer)};

    return hli_op_script(op, is_write ? HLI_SCRIPT_RW_WRITE_RELEASE : HLI_SCRIPT_RW_READ_RELEASE,
                         &(struct hli_script_words){&key, 1, args, is_write ? 7 : 6});
}

/* Kept up, for a renewal of Redisson's may leave the lock with less than our longest lease. */
const struct hli_kind hli_kind_read = {
    .id = 'r',
    .is_per_owner = true,
    .is_kept_up = true,
    .sister = &hli_kind_write,
    .channel = RW_CHANNEL,
    .field_suffix = "",
    .renew = HLI_SCRIPT_RW_READ_RENEW,
    .take = rw_read_take,
    .leave = rw_leave,
};

/* A write hold is one field of a hash with one lease, as a lock's is, and so is its renewal. */
const struct hli_kind hli_kind_write = {
    .id = 'w',
    .is_tagged = true,
    .sister = &hli_kind_read,
    .channel = RW_CHANNEL,
    .field_suffix = RW_WRITE_SUFFIX,
    .renew = HLI_SCRIPT_LOCK_RENEW,
    .take = rw_write_take,
    .leave = rw_leave,
};

static struct hli_bytes rw_mode(const struct hli_name *name)
{
    return hli_bytes_of(name->kind == &hli_kind_write ? "write" : "read");
}

int hli_rw_inspect_format(const struct hli_name *name, struct hli_op *op)
{
    const struct hli_bytes key = {name->bytes, name->length};
    char tag[HLI_CHANNEL_SIZE];
    const struct hli_bytes args[] = {rw_mode(name), hli_bytes_of(name->client->id),
                                     hli_tag_key(name, tag)};

    return hli_op_script(op, HLI_SCRIPT_RW_INSPECT,
                         &(struct hli_script_words){&key, 1, args, args[2].length > 0 ? 3 : 2});
}

int hli_rw_force_format(const struct hli_name *name, struct hli_op *op)
{
    char channel[HLI_CHANNEL_SIZE];
    const struct hli_bytes key = {name->bytes, name->length};
    const struct hli_bytes args[] = {
        rw_mode(name), {channel, hli_name_write_channel(name, channel)}, hli_bytes_of("PUBLISH")};

    return hli_op_script(op, HLI_SCRIPT_RW_FORCE_RELEASE,
                         &(struct hli_script_words){&key, 1, args, 3});
}
