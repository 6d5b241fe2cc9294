/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Replies. hiredis' reader calls back for every value; our callbacks build the tree, skip values
 * that are too long or too wide, and refuse values that are too deep. RESP2 only: our callbacks
 * refuse every RESP3 type.
 */
#include "redis/reply.h"

#include <hirelock/error.h>

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <hiredis/read.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPLY_LEVELS = 4,
    REPLY_MAX_TEXT = 1024 * 1024, /* of one text: hiredis buffers it whole, even if it is skipped */
};

_Static_assert((int)HLI_REPLY_STRING == REDIS_REPLY_STRING &&
                   (int)HLI_REPLY_STATUS == REDIS_REPLY_STATUS &&
                   (int)HLI_REPLY_ERROR == REDIS_REPLY_ERROR,
               "texts have hiredis' numbers");

/* The largest answer to our scripts, a renewal's, stays below 8 KiB. */
static const struct hli_reply_bounds reply_bounds = {.bytes = (size_t)64 * 1024, .items = 1024};

/* Stands for every skipped value, and for all values inside it. */
static struct hli_reply reply_beyond = {.kind = HLI_REPLY_BEYOND, .is_beyond = true};

struct hli_parser {
    redisReader *reader;
    struct hli_reply_bounds bounds;
    size_t max_text; /* bytes of one text */
    size_t kept;     /* bytes of the reply that is being read */
    bool is_beyond;  /* a value of the reply was skipped */
    bool refused;    /* a callback found a value that no Redis sends */
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

const struct hli_reply *hli_reply_field(const struct hli_reply *fields, const char *name)
{
    for (size_t i = 0; hli_reply_text_at(fields, i); i += 2)
        if (strcmp(hli_reply_text_at(fields, i)->text, name) == 0)
            return hli_reply_text_at(fields, i + 1);
    return NULL;
}

struct hli_id hli_reply_id(const struct hli_reply *text)
{
    struct hli_id id = {""};
    size_t length = sizeof(id.text) - 1, good = 0;

    if (!text || text->kind != HLI_REPLY_STRING || text->length != length)
        return id;
    while (good < length && isalnum((unsigned char)text->text[good]))
        good++;
    if (good == length)
        memcpy(id.text, text->text, length);
    return id;
}

bool hli_id_is(const struct hli_id *id, const struct hli_id *other)
{
    return id->text[0] && strcmp(id->text, other->text) == 0;
}

bool hli_reply_is_message(const struct hli_reply *reply)
{
    const struct hli_reply *kind = hli_reply_text_at(reply, 0);

    return kind && (strcmp(kind->text, "message") == 0 || strcmp(kind->text, "smessage") == 0);
}

void hli_reply_free(struct hli_reply *reply)
{
    if (!reply || reply == &reply_beyond)
        return;
    for (size_t i = 0; reply->kind == HLI_REPLY_ARRAY && i < reply->length; i++)
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

/* Adds the node to the array that is being read, if there is one and it is kept. */
static struct hli_reply *reply_new(const redisReadTask *task, enum hli_reply_kind kind,
                                   size_t payload)
{
    struct hli_parser *parser = task->privdata;
    struct hli_reply *parent = task->parent ? task->parent->obj : NULL, *reply = &reply_beyond;
    size_t size = sizeof(struct hli_reply *) + payload;

    if (parser->kept + size > parser->bounds.bytes || parent == &reply_beyond) {
        parser->is_beyond = true;
    } else {
        reply = calloc(1, sizeof(*reply) + payload);
        if (!reply)
            return NULL;
        parser->kept += size;
        reply->kind = kind;
    }
    if (parent && parent != &reply_beyond)
        parent->item[task->idx] = reply;
    return reply;
}

/* Cuts " script: <digest>, on @user_script:12." off, with which Redis 7 ends an error inside a
 * script. " script: " may occur before: "ERR ACL failure in script: User ...". */
static void reply_cut_script(struct hli_reply *error)
{
    char *at = NULL;

    for (char *next = error->text; (next = strstr(next, " script: ")); next++)
        at = next;
    if (!at || !strstr(at, ", on @user_script:"))
        return;
    *at = '\0';
    error->length = (size_t)(at - error->text);
}

static void *reply_create_string(const redisReadTask *task, char *text, size_t length)
{
    /* Or it is a verbatim string or a big number of RESP3, which newer readers know too. */
    if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS &&
        task->type != REDIS_REPLY_ERROR)
        return reply_refuse(task);
    struct hli_reply *reply = reply_new(task, (enum hli_reply_kind)task->type, length);
    if (!reply || reply == &reply_beyond)
        return reply;
    memcpy(reply->text, text, length);
    reply->length = length;
    if (reply->kind == HLI_REPLY_ERROR)
        reply_cut_script(reply);
    return reply;
}

#if HIREDIS_MAJOR >= 1
static void *reply_create_array(const redisReadTask *task, size_t items)
#else
static void *reply_create_array(const redisReadTask *task, int items)
#endif
{
    const struct hli_parser *parser = task->privdata;
    size_t length = (size_t)items;
    size_t payload =
        length > parser->bounds.items ? parser->bounds.bytes : length * sizeof(struct hli_reply *);

    /* Or it is a map, set or push of RESP3. */
    if (task->type != REDIS_REPLY_ARRAY || parser->reader->ridx >= parser->bounds.levels)
        return reply_refuse(task);
    struct hli_reply *reply = reply_new(task, HLI_REPLY_ARRAY, payload);
    if (reply && reply != &reply_beyond)
        reply->length = length;
    return reply;
}

static void *reply_create_integer(const redisReadTask *task, long long value)
{
    struct hli_reply *reply = reply_new(task, HLI_REPLY_INTEGER, 0);

    if (reply && reply != &reply_beyond)
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

struct hli_parser *hli_parser_new(const struct hli_reply_bounds *bounds)
{
    struct hli_parser *parser = calloc(1, sizeof(*parser));

    if (parser)
        parser->reader = redisReaderCreateWithFunctions(&reply_functions);
    if (!parser || !parser->reader) {
        free(parser);
        return NULL;
    }
    parser->reader->privdata = parser;
    parser->bounds = bounds ? *bounds : reply_bounds;
    if (parser->bounds.levels == 0)
        parser->bounds.levels = REPLY_LEVELS;
    parser->max_text =
        parser->bounds.bytes > REPLY_MAX_TEXT ? parser->bounds.bytes : REPLY_MAX_TEXT;
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
    return redisReaderFeed(parser->reader, bytes, length) == REDIS_OK ? 0 : parser_error(parser);
}

int hli_parser_next(struct hli_parser *parser, struct hli_reply **ret_reply)
{
    void *object = NULL;

    if (redisReaderGetReply(parser->reader, &object) != REDIS_OK)
        return parser_error(parser);
    struct hli_reply *reply = object;
    if (!reply && parser->reader->len - parser->reader->pos > parser->max_text)
        return HL_EPROTO;
    if (reply && reply != &reply_beyond)
        reply->is_beyond = parser->is_beyond;
    if (reply) {
        parser->kept = 0;
        parser->is_beyond = false;
    }
    *ret_reply = reply;
    return 0;
}
