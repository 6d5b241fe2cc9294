/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Looks scripts up in the table that the build embeds, and knows the shapes of their replies. */

#include "redis/script.h"

#include "base/check.h"

/* A script's reply. Most are {status, ...}: how many items it has for each status. */
struct script_shape {
    enum {
        SCRIPT_STATUS,
        SCRIPT_ITEMS, /* one such array or more; {2} for a name that was not changed */
        SCRIPT_PAIRS, /* integers, an even number of them */
    } form;
    size_t gone, no, yes;       /* items, for -1, 0 and 1; 0: the script has no such answer */
    size_t no_texts, yes_texts; /* most texts that may follow */
    size_t yes_or;              /* another number of items for 1 */
    size_t pairs;               /* number of pairs; 0: any */
    enum {
        SCRIPT_PLAIN_NEVER,
        SCRIPT_PLAIN_YES, /* with status 1: acquired or released */
        SCRIPT_PLAIN_NO,  /* with status 1 or 0 (busy); not with -1 */
    } plain;
};

static const struct script_shape script_shapes[HLI_SCRIPT_COUNT] = {
#define X(name, ...) [HLI_SCRIPT_##name] = {__VA_ARGS__},
    HLI_SCRIPT_MAP(X)
#undef X
};

const struct hli_script *hli_script_get(hli_script_id id)
{
    HLI_CHECK(id < HLI_SCRIPT_COUNT);
    return &hli_script_table[id];
}

static bool script_is_status(const struct hli_reply *reply, const struct script_shape *shape)
{
    if (reply->kind != HLI_REPLY_ARRAY || reply->length == 0)
        return false;
    const struct hli_reply *status = reply->item[0];
    if (status->kind != HLI_REPLY_INTEGER || status->integer < -1 || status->integer > 1)
        return false;
    const size_t lengths[] = {shape->gone, shape->no, shape->yes};
    const size_t texts[] = {0, shape->no_texts, shape->yes_texts};
    size_t length = lengths[status->integer + 1], most = length + texts[status->integer + 1];
    if (status->integer == 1 && shape->yes_or > 0 && reply->length == shape->yes_or)
        return true;
    for (size_t i = length; i < reply->length; i++)
        if (i >= most || !hli_reply_text_at(reply, i))
            return false;
    return length > 0 && reply->length >= length;
}

static bool script_is_pairs(const struct hli_reply *reply, const struct script_shape *shape)
{
    if (reply->kind != HLI_REPLY_ARRAY || reply->length % 2 != 0)
        return false;
    for (size_t i = 0; i < reply->length; i++)
        if (reply->item[i]->kind != HLI_REPLY_INTEGER)
            return false;
    return shape->pairs == 0 || reply->length == 2 * shape->pairs;
}

static bool script_is_items(const struct hli_reply *reply, const struct script_shape *shape)
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
    HLI_CHECK(id < HLI_SCRIPT_COUNT);
    const struct script_shape *shape = &script_shapes[id];

    switch (shape->form) {
    case SCRIPT_PAIRS:
        return script_is_pairs(reply, shape);
    case SCRIPT_ITEMS:
        return script_is_items(reply, shape);
    default:
        return script_is_status(reply, shape);
    }
}

/* Of pairs and items some may have changed something. */
bool hli_script_is_refusal(hli_script_id id, const struct hli_reply *reply)
{
    int64_t status = 1;

    HLI_CHECK(id < HLI_SCRIPT_COUNT);
    if (script_shapes[id].form == SCRIPT_STATUS)
        hli_reply_integer_at(reply, 0, &status);
    return status < 1;
}

/* The reply must be one that the script can give. */
static bool script_is_plain(const struct hli_reply *reply, const struct script_shape *shape)
{
    if (shape->plain == SCRIPT_PLAIN_NEVER)
        return false;
    const struct hli_reply *status = reply->item[0];
    return status->kind == HLI_REPLY_INTEGER &&
           (shape->plain == SCRIPT_PLAIN_YES ? status->integer == 1 : status->integer >= 0);
}

bool hli_script_is_plain(hli_script_id id, const struct hli_reply *reply)
{
    if (!hli_script_may_answer(id, reply))
        return false;
    const struct script_shape *shape = &script_shapes[id];
    if (shape->form != SCRIPT_ITEMS)
        return script_is_plain(reply, shape);
    for (size_t i = 0; i < reply->length; i++)
        if (!script_is_plain(reply->item[i], shape))
            return false;
    return true;
}
