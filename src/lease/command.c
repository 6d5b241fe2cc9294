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

int hli_command_acquire(struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms,
                        uint32_t count)
{
    char field[HLI_FIELD_SIZE], lease[NUMBER_SIZE], want[NUMBER_SIZE];
    const struct hli_bytes key = {tenure->name->bytes, tenure->name->length};
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     command_number(lease, lease_ms), command_number(want, count)};

    return hli_op_script(op, HLI_SCRIPT_LOCK_ACQUIRE, &(struct hli_script_words){&key, 1, args, 3});
}

int hli_command_release(struct hli_tenure *tenure, struct hli_op *op, uint32_t count,
                        int64_t lease_ms, int64_t rest_ms)
{
    char field[HLI_FIELD_SIZE], want[NUMBER_SIZE], lease[NUMBER_SIZE], rest[NUMBER_SIZE];
    const struct hli_bytes key = {tenure->name->bytes, tenure->name->length};
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     command_number(want, count),
                                     command_number(lease, lease_ms),
                                     command_number(rest, rest_ms),
                                     tenure->name->channel.name.bytes,
                                     hli_bytes_of("PUBLISH")};

    return hli_op_script(op, HLI_SCRIPT_LOCK_RELEASE, &(struct hli_script_words){&key, 1, args, 6});
}
