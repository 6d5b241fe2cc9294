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

/* {status, and `more` items if the status is `long_status`} */
static bool script_is_status(const struct hli_reply *reply, int64_t least, int64_t long_status,
                             size_t more)
{
    const struct hli_reply *status = hli_reply_item(reply, 0);

    if (!status || status->kind != HLI_REPLY_INTEGER || status->integer < least ||
        status->integer > 1)
        return false;
    return reply->length == (status->integer == long_status ? 1 + more : 1);
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

bool hli_script_may_answer(hli_script_id id, const struct hli_reply *reply)
{
    const struct hli_reply *status = hli_reply_item(reply, 0);

    switch (id) {
    case HLI_SCRIPT_LOCK_ACQUIRE:
        return script_is_status(reply, -1, 0, 3);
    case HLI_SCRIPT_LOCK_INSPECT:
        return status && script_is_status(reply, 0, status->integer, 3);
    case HLI_SCRIPT_LOCK_RENEW:
        return script_is_pairs(reply);
    default:
        return script_is_status(reply, 0, 0, 0);
    }
}
