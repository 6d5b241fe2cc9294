/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Replies. hiredis' reader calls back for every value; our callbacks build the tree, and refuse
 * what is too long, too wide or too deep. RESP2 only: a RESP3 type has no callback that succeeds.
 */
#include "redis/reply.h"

#include <hirelock/error.h>

#include <hiredis/hiredis.h>
#include <hiredis/read.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPLY_MAX_BYTES =
        64 * 1024, /* of one whole reply; our largest, a renewal's, stays below 8 KiB */
    REPLY_MAX_ITEMS = 1024,
    REPLY_MAX_DEPTH = 4,
};

struct hli_parser {
    redisReader *reader;
    size_t pending; /* bytes fed since the last whole reply */
    bool refused;   /* a callback found a value that no honest answer has */
};

const struct hli_reply *hli_reply_item(const struct hli_reply *reply, size_t index)
{
    return reply && reply->kind == HLI_REPLY_ARRAY && index < reply->length ? reply->item[index]
                                                                            : NULL;
}

static bool reply_decimal(const struct hli_reply *text, int64_t *ret_value)
{
    char *end = NULL;

    if (text->length == 0 || text->length > 20)
        return false;
    int64_t value = strtoll(text->text, &end, 10);
    if (end != text->text + text->length)
        return false;
    *ret_value = value;
    return true;
}

bool hli_reply_integer(const struct hli_reply *reply, int64_t *ret_value)
{
    if (!reply)
        return false;
    if (reply->kind == HLI_REPLY_STRING)
        return reply_decimal(reply, ret_value);
    if (reply->kind != HLI_REPLY_INTEGER)
        return false;
    *ret_value = reply->integer;
    return true;
}

bool hli_reply_integer_at(const struct hli_reply *reply, size_t index, int64_t *ret_value)
{
    return hli_reply_integer(hli_reply_item(reply, index), ret_value);
}

const struct hli_reply *hli_reply_text_at(const struct hli_reply *reply, size_t index)
{
    const struct hli_reply *item = hli_reply_item(reply, index);

    return item && item->kind == HLI_REPLY_STRING ? item : NULL;
}

void hli_reply_free(struct hli_reply *reply)
{
    if (!reply)
        return;
    if (reply->kind == HLI_REPLY_ARRAY)
        for (size_t i = 0; i < reply->length; i++)
            hli_reply_free(reply->item[i]);
    free(reply);
}

/* To hiredis a refused value looks like a failed allocation; the flag tells them apart. */
static void *reply_refuse(const redisReadTask *task)
{
    struct hli_parser *parser = task->privdata;

    parser->refused = true;
    return NULL;
}

static int reply_depth(const redisReadTask *task)
{
    int depth = 0;

    for (; task->parent; task = task->parent)
        depth++;
    return depth;
}

/* Hangs a new node into the array that is being read, if it is in one. */
static struct hli_reply *reply_new(const redisReadTask *task, enum hli_reply_kind kind,
                                   size_t payload)
{
    struct hli_reply *reply = calloc(1, sizeof(*reply) + payload);

    if (!reply)
        return NULL;
    reply->kind = kind;
    if (task->parent) {
        struct hli_reply *parent = task->parent->obj;
        parent->item[task->idx] = reply;
    }
    return reply;
}

/* False for the texts of RESP3, verbatim strings and big numbers, which newer readers know too. */
static bool reply_text_kind(const redisReadTask *task, enum hli_reply_kind *ret_kind)
{
    switch (task->type) {
    case REDIS_REPLY_ERROR:
        *ret_kind = HLI_REPLY_ERROR;
        return true;
    case REDIS_REPLY_STATUS:
        *ret_kind = HLI_REPLY_STATUS;
        return true;
    case REDIS_REPLY_STRING:
        *ret_kind = HLI_REPLY_STRING;
        return true;
    default:
        return false;
    }
}

static void *reply_create_string(const redisReadTask *task, char *text, size_t length)
{
    enum hli_reply_kind kind;

    if (length > REPLY_MAX_BYTES || !reply_text_kind(task, &kind))
        return reply_refuse(task);
    struct hli_reply *reply = reply_new(task, kind, length);
    if (!reply)
        return NULL;
    memcpy(reply->text, text, length);
    reply->length = length;
    return reply;
}

#if HIREDIS_MAJOR >= 1
static void *reply_create_array(const redisReadTask *task, size_t items)
#else
static void *reply_create_array(const redisReadTask *task, int items)
#endif
{
    size_t length = (size_t)items;

    if (task->type != REDIS_REPLY_ARRAY) /* a map, set or push of RESP3 */
        return reply_refuse(task);
    if (length > REPLY_MAX_ITEMS || reply_depth(task) >= REPLY_MAX_DEPTH)
        return reply_refuse(task);
    struct hli_reply *reply = reply_new(task, HLI_REPLY_ARRAY, length * sizeof(struct hli_reply *));
    if (reply)
        reply->length = length;
    return reply;
}

static void *reply_create_integer(const redisReadTask *task, long long value)
{
    struct hli_reply *reply = reply_new(task, HLI_REPLY_INTEGER, 0);

    if (reply)
        reply->integer = value;
    return reply;
}

static void *reply_create_nil(const redisReadTask *task)
{
    return reply_new(task, HLI_REPLY_NIL, 0);
}

static void reply_free_object(void *reply)
{
    hli_reply_free(reply);
}

#if HIREDIS_MAJOR >= 1
static void *reply_create_double(const redisReadTask *task, double value, char *text, size_t length)
{
    (void)value, (void)text, (void)length;
    return reply_refuse(task);
}

static void *reply_create_bool(const redisReadTask *task, int value)
{
    (void)value;
    return reply_refuse(task);
}
#endif

static redisReplyObjectFunctions reply_functions = {
    .createString = reply_create_string,
    .createArray = reply_create_array,
    .createInteger = reply_create_integer,
    .createNil = reply_create_nil,
    .freeObject = reply_free_object,
#if HIREDIS_MAJOR >= 1
    .createDouble = reply_create_double,
    .createBool = reply_create_bool,
#endif
};

struct hli_parser *hli_parser_new(void)
{
    struct hli_parser *parser = calloc(1, sizeof(*parser));

    if (parser)
        parser->reader = redisReaderCreateWithFunctions(&reply_functions);
    if (!parser || !parser->reader) {
        free(parser);
        return NULL;
    }
    parser->reader->privdata = parser;
    return parser;
}

void hli_parser_free(struct hli_parser *parser)
{
    if (!parser)
        return;
    redisReaderFree(parser->reader);
    free(parser);
}

static int parser_error(const struct hli_parser *parser)
{
    return parser->reader->err == REDIS_ERR_OOM && !parser->refused ? HL_ENOMEM : HL_EPROTO;
}

int hli_parser_feed(struct hli_parser *parser, const char *bytes, size_t length)
{
    if (redisReaderFeed(parser->reader, bytes, length) != REDIS_OK)
        return parser_error(parser);
    parser->pending += length;
    return 0;
}

int hli_parser_next(struct hli_parser *parser, struct hli_reply **ret_reply)
{
    void *reply = NULL;

    if (redisReaderGetReply(parser->reader, &reply) != REDIS_OK)
        return parser_error(parser);
    if (!reply && parser->pending > REPLY_MAX_BYTES)
        return HL_EPROTO;
    if (reply)
        parser->pending = parser->reader->len - parser->reader->pos;
    *ret_reply = reply;
    return 0;
}
