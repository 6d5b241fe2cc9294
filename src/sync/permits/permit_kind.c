/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Permits as a kind of the engine, and their ids. */
#include "lease/state/command.h"
#include "sync/permits/permits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_BITS = 16 }; /* for the number of permits acquired at once, and for the index */

struct hli_owner_key hli_permit_owner_key(uint64_t random, size_t index, size_t count)
{
    return (struct hli_owner_key){{random, (uint64_t)index << INDEX_BITS | count}};
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

/* The id has the low half of the tenure's number, which counts this client's tenures. */
struct hli_permit_id hli_permit_id(struct hli_owner_key owner_key, uint64_t number)
{
    struct hli_permit_id id;

    permit_write(id.bytes, owner_key.half[0], 8);
    permit_write(id.bytes + 8, number, 4);
    permit_write(id.bytes + 12, owner_key.half[1], 4);
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

static bool permit_is_of(const struct hli_tenure *tenure, const struct hli_permit_id *id)
{
    return tenure && tenure->hold.is_accepted &&
           (uint32_t)tenure->number == permit_number(id->bytes + 8, 4);
}

/* Name mutex. */
static struct hli_tenure *permit_tenure(const struct hli_name *name, const struct hli_permit_id *id)
{
    struct hli_tenure *tenure;

    if (permit_is_of(name->current, id))
        return name->current;
    TAILQ_FOREACH (tenure, &name->past, link)
        if (permit_is_of(tenure, id))
            return tenure;
    return NULL;
}

struct hli_tenure *hli_permit_find(const struct hli_name *semaphore, const struct hli_permit_id *id)
{
    const struct hli_name_key key = {
        .kind = &hli_kind_permit,
        .bytes = semaphore->bytes,
        .length = semaphore->length,
        .owner_key = {{permit_number(id->bytes, 8), permit_number(id->bytes + 12, 4)}}};
    struct hli_name *name = hli_name_find(semaphore->client, &key);

    if (!name)
        return NULL;
    hli_mutex_lock(&name->mutex);
    struct hli_tenure *tenure = permit_tenure(name, id);
    if (tenure)
        hli_tenure_ref(tenure);
    hli_mutex_unlock(&name->mutex);
    hli_name_unref(name);
    return tenure;
}

static struct hli_permit_id permit_of(const struct hli_tenure *tenure)
{
    return hli_permit_id(hli_name_owner_key(tenure->name), tenure->number);
}

/* The number of permits for which the tenure stands: the first of several stands for all of them
 * until it is accepted. */
static size_t permit_count(const struct hli_tenure *tenure, struct hli_owner_key owner_key)
{
    bool is_first = owner_key.half[1] >> INDEX_BITS == 0;

    return is_first && !tenure->hold.is_accepted ? (size_t)owner_key.half[1] : 1;
}

/* Adds one word with all its ids. */
static void permit_add_ids(struct hli_args *args, const struct hli_tenure *tenure)
{
    const struct hli_owner_key owner_key = hli_name_owner_key(tenure->name);
    size_t count = permit_count(tenure, owner_key);
    char *to = hli_args_room(args, count * HLI_PERMIT_SIZE);

    for (size_t i = 0; to && i < count; i++) {
        const struct hli_owner_key each =
            count > 1 ? hli_permit_owner_key(owner_key.half[0], i, count) : owner_key;
        memcpy(to + i * HLI_PERMIT_SIZE, hli_permit_id(each, tenure->number).bytes,
               HLI_PERMIT_SIZE);
    }
}

/* The permits that are out; the other key is the name. */
static void permit_declare(const struct hli_name *name, struct hli_args *args)
{
    if (name->client->wording->is_for_cluster)
        hli_command_declare_suffixed(args, name, ":timeout");
}

void hli_permit_begin(struct hli_args *args, hli_script_id script, const struct hli_name *name)
{
    hli_command_begin(args, script, name);
    permit_declare(name, args);
}

static void permit_declare_renewed(const struct hli_tenure *tenure, struct hli_args *args)
{
    permit_declare(tenure->name, args);
}

static void permit_declare_queue(const struct hli_name *name, struct hli_args *args)
{
    if (name->client->wording->is_for_cluster)
        hli_command_declare(args, name, HLI_NAME_QUEUE);
}

static int permit_format_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                                 const struct hli_acquire_request *request)
{
    struct hli_args args;

    hli_permit_begin(&args, HLI_SCRIPT_PERMIT_ACQUIRE, tenure->name);
    permit_declare_queue(tenure->name, &args);
    permit_add_ids(&args, tenure);
    hli_args_number(&args, request->lease_ms);
    hli_command_publish(&args, tenure->name);
    hli_command_field(&args, tenure);
    hli_command_turn(&args, tenure->name, request);
    return hli_args_end(&args, op);
}

static int permit_format_release(const struct hli_tenure *tenure, struct hli_op *op,
                                 const struct hli_release_request *release_request)
{
    struct hli_args args;

    hli_permit_begin(&args, HLI_SCRIPT_PERMIT_RELEASE, tenure->name);
    if (release_request->is_of_wait)
        permit_declare_queue(tenure->name, &args);
    permit_add_ids(&args, tenure);
    hli_command_publish(&args, tenure->name);
    if (release_request->is_of_wait) {
        hli_args_text(&args, "");
        hli_command_field(&args, tenure);
        hli_command_derived(&args, tenure->name, HLI_NAME_QUEUE);
    }
    return hli_args_end(&args, op);
}

static void permit_renewed(const struct hli_tenure *tenure, struct hli_args *args)
{
    hli_args_bytes(args, (struct hli_bytes){permit_of(tenure).bytes, HLI_PERMIT_SIZE});
}

static uint32_t permit_need(const struct hli_name *name)
{
    return (uint32_t)hli_name_owner_key(name).half[1] & ((1u << INDEX_BITS) - 1);
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
    .is_braced = true,
    .channel = "redisson_sc:",
    .lacks = "too few permits",
    .field_suffix = "",
    .renew = HLI_SCRIPT_PERMIT_RENEW,
    .reclaim = HLI_SCRIPT_PERMIT_RECLAIM,
    .acquire = permit_format_acquire,
    .release = permit_format_release,
    .declare = permit_declare_renewed,
    .renewed = permit_renewed,
    .need = permit_need,
    .write_id = permit_write_id,
};
