/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Noted commands: words, and calls. */
#include "sync/counted/once.h"

#include "base/check.h"
#include "lease/acquire/acquire.h"
#include "lease/state/command.h"
#include "sync/common/acquire_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Without memory the id is forgotten, and its note expires. */
void hli_ack(struct hli_name *name, uint64_t id)
{
    if (!name->settled)
        name->settled = calloc(1, sizeof(*name->settled));
    if (name->settled && name->settled->count < HLI_ACKED_LIMIT)
        name->settled->id[name->settled->count++] = id;
}

/* The beginning of this client's notes beside the name: "hirelock_note:{name}:<uuid>:"; an id ends
 * a note's key. Returns its length. */
static size_t once_write_notes(const struct hli_name *name, char text[HLI_CHANNEL_SIZE])
{
    size_t length = hli_name_write(name, HLI_NAME_NOTE, text);

    return length +
           (size_t)snprintf(text + length, HLI_CHANNEL_SIZE - length, ":%s:", name->client->id);
}

static void once_declare(struct hli_args *args, const struct hli_name *name, uint64_t id)
{
    char text[HLI_CHANNEL_SIZE];
    size_t length = once_write_notes(name, text);

    length += (size_t)snprintf(text + length, sizeof(text) - length, "%" PRIu64, id);
    hli_args_key(args, (struct hli_bytes){text, length});
}

static void once_declare_acked(struct hli_args *args, const struct hli_name *name)
{
    const struct hli_acked *settled = name->settled;

    if (!settled || settled->count == 0)
        once_declare(args, name, 0);
    for (unsigned i = 0; settled && i < settled->count; i++)
        once_declare(args, name, settled->id[i]);
}

void hli_once_begin_keys(struct hli_args *args, hli_script_id script, const struct hli_name *name,
                         uint64_t id)
{
    hli_command_begin(args, script, name);
    if (name->client->wording->is_for_cluster) {
        once_declare(args, name, id);
        once_declare_acked(args, name);
    }
}

void hli_once_begin_words(struct hli_args *args, const struct hli_name *name, uint64_t id)
{
    char text[HLI_CHANNEL_SIZE];
    size_t length = once_write_notes(name, text);

    hli_args_bytes(args, (struct hli_bytes){text, length});
    hli_args_number(args, (int64_t)id);
    hli_args_number(args, HLI_NOTE_MS);
}

void hli_once_begin(struct hli_args *args, hli_script_id script, const struct hli_name *name,
                    uint64_t id)
{
    hli_once_begin_keys(args, script, name, id);
    hli_once_begin_words(args, name, id);
}

void hli_once_acked(struct hli_args *args, const struct hli_name *name)
{
    struct hli_acked *settled = name->settled;

    if (!settled || settled->count == 0)
        hli_args_number(args, 0); /* the script needs at least one */
    while (settled && settled->count > 0)
        hli_args_number(args, (int64_t)settled->id[--settled->count]);
}

static struct hli_once_call *once_call_of(struct hli_call *call)
{
    return HLI_OF(call, struct hli_once_call, call);
}

static const struct hli_once_verb *once_verb_of(const struct hli_call *call)
{
    return HLI_OF(call->kind, const struct hli_once_verb, call);
}

/* {0}, {1}; else the count is last. */
int hli_once_read(struct hli_call *call, const struct hli_reply *reply)
{
    once_call_of(call)->is_answered = true;
    if (!hli_reply_integer_at(reply, reply->length - 1, &call->count))
        return HL_ESERVER;
    return reply->length == 1 && call->count == 0 ? call->kind->no : HL_OK;
}

/* Acks a command only if it was sent once and answered: else a copy may still be on its way. */
void hli_once_ack(struct hli_call *call, int code)
{
    const struct hli_once_call *noted = once_call_of(call);

    if (call->kind->counts_as == HL_CALL_RELEASE && code == HL_OK)
        hli_count(&call->client->counters.releases);
    if (!noted->is_answered || call->may_have_run)
        return;
    hli_mutex_lock(&call->name->mutex);
    hli_ack(call->name, noted->id);
    hli_mutex_unlock(&call->name->mutex);
}

/* How long a command may be repeated. A copy must run before the first one's note expires: a
 * request may take one request timeout to fail, and its copy another to arrive. */
static int64_t once_repeat_ms(const hl_client *client)
{
    int64_t left_ms = HLI_NOTE_MS - 2 * client->settings.request_timeout_ms;

    return left_ms > 0 ? left_ms : 1;
}

static void once_add_words(struct hli_args *args, struct hli_call *call, const int64_t *words)
{
    const struct hli_once_verb *verb = once_verb_of(call);

    once_call_of(call)->id = hli_client_next_number(call->client);
    hli_mutex_lock(&call->name->mutex);
    hli_once_begin(args, call->kind->script, call->name, once_call_of(call)->id);
    if (verb->publishes)
        hli_command_publish(args, call->name);
    for (size_t i = 0; i < verb->word_count; i++)
        hli_args_number(args, words[i]);
    hli_once_acked(args, call->name);
    hli_mutex_unlock(&call->name->mutex);
}

int hli_once_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    call->repeat_ms = once_repeat_ms(call->client);
    if (call->kind->changes_data)
        once_add_words(args, call, what);
    else
        hli_command_begin(args, call->kind->script, call->name);
    return 0;
}

int hli_once_run(const struct hli_handle *handle, const struct hli_once_verb *verb, int64_t word,
                 int64_t second, const struct hli_completion *completion)
{
    const int64_t words[] = {word, second};

    return hli_handle_run(handle, &verb->call, words, completion);
}

int hli_once_wait(const struct hli_handle *handle, uint32_t need, const hl_wait_options *options,
                  const struct hli_completion *completion)
{
    hl_acquire_options read;
    int rc = hli_handle_enter(handle, completion);

    if (rc < 0)
        return rc;
    hl_client *client = handle->name->client;
    const struct hli_acquire_spec spec = {
        .name = handle->name, .mode = {.watch_ms = HLI_NOTE_MS, .need = need}, .options = &read};
    rc = hli_wait_options_read(options, &read, completion->err);
    if (rc == 0)
        rc = hli_acquire_run(&spec, completion);
    hli_client_leave(client);
    return rc;
}
