/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Looks scripts up in the table that the build embeds, and knows the shapes of their replies. */

#include "redis/script.h"

#include "base/check.h"

const struct hli_script *hli_script_get(hli_script_id id)
{
    HLI_CHECK(id < HLI_SCRIPT_COUNT);
    return &hli_script_table[id];
}

/* {status, ...}: how many items it has, for each status; 0: the script does not answer that. */
struct script_shape {
    size_t gone, no, yes; /* -1, 0, 1 */
    size_t more, more_no; /* texts that may follow after a yes, and after a no */
};

static bool script_is_status(const struct hli_reply *reply, struct script_shape shape)
{
    const struct hli_reply *status = hli_reply_item(reply, 0);

    if (!status || status->kind != HLI_REPLY_INTEGER || status->integer < -1 || status->integer > 1)
        return false;
    const size_t lengths[] = {shape.gone, shape.no, shape.yes};
    const size_t mores[] = {0, shape.more_no, shape.more};
    size_t length = lengths[status->integer + 1], most = length + mores[status->integer + 1];
    for (size_t i = length; i < reply->length; i++)
        if (i >= most || !hli_reply_text_at(reply, i))
            return false;
    return length > 0 && reply->length >= length;
}

static bool script_is_pairs(const struct hli_reply *reply)
{
    if (reply->kind != HLI_REPLY_ARRAY || reply->length % 2 != 0)
        return false;
    for (size_t i = 0; i < reply->length; i++)
        if (reply->item[i]->kind != HLI_REPLY_INTEGER)
            return false;
    return true;
}

/* Items of such shapes; but {2} for what was left as it is. */
static bool script_is_items(const struct hli_reply *reply, struct script_shape shape)
{
    if (reply->kind != HLI_REPLY_ARRAY || reply->length == 0)
        return false;
    for (size_t i = 0; i < reply->length; i++) {
        int64_t status = 0;
        bool is_left = hli_reply_integer_at(reply->item[i], 0, &status) && status == 2;
        if (is_left ? reply->item[i]->length != 1 : !script_is_status(reply->item[i], shape))
            return false;
    }
    return true;
}

bool hli_script_may_answer(hli_script_id id, const struct hli_reply *reply)
{
    switch (id) {
    case HLI_SCRIPT_LOCK_ACQUIRE:
        return script_is_status(
            reply, (struct script_shape){.gone = 1, .no = 6, .yes = 2, .more = 1, .more_no = 1});
    case HLI_SCRIPT_FAIR_LOCK_ACQUIRE:
    case HLI_SCRIPT_RW_READ_ACQUIRE:
    case HLI_SCRIPT_RW_WRITE_ACQUIRE:
        return script_is_status(reply,
                                (struct script_shape){.gone = 1, .no = 6, .yes = 2, .more_no = 1});
    case HLI_SCRIPT_LOCK_RELEASE:
    case HLI_SCRIPT_FAIR_LOCK_RELEASE:
    case HLI_SCRIPT_RW_READ_RELEASE:
    case HLI_SCRIPT_RW_WRITE_RELEASE:
    case HLI_SCRIPT_SEMAPHORE_UNDO:
        return script_is_status(reply, (struct script_shape){.no = 1, .yes = 3});
    case HLI_SCRIPT_MULTI_ACQUIRE:
        return script_is_items(reply, (struct script_shape){.no = 6, .yes = 2, .more_no = 1});
    case HLI_SCRIPT_MULTI_RELEASE:
        return script_is_items(reply, (struct script_shape){.no = 1, .yes = 3});
    case HLI_SCRIPT_FENCE_RELEASE:
        return script_is_status(reply, (struct script_shape){.no = 1, .yes = 4});
    case HLI_SCRIPT_FENCE_SET:
        return script_is_status(reply, (struct script_shape){.no = 2, .yes = 1});
    case HLI_SCRIPT_LOCK_INSPECT:
    case HLI_SCRIPT_RW_INSPECT:
        return script_is_status(reply, (struct script_shape){.no = 4, .yes = 4, .more = 3});
    case HLI_SCRIPT_SEMAPHORE_DRAIN:
    case HLI_SCRIPT_SEMAPHORE_AVAILABLE:
        return script_is_status(reply, (struct script_shape){.yes = 2});
    case HLI_SCRIPT_LOCK_KEEP:
        return script_is_pairs(reply) && reply->length == 2;
    case HLI_SCRIPT_LOCK_RENEW:
    case HLI_SCRIPT_RW_READ_RENEW:
    case HLI_SCRIPT_PERMIT_RENEW:
        return script_is_pairs(reply);
    case HLI_SCRIPT_LATCH_COUNT:
    case HLI_SCRIPT_PERMIT_ACQUIRE:
        return script_is_status(reply, (struct script_shape){.no = 6, .yes = 2});
    case HLI_SCRIPT_SEMAPHORE_ACQUIRE:
        return script_is_status(reply, (struct script_shape){.no = 6, .yes = 2}) ||
               script_is_status(reply, (struct script_shape){.no = 6, .yes = 7});
    case HLI_SCRIPT_PERMIT_RELEASE:
        return script_is_status(reply, (struct script_shape){.no = 2, .yes = 3});
    case HLI_SCRIPT_PERMIT_UPDATE_LEASE:
        return script_is_status(reply, (struct script_shape){.gone = 1, .no = 1, .yes = 1});
    case HLI_SCRIPT_PERMIT_LEASE_LEFT:
        return script_is_status(reply, (struct script_shape){.gone = 1, .no = 1, .yes = 2});
    case HLI_SCRIPT_PERMIT_INSPECT:
        return script_is_status(reply, (struct script_shape){.yes = 3});
    default:
        return script_is_status(reply, (struct script_shape){.no = 1, .yes = 1});
    }
}

static bool script_is_plain(hli_script_id id, const struct hli_reply *reply)
{
    const struct hli_reply *status = hli_reply_item(reply, 0);

    if (!status || status->kind != HLI_REPLY_INTEGER)
        return false;
    switch (id) {
    case HLI_SCRIPT_FAIR_LOCK_ACQUIRE:
    case HLI_SCRIPT_LATCH_COUNT:
    case HLI_SCRIPT_LOCK_ACQUIRE:
    case HLI_SCRIPT_PERMIT_ACQUIRE:
    case HLI_SCRIPT_RW_READ_ACQUIRE:
    case HLI_SCRIPT_RW_WRITE_ACQUIRE:
    case HLI_SCRIPT_SEMAPHORE_ACQUIRE:
        return status->integer == 0 || status->integer == 1;
    case HLI_SCRIPT_MULTI_ACQUIRE: /* an item of it */
        return true;
    case HLI_SCRIPT_FAIR_LOCK_RELEASE:
    case HLI_SCRIPT_FENCE_RELEASE:
    case HLI_SCRIPT_FENCE_SET:
    case HLI_SCRIPT_LATCH_COUNT_DOWN:
    case HLI_SCRIPT_LOCK_RELEASE:
    case HLI_SCRIPT_MULTI_RELEASE: /* an item of it */
    case HLI_SCRIPT_PERMIT_RELEASE:
    case HLI_SCRIPT_RW_READ_RELEASE:
    case HLI_SCRIPT_RW_WRITE_RELEASE:
    case HLI_SCRIPT_SEMAPHORE_ADD:
        return status->integer == 1;
    default:
        return false;
    }
}

bool hli_script_is_plain(hli_script_id id, const struct hli_reply *reply)
{
    if (!hli_script_may_answer(id, reply))
        return false;
    if (id != HLI_SCRIPT_MULTI_ACQUIRE && id != HLI_SCRIPT_MULTI_RELEASE)
        return script_is_plain(id, reply);
    for (size_t i = 0; i < reply->length; i++)
        if (!script_is_plain(id, reply->item[i]))
            return false;
    return true;
}
