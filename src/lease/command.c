/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The words of the lock's commands. Numbers are written here, so that no script has to round one.
 */
#include "lease/command.h"

#include "lease/tag.h"
#include "lease/write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct hli_bytes hli_command_number(char text[HLI_NUMBER_SIZE], int64_t number)
{
    snprintf(text, HLI_NUMBER_SIZE, "%" PRId64, number);
    return hli_bytes_of(text);
}

int64_t hli_command_claim_ms(const hl_client *client)
{
    int64_t poll_ms = client->settings.poll_ms, watchdog_ms = client->settings.watchdog_timeout_ms;

    if (watchdog_ms >= 4 * poll_ms)
        return 4 * poll_ms;
    return watchdog_ms > 2 * poll_ms ? watchdog_ms : 2 * poll_ms;
}

struct hli_bytes hli_command_derived(const struct hli_tenure *tenure, const char *prefix,
                                     char text[HLI_CHANNEL_SIZE])
{
    return (struct hli_bytes){text, hli_name_write(tenure->name, prefix, text)};
}

struct hli_bytes hli_command_key(const struct hli_tenure *tenure)
{
    return (struct hli_bytes){tenure->name->bytes, tenure->name->length};
}

/* Ten polls without a new member. */
int64_t hli_command_queue_ms(const hl_client *client)
{
    return 10 * client->settings.poll_ms;
}

/* lock_acquire. */
static int command_take(const struct hli_tenure *tenure, struct hli_op *op,
                        const struct hli_taking *taking)
{
    char field[HLI_FIELD_SIZE], queue[HLI_CHANNEL_SIZE], token_key[HLI_CHANNEL_SIZE];
    char lease[HLI_NUMBER_SIZE], want[HLI_NUMBER_SIZE], stands[HLI_NUMBER_SIZE];
    char tokens[HLI_NUMBER_SIZE], tag[HLI_CHANNEL_SIZE];
    int64_t queue_ms = taking->queues ? hli_command_queue_ms(tenure->name->client) : 0;
    const struct hli_bytes key = hli_command_key(tenure);
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     hli_command_number(lease, taking->lease_ms),
                                     hli_command_number(want, taking->count),
                                     hli_command_derived(tenure, HLI_NAME_QUEUE, queue),
                                     hli_command_number(stands, queue_ms),
                                     hli_bytes_of(HLI_MAILBOX),
                                     taking->tokens > 0
                                         ? hli_command_derived(tenure, HLI_NAME_TOKEN, token_key)
                                         : hli_bytes_of(""),
                                     hli_command_number(tokens, taking->tokens),
                                     hli_tag_key(tenure->name, tag)};
    size_t count = args[8].length > 0 ? 9 : taking->tokens > 0 ? 8 : 6;

    return hli_op_script(op, HLI_SCRIPT_LOCK_ACQUIRE,
                         &(struct hli_script_words){&key, 1, args, count});
}

/* fence_release: the words of lock_release, and what is written. */
static int command_leave_writing(struct hli_op *op, const struct hli_write *write,
                                 const struct hli_script_words *said)
{
    enum { MOST = 13 };
    struct hli_bytes keys[3] = {said->keys[0]}, args[MOST + HLI_WRITE_WORDS];

    hli_write_keys(write, keys + 1);
    memcpy(args, said->args, said->arg_count * sizeof(*args));
    hli_write_words(write, args + said->arg_count);
    return hli_op_script(
        op, HLI_SCRIPT_FENCE_RELEASE,
        &(struct hli_script_words){keys, 3, args, said->arg_count + HLI_WRITE_WORDS});
}

/* lock_release. Who has a token hands one on. */
static int command_leave(const struct hli_tenure *tenure, struct hli_op *op,
                         const struct hli_leaving *leaving)
{
    char redisson[HLI_CHANNEL_SIZE], own[HLI_CHANNEL_SIZE], queue[HLI_CHANNEL_SIZE];
    char field[HLI_FIELD_SIZE], want[HLI_NUMBER_SIZE], lease[HLI_NUMBER_SIZE];
    char rest[HLI_NUMBER_SIZE], claim[HLI_NUMBER_SIZE], token_key[HLI_CHANNEL_SIZE];
    bool has_token = tenure->hold.token != 0;
    const struct hli_bytes key = hli_command_key(tenure);
    const struct hli_bytes args[] = {
        hli_bytes_of(hli_tenure_field(tenure, field)),
        hli_command_number(want, leaving->count),
        hli_command_number(lease, leaving->lease_ms),
        hli_command_number(rest, leaving->rest_ms),
        leaving->is_silent ? hli_bytes_of("")
                           : hli_command_derived(tenure, HLI_NAME_REDISSON_CHANNEL, redisson),
        hli_bytes_of("PUBLISH"),
        hli_command_derived(tenure, HLI_NAME_QUEUE, queue),
        hli_bytes_of(HLI_MAILBOX),
        hli_command_number(claim, hli_command_claim_ms(tenure->name->client)),
        hli_command_derived(tenure, HLI_NAME_OWN_CHANNEL, own),
        hli_bytes_of(leaving->is_courteous && !leaving->is_silent ? "1" : "0"),
        hli_bytes_of("NUMSUB"),
        hli_command_derived(tenure, HLI_NAME_TOKEN, token_key),
    };

    const struct hli_script_words said = {&key, 1, args, has_token ? 13 : 12};

    return leaving->write ? command_leave_writing(op, leaving->write, &said)
                          : hli_op_script(op, HLI_SCRIPT_LOCK_RELEASE, &said);
}

const struct hli_kind hli_kind_lock = {
    .id = 'l',
    .is_handed_on = true,
    .is_bundled = true,
    .writes = true,
    .is_tagged = true,
    .channel = HLI_NAME_REDISSON_CHANNEL,
    .field_suffix = "",
    .renew = HLI_SCRIPT_LOCK_RENEW,
    .take = command_take,
    .leave = command_leave,
};

int hli_command_keep(const struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms)
{
    char redisson[HLI_CHANNEL_SIZE], own[HLI_CHANNEL_SIZE], queue[HLI_CHANNEL_SIZE];
    char field[HLI_FIELD_SIZE], lease[HLI_NUMBER_SIZE];
    const struct hli_bytes key = hli_command_key(tenure);
    const struct hli_bytes args[] = {
        hli_bytes_of(hli_tenure_field(tenure, field)),
        hli_command_number(lease, lease_ms),
        hli_command_derived(tenure, HLI_NAME_REDISSON_CHANNEL, redisson),
        hli_command_derived(tenure, HLI_NAME_QUEUE, queue),
        hli_command_derived(tenure, HLI_NAME_OWN_CHANNEL, own),
        hli_bytes_of("NUMSUB")};

    return hli_op_script(op, HLI_SCRIPT_LOCK_KEEP, &(struct hli_script_words){&key, 1, args, 6});
}
