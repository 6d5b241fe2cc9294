/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Noted commands: words, and calls. */
#include "sync/noted.h"

#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "hirelock_note:{name}:<uuid>:", and the id behind it is a note's key. */
#define NOTED_PREFIX "hirelock_note:"

/* Without memory the note goes by itself, as all do. */
void hli_settle(struct hli_name *name, uint64_t id)
{
    if (!name->settled)
        name->settled = calloc(1, sizeof(*name->settled));
    if (name->settled && name->settled->count < HLI_SETTLED_LIMIT)
        name->settled->id[name->settled->count++] = id;
}

static char *noted_room(struct hli_noted *noted, size_t length)
{
    HLI_CHECK(noted->used + length <= sizeof(noted->text));
    return noted->text + noted->used;
}

/* The last `length` bytes of text become a word. */
static void noted_word(struct hli_noted *noted, size_t length)
{
    HLI_CHECK(noted->count < sizeof(noted->word) / sizeof(noted->word[0]));
    noted->word[noted->count++] = (struct hli_bytes){noted->text + noted->used, length};
    noted->used += length;
}

void hli_noted_number(struct hli_noted *noted, int64_t number)
{
    enum { DIGITS = 24 };
    char *text = noted_room(noted, DIGITS);

    noted_word(noted, (size_t)snprintf(text, DIGITS, "%" PRId64, number));
}

void hli_noted_begin(struct hli_noted *noted, const struct hli_name *name, uint64_t id)
{
    noted->name = name;
    noted->count = noted->used = 0;
    char *text = noted_room(noted, HLI_CHANNEL_SIZE);
    size_t length = hli_name_write(name, NOTED_PREFIX, text);
    length += (size_t)snprintf(text + length, HLI_CHANNEL_SIZE - length, ":%s:", name->client->id);
    noted_word(noted, length);
    hli_noted_number(noted, (int64_t)id);
    hli_noted_number(noted, HLI_NOTE_MS);
}

void hli_noted_tell(struct hli_noted *noted)
{
    noted_word(noted, hli_name_write_channel(noted->name, noted_room(noted, HLI_CHANNEL_SIZE)));
    memcpy(noted_room(noted, strlen("PUBLISH")), "PUBLISH", strlen("PUBLISH"));
    noted_word(noted, strlen("PUBLISH"));
}

int hli_noted_format(struct hli_noted *noted, struct hli_op *op, hli_script_id script)
{
    const struct hli_bytes key = {noted->name->bytes, noted->name->length};
    struct hli_settled *settled = noted->name->settled;

    if (!settled || settled->count == 0)
        hli_noted_number(noted, 0); /* the script wants one */
    while (settled && settled->count > 0)
        hli_noted_number(noted, (int64_t)settled->id[--settled->count]);
    return hli_op_script(op, script,
                         &(struct hli_script_words){&key, 1, noted->word, noted->count});
}

struct noted_call {
    struct hli_query query;
    const struct hli_noted_verb *verb;
    uint64_t id;
    bool is_answered; /* call mutex, as the query's count; whoever is told reads it afterwards */
};

static struct noted_call *noted_call_of(struct hli_query *query)
{
    return HLI_OF(query, struct noted_call, query);
}

/* {0}, {1}; else the count is last. */
int hli_noted_read(struct hli_query *query, const struct hli_reply *reply)
{
    const struct hli_noted_verb *verb = noted_call_of(query)->verb;

    noted_call_of(query)->is_answered = true;
    if (!hli_reply_integer_at(reply, reply->length - 1, &query->count))
        return HL_ESERVER;
    if (reply->length == 1 && query->count == 0 && verb->no < 0)
        return hli_fail(&query->call.err, verb->no, "%s: %s", verb->query.verb, verb->no_text);
    return HL_OK;
}

/* Only what was sent once, and answered, is not on its way any more. */
void hli_noted_settle(struct hli_query *query, int code)
{
    struct noted_call *call = noted_call_of(query);

    if (call->verb->is_release && code == HL_OK)
        hli_count(&query->name->client->counters.releases);
    if (!call->is_answered || query->call.may_have_run)
        return;
    pthread_mutex_lock(&query->name->mutex);
    hli_settle(query->name, call->id);
    pthread_mutex_unlock(&query->name->mutex);
}

static int noted_format(struct noted_call *call, const struct hli_noted_call *said)
{
    struct hli_name *name = call->query.name;
    const struct hli_bytes key = {name->bytes, name->length};
    struct hli_noted noted;

    if (!call->query.kind->is_deed)
        return hli_op_script(&call->query.call.op, said->verb->script,
                             &(struct hli_script_words){.keys = &key, .key_count = 1});
    hli_noted_begin(&noted, name, call->id);
    if (said->verb->tells)
        hli_noted_tell(&noted);
    for (size_t i = 0; i < said->numbers; i++)
        hli_noted_number(&noted, said->number[i]);
    pthread_mutex_lock(&name->mutex);
    int rc = hli_noted_format(&noted, &call->query.call.op, said->verb->script);
    pthread_mutex_unlock(&name->mutex);
    return rc;
}

/* A copy must run while the note of the first stands: it may take one request timeout to be given
 * up, and another to arrive. */
static int64_t noted_repeat_ms(const hl_client *client)
{
    int64_t left_ms = HLI_NOTE_MS - 2 * client->settings.request_timeout_ms;

    return left_ms > 0 ? left_ms : 1;
}

/* Without memory NULL, which is what a query's two ways expect. */
static struct hli_query *noted_query(struct hli_name *name, const struct hli_noted_call *said)
{
    struct hli_query *query = hli_query_new(&said->verb->query, name, sizeof(struct noted_call));

    if (!query)
        return NULL;
    noted_call_of(query)->verb = said->verb;
    noted_call_of(query)->id = hli_tenure_number(name->client);
    query->call.repeat_ms = noted_repeat_ms(name->client);
    if (noted_format(noted_call_of(query), said) == 0)
        return query;
    hli_query_unref(query);
    return NULL;
}

int hli_noted_block(const struct hli_handle *handle, const struct hli_noted_call *said,
                    int64_t *ret_count, hl_error *err)
{
    int rc = hli_handle_enter(handle, err);

    if (rc < 0)
        return rc;
    rc = hli_query_block(noted_query(handle->name, said), ret_count, err);
    hli_handle_leave(handle);
    return rc;
}

int hli_noted_post(const struct hli_handle *handle, const struct hli_noted_call *said,
                   const struct hli_told *told)
{
    int rc = told->done || told->counted ? hli_handle_enter(handle, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = handle->name->client;
    rc = hli_query_post(noted_query(handle->name, said), told);
    hli_client_leave(client);
    return rc;
}

static struct hli_acquire_way noted_way(uint32_t need)
{
    return (struct hli_acquire_way){.watch_ms = HLI_NOTE_MS, .need = need};
}

int hli_noted_wait(const struct hli_handle *handle, uint32_t need,
                   const hl_acquire_options *options, hl_error *err)
{
    const struct hli_acquire_way way = noted_way(need);
    hl_acquire_options read;
    int rc = hli_handle_enter(handle, err);

    if (rc < 0)
        return rc;
    rc = hli_request_read_wait(handle->name->client, options, &read, err);
    if (rc == 0)
        rc = hli_request_block(&(struct hli_request){handle->name, &way, &read}, err);
    hli_handle_leave(handle);
    return rc;
}

int hli_noted_wait_post(const struct hli_handle *handle, uint32_t need,
                        const hl_acquire_options *options, hl_done_cb done, void *arg)
{
    const struct hli_acquire_way way = noted_way(need);
    hl_acquire_options read;
    int rc = hli_handle_enter(handle, NULL);

    if (rc < 0)
        return rc;
    hl_client *client = handle->name->client;
    rc = hli_request_read_wait(handle->name->client, options, &read, NULL);
    if (rc == 0)
        rc = hli_request_post(&(struct hli_request){handle->name, &way, &read}, done, arg);
    hli_client_leave(client);
    return rc;
}
