/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The words of the lock's commands. Numbers are written here, so that no script has to round one.
 */
#include "lease/command.h"

#include <inttypes.h>
#include <stdio.h>

enum { NUMBER_SIZE = 24 };

static struct hli_bytes command_number(char text[NUMBER_SIZE], int64_t number)
{
    snprintf(text, NUMBER_SIZE, "%" PRId64, number);
    return hli_bytes_of(text);
}

int64_t hli_command_claim_ms(const hl_client *client)
{
    int64_t poll_ms = client->settings.poll_ms, watchdog_ms = client->settings.watchdog_timeout_ms;

    if (watchdog_ms >= 4 * poll_ms)
        return 4 * poll_ms;
    return watchdog_ms > 2 * poll_ms ? watchdog_ms : 2 * poll_ms;
}

static struct hli_bytes command_derived(const struct hli_tenure *tenure, enum hli_name_kind kind,
                                        char text[HLI_CHANNEL_SIZE])
{
    return (struct hli_bytes){text, hli_name_write(tenure->name, kind, text)};
}

static struct hli_bytes command_key(const struct hli_tenure *tenure)
{
    return (struct hli_bytes){tenure->name->bytes, tenure->name->length};
}

/* The queue is forgotten after ten polls without a new member. */
int hli_command_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                        const struct hli_taking *taking)
{
    char field[HLI_FIELD_SIZE], queue[HLI_CHANNEL_SIZE];
    char lease[NUMBER_SIZE], want[NUMBER_SIZE], stands[NUMBER_SIZE];
    int64_t queue_ms = taking->queues ? 10 * tenure->name->client->settings.poll_ms : 0;
    const struct hli_bytes key = command_key(tenure);
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     command_number(lease, taking->lease_ms),
                                     command_number(want, taking->count),
                                     command_derived(tenure, HLI_NAME_QUEUE, queue),
                                     command_number(stands, queue_ms),
                                     hli_bytes_of(HLI_MAILBOX)};

    return hli_op_script(op, HLI_SCRIPT_LOCK_ACQUIRE, &(struct hli_script_words){&key, 1, args, 6});
}

int hli_command_release(const struct hli_tenure *tenure, struct hli_op *op,
                        const struct hli_leaving *leaving)
{
    char redisson[HLI_CHANNEL_SIZE], own[HLI_CHANNEL_SIZE], queue[HLI_CHANNEL_SIZE];
    char field[HLI_FIELD_SIZE], want[NUMBER_SIZE], lease[NUMBER_SIZE];
    char rest[NUMBER_SIZE], claim[NUMBER_SIZE];
    const struct hli_bytes key = command_key(tenure);
    const struct hli_bytes args[] = {
        hli_bytes_of(hli_tenure_field(tenure, field)),
        command_number(want, leaving->count),
        command_number(lease, leaving->lease_ms),
        command_number(rest, leaving->rest_ms),
        command_derived(tenure, HLI_NAME_REDISSON_CHANNEL, redisson),
        hli_bytes_of("PUBLISH"),
        command_derived(tenure, HLI_NAME_QUEUE, queue),
        hli_bytes_of(HLI_MAILBOX),
        command_number(claim, hli_command_claim_ms(tenure->name->client)),
        command_derived(tenure, HLI_NAME_OWN_CHANNEL, own),
        hli_bytes_of(leaving->is_courteous ? "1" : "0"),
        hli_bytes_of("NUMSUB"),
    };

    return hli_op_script(op, HLI_SCRIPT_LOCK_RELEASE,
                         &(struct hli_script_words){&key, 1, args, 12});
}

int hli_command_keep(const struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms)
{
    char redisson[HLI_CHANNEL_SIZE], own[HLI_CHANNEL_SIZE], queue[HLI_CHANNEL_SIZE];
    char field[HLI_FIELD_SIZE], lease[NUMBER_SIZE];
    const struct hli_bytes key = command_key(tenure);
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     command_number(lease, lease_ms),
                                     command_derived(tenure, HLI_NAME_REDISSON_CHANNEL, redisson),
                                     command_derived(tenure, HLI_NAME_QUEUE, queue),
                                     command_derived(tenure, HLI_NAME_OWN_CHANNEL, own),
                                     hli_bytes_of("NUMSUB")};

    return hli_op_script(op, HLI_SCRIPT_LOCK_KEEP, &(struct hli_script_words){&key, 1, args, 6});
}
