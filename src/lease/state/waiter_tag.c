/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Tags of waiters: their two requests, and the order of these. */
#include "lease/state/waiter_tag.h"

#include "base/check.h"
#include "lease/state/command.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    WAITER_TAG_SHOW_MS = 1000,    /* a shorter wait is not shown */
    WAITER_TAG_AGAIN_MS = 10000,  /* it is written again: the key may be gone with its server */
    WAITER_TAG_STANDS_MS = 30000, /* that of a process that has died; as a lock's default lease */
};

hli_ns hli_waiter_tag_first_at(hli_ns started)
{
    return hli_after_ms(started, WAITER_TAG_SHOW_MS);
}

static void waiter_tag_unref(struct hli_waiter_tag *tag)
{
    if (!hli_ref_drop(&tag->ref))
        return;
    hli_op_deinit(&tag->write);
    hli_op_deinit(&tag->removal);
    hli_client_unref(tag->client);
    free(tag);
}

static void waiter_tag_send(struct hli_waiter_tag *tag, struct hli_op *op)
{
    hli_link_send(hli_client_link(tag->client, tag->slot, tag->lane), op);
}

/* The connection calls this as it queues the write: so the removal comes behind it, or it is not
 * sent. */
static bool waiter_tag_is_wanted(const struct hli_op *op)
{
    return !atomic_load(&HLI_PART_OF(op, struct hli_waiter_tag, write)->is_over);
}

/* After any other failure the next write is soon enough. */
static void waiter_tag_written(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_waiter_tag *tag = HLI_PART_OF(op, struct hli_waiter_tag, write);

    if (answer->verdict == HLI_BOUNCED && !atomic_load(&tag->is_over)) {
        waiter_tag_send(tag, op);
        return;
    }
    if (answer->verdict == HLI_FAILED)
        atomic_store(&tag->is_refused, true);
    atomic_store(&tag->is_in_flight, false);
    waiter_tag_unref(tag); /* the write's */
}

/* A tag that is not removed expires. */
static void waiter_tag_removed(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_waiter_tag *tag = HLI_PART_OF(op, struct hli_waiter_tag, removal);

    if (answer->verdict == HLI_BOUNCED)
        waiter_tag_send(tag, op);
    else
        waiter_tag_unref(tag); /* the removal's */
}

/* "hirelock_waiter:{name}:<client's id>:<owner's number>": each waiting owner has its own. */
static struct hli_bytes waiter_tag_key(const struct hli_acquire *acquire,
                                       char text[HLI_CHANNEL_SIZE])
{
    const struct hli_name *name = acquire->name;
    size_t length = hli_name_write(name, HLI_NAME_WAITER, text);

    length += (size_t)snprintf(text + length, HLI_CHANNEL_SIZE - length, ":%s:%llu",
                               name->client->id, (unsigned long long)acquire->owner->number);
    return (struct hli_bytes){text, length};
}

static int waiter_tag_format(struct hli_waiter_tag *tag, const struct hli_acquire *acquire,
                             hli_ns now)
{
    char text[HLI_CHANNEL_SIZE], words[sizeof(tag->client->self) + HLI_TAG_THREAD];
    struct hli_bytes key = waiter_tag_key(acquire, text);
    const struct hli_bytes removal[] = {hli_bytes_of("DEL"), key};
    struct hli_args args;

    if (!tag->removal.bytes && hli_op_command(&tag->removal, removal, 2) < 0)
        return HL_ENOMEM;
    snprintf(words, sizeof(words), "%s %s", tag->client->self, acquire->thread);
    hli_args_begin_script(&args, HLI_SCRIPT_WAITER_TAG, 1);
    hli_args_bytes(&args, key);
    hli_args_number(&args, (now - acquire->wait.started) / 1000000);
    hli_args_text(&args, words);
    hli_args_number(&args, WAITER_TAG_STANDS_MS);
    return hli_args_end(&args, &tag->write);
}

static struct hli_waiter_tag *waiter_tag_new(hl_client *client)
{
    struct hli_waiter_tag *tag = calloc(1, sizeof(*tag));

    if (!tag)
        return NULL;
    hli_ref_init(&tag->ref); /* the call's */
    hli_client_ref(client);
    tag->client = client;
    HLI_PART_IS(&tag->write, struct hli_waiter_tag, write);
    tag->write.done = waiter_tag_written;
    tag->write.is_wanted = waiter_tag_is_wanted;
    HLI_PART_IS(&tag->removal, struct hli_waiter_tag, removal);
    tag->removal.done = waiter_tag_removed;
    return tag;
}

struct hli_waiter_tag *hli_waiter_tag_plan(struct hli_acquire *acquire, hli_ns now)
{
    const struct hli_name *name = acquire->name;
    struct hli_waiter_tag *tag = acquire->tag;

    acquire->tag_at =
        tag && atomic_load(&tag->is_refused) ? HLI_NEVER : hli_after_ms(now, WAITER_TAG_AGAIN_MS);
    if (!tag)
        tag = acquire->tag = waiter_tag_new(name->client);
    if (!tag || atomic_load(&tag->is_refused) || atomic_load(&tag->is_in_flight) ||
        waiter_tag_format(tag, acquire, now) < 0)
        return NULL;
    tag->slot = name->slot;
    tag->lane = atomic_load(&name->lane);
    atomic_store(&tag->is_in_flight, true);
    hli_ref_take(&tag->ref); /* the write's */
    return tag;
}

void hli_waiter_tag_send(struct hli_waiter_tag *tag)
{
    waiter_tag_send(tag, &tag->write);
}

/* Without memory for a request nothing was written. */
void hli_waiter_tag_end(struct hli_waiter_tag *tag)
{
    atomic_store(&tag->is_over, true);
    if (tag->removal.bytes)
        waiter_tag_send(tag, &tag->removal);
    else
        waiter_tag_unref(tag);
}
