/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Permits as a kind of the engine, and their ids. */
#include "lease/command.h"
#include "sync/permit_semaphore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_BITS = 16 }; /* of how many at once, and of which of them */

struct hli_lane hli_permit_lane(uint64_t random, size_t index, size_t count)
{
    return (struct hli_lane){{random, (uint64_t)index << INDEX_BITS | count}};
}

static void permit_write(unsigned char *to, uint64_t number, size_t size)
{
    for (size_t i = size; i > 0; i--, number >>= 8)
        to[i - 1] = (unsigned char)number;
}

static uint64_t permit_number(const unsigned char *from, size_t size)
{
    uint64_t number = 0;

    for (size_t i = 0; i < size; i++)
        number = number << 8 | from[i];
    return number;
}

/* Of the tenure's number the low half, which counts this client's tenures. */
struct hli_permit_id hli_permit_id(struct hli_lane lane, uint64_t number)
{
    struct hli_permit_id id;

    permit_write(id.bytes, lane.half[0], 8);
    permit_write(id.bytes + 8, number, 4);
    permit_write(id.bytes + 12, lane.half[1], 4);
    return id;
}

void hli_permit_show(const struct hli_permit_id *id, hl_permit *ret_permit)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < HLI_PERMIT_SIZE; i++) {
        ret_permit->id[2 * i] = digits[id->bytes[i] >> 4];
        ret_permit->id[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    ret_permit->id[sizeof(ret_permit->id) - 1] = '\0';
}

bool hli_permit_read(const hl_permit *permit, struct hli_permit_id *ret_id)
{
    if (!permit || strnlen(permit->id, sizeof(permit->id)) != sizeof(permit->id) - 1 ||
        strspn(permit->id, "0123456789abcdef") != sizeof(permit->id) - 1)
        return false;
    for (size_t i = 0; i < HLI_PERMIT_SIZE; i++) {
        const char pair[] = {permit->id[2 * i], permit->id[2 * i + 1], '\0'};
        ret_id->bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return true;
}

struct hli_name *hli_permit_find_name(const hl_permit_semaphore *semaphore,
                                      const struct hli_permit_id *id)
{
    const struct hli_name *name = semaphore->name;
    const struct hli_name_key key = {
        .kind = &hli_kind_permit,
        .bytes = name->bytes,
        .length = name->length,
        .lane = {{permit_number(id->bytes, 8), permit_number(id->bytes + 12, 4)}}};

    return hli_name_find(name->client, &key);
}

static bool permit_is_of(const struct hli_tenure *tenure, const struct hli_permit_id *id)
{
    return tenure && tenure->hold.is_accepted &&
           (uint32_t)tenure->number == permit_number(id->bytes + 8, 4);
}

struct hli_tenure *hli_permit_tenure(const struct hli_name *name, const struct hli_permit_id *id)
{
    struct hli_tenure *tenure;

    if (permit_is_of(name->current, id))
        return name->current;
    TAILQ_FOREACH (tenure, &name->past, link)
        if (permit_is_of(tenure, id))
            return tenure;
    return NULL;
}

static struct hli_permit_id permit_of(const struct hli_tenure *tenure)
{
    return hli_permit_id(hli_name_lane(tenure->name), tenure->number);
}

/* For how many it stands: the first of several for all of them, until it is accepted. */
static size_t permit_count(const struct hli_tenure *tenure, struct hli_lane lane)
{
    bool is_first = lane.half[1] >> INDEX_BITS == 0;

    return is_first && !tenure->hold.is_accepted ? (size_t)lane.half[1] : 1;
}

static void permit_write_all(const struct hli_tenure *tenure, struct hli_lane lane, size_t count,
                             unsigned char *to)
{
    if (count == 1) {
        memcpy(to, permit_of(tenure).bytes, HLI_PERMIT_SIZE);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct hli_lane each = hli_permit_lane(lane.half[0], i, count);
        memcpy(to + i * HLI_PERMIT_SIZE, hli_permit_id(each, tenure->number).bytes,
               HLI_PERMIT_SIZE);
    }
}

/* `args` begin with a place for the ids. */
static int permit_format(const struct hli_tenure *tenure, struct hli_op *op, hli_script_id script,
                         struct hli_bytes *args, size_t arg_count)
{
    const struct hli_lane lane = hli_name_lane(tenure->name);
    const struct hli_bytes key = hli_command_key(tenure);
    size_t count = permit_count(tenure, lane);
    unsigned char one[HLI_PERMIT_SIZE], *ids = count == 1 ? one : malloc(count * HLI_PERMIT_SIZE);

    if (!ids)
        return HL_ENOMEM;
    permit_write_all(tenure, lane, count, ids);
    args[0] = (struct hli_bytes){ids, count * HLI_PERMIT_SIZE};
    int rc = hli_op_script(op, script, &(struct hli_script_words){&key, 1, args, arg_count});
    if (ids != one)
        free(ids);
    return rc;
}

static int permit_take(const struct hli_tenure *tenure, struct hli_op *op,
                       const struct hli_taking *taking)
{
    char channel[HLI_CHANNEL_SIZE], lease[HLI_NUMBER_SIZE];
    struct hli_bytes args[] = {{0},
                               hli_command_number(lease, taking->lease_ms),
                               hli_command_derived(tenure, hli_kind_permit.channel, channel),
                               hli_bytes_of("PUBLISH")};

    return permit_format(tenure, op, HLI_SCRIPT_PERMIT_ACQUIRE, args, 4);
}

static int permit_leave(const struct hli_tenure *tenure, struct hli_op *op,
                        const struct hli_leaving *leaving)
{
    char channel[HLI_CHANNEL_SIZE];
    struct hli_bytes args[] = {{0},
                               hli_command_derived(tenure, hli_kind_permit.channel, channel),
                               hli_bytes_of("PUBLISH")};

    (void)leaving;
    return permit_format(tenure, op, HLI_SCRIPT_PERMIT_RELEASE, args, 3);
}

static struct hli_bytes permit_renewed(const struct hli_tenure *tenure, char *text)
{
    memcpy(text, permit_of(tenure).bytes, HLI_PERMIT_SIZE);
    return (struct hli_bytes){text, HLI_PERMIT_SIZE};
}

static uint32_t permit_need(const struct hli_name *name)
{
    return (uint32_t)hli_name_lane(name).half[1] & ((1u << INDEX_BITS) - 1);
}

static void permit_write_id(const struct hli_tenure *tenure, char *text)
{
    const struct hli_permit_id id = permit_of(tenure);
    hl_permit shown;

    hli_permit_show(&id, &shown);
    memcpy(text, shown.id, sizeof(shown.id));
}

const struct hli_kind hli_kind_permit = {
    .id = 'p',
    .is_per_owner = true,
    .has_no_owner = true,
    .is_forgotten = true,
    .channel = "redisson_sc:",
    .lacks = "too few permits",
    .field_suffix = "",
    .renew = HLI_SCRIPT_PERMIT_RENEW,
    .take = permit_take,
    .leave = permit_leave,
    .renewed = permit_renewed,
    .need = permit_need,
    .write_id = permit_write_id,
};
