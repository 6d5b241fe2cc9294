/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Commands of the caller's own: which may be sent, where to, and their replies. */
#include "base/error.h"
#include "base/versioned.h"
#include "lease/calls/call.h"

#include <hirelock/command.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct client_command {
    struct hli_call call;
    char name[24];             /* of the command, for the error's text */
    char node[HLI_WHERE_SIZE]; /* of call.node */
    hl_reply *reply;           /* owned; call mutex */
};

static struct client_command *command_of(struct hli_call *call)
{
    return HLI_OF(call, struct client_command, call);
}

/* What the connection for all commands of the client cannot carry: what holds for those behind it,
 * what has no reply or more than one, and what ends it. */
static const char *const command_refused[] = {
    "asking",       "auth",         "discard",     "exec",    "hello",      "monitor",
    "multi",        "psubscribe",   "psync",       "quit",    "readonly",   "readwrite",
    "replconf",     "punsubscribe", "reset",       "select",  "ssubscribe", "subscribe",
    "sunsubscribe", "sync",         "unsubscribe", "unwatch", "watch"};
static const char *const command_refused_with[][2] = {{"client", "reply"}, {"script", "debug"}};

static bool word_is(const hl_command *command, size_t at, const char *text)
{
    const char *word = command->words[at];
    size_t length = command->lengths ? command->lengths[at] : strlen(word);

    return length == strlen(text) && strncasecmp(word, text, length) == 0;
}

static bool command_is_refused(const hl_command *command)
{
    for (size_t i = 0; i < sizeof(command_refused) / sizeof(command_refused[0]); i++)
        if (word_is(command, 0, command_refused[i]))
            return true;
    for (size_t i = 0; i < sizeof(command_refused_with) / sizeof(command_refused_with[0]); i++)
        if (command->word_count > 1 && word_is(command, 0, command_refused_with[i][0]) &&
            word_is(command, 1, command_refused_with[i][1]))
            return true;
    return false;
}

static bool command_has_words(const hl_command *command)
{
    if (!command->words || command->word_count == 0)
        return false;
    for (size_t i = 0; i < command->word_count; i++)
        if (!command->words[i])
            return false;
    return true;
}

static int command_check(struct hli_call *call, const hl_command *command)
{
    if (!command_has_words(command))
        return hli_call_fail(call, HL_EINVAL, "there are no words, or one is NULL");
    if (command->flags & ~(unsigned)HL_COMMAND_READS)
        return hli_call_fail(call, HL_EINVAL, "an unknown flag");
    if (command->key && command->node)
        return hli_call_fail(call, HL_EINVAL, "a key and a node");
    if (command->timeout_ms < 0)
        return hli_call_fail(call, HL_EINVAL, "timeout_ms is negative");
    if (command_is_refused(command))
        return hli_call_fail(call, HL_EINVAL,
                             "it may not be sent: it has no reply of its own, or changes the "
                             "connection for the commands behind it");
    return 0;
}

/* Where to: the slot of the key, or a node. */
static int command_route(struct hli_call *call, const hl_command *command)
{
    struct client_command *own = command_of(call);
    struct hli_topology *topology = call->client->topology;

    if (command->key) {
        size_t length = command->key_length > 0 ? command->key_length : strlen(command->key);
        call->slot = hli_topology_slot(topology, command->key, length);
    }
    if (!command->node)
        return 0;
    snprintf(own->node, sizeof(own->node), "%s", command->node);
    call->node = hli_topology_link_at(topology, own->node);
    call->node_where = own->node;
    return call->node ? 0 : hli_call_fail(call, HL_ENOENT, "no node in use has this address");
}

static int command_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    const hl_command *command = what;
    int rc = command_check(call, command);

    if (rc == 0)
        rc = command_route(call, command);
    if (rc < 0)
        return rc;
    if (command->timeout_ms > 0)
        hli_call_set_timeout(call, command->timeout_ms);
    hli_args_begin(args);
    for (size_t i = 0; i < command->word_count; i++) {
        const char *word = command->words[i];
        size_t length = command->lengths ? command->lengths[i] : strlen(word);
        hli_args_bytes(args, (struct hli_bytes){word, length});
    }
    return 0;
}

/* A copy is one piece of memory: structs and arrays of pointers first, then the texts. */
struct reply_copy {
    void *structs;
    char *texts;
};

static bool reply_is_text(const struct hli_reply *reply)
{
    return reply->kind == HLI_REPLY_STRING || reply->kind == HLI_REPLY_STATUS ||
           reply->kind == HLI_REPLY_ERROR;
}

static void reply_measure(const struct hli_reply *reply, size_t *structs, size_t *texts)
{
    *structs += sizeof(hl_reply);
    if (reply_is_text(reply))
        *texts += reply->length + 1;
    if (reply->kind != HLI_REPLY_ARRAY)
        return;
    *structs += reply->length * sizeof(hl_reply *);
    for (size_t i = 0; i < reply->length; i++)
        reply_measure(reply->item[i], structs, texts);
}

static void *reply_take(struct reply_copy *copy, size_t size)
{
    void *taken = copy->structs;

    copy->structs = (char *)taken + size;
    return taken;
}

static hl_reply_kind reply_kind(enum hli_reply_kind kind)
{
    switch (kind) {
    case HLI_REPLY_STRING:
        return HL_REPLY_TEXT;
    case HLI_REPLY_STATUS:
        return HL_REPLY_STATUS;
    case HLI_REPLY_INTEGER:
        return HL_REPLY_INTEGER;
    case HLI_REPLY_ARRAY:
        return HL_REPLY_ARRAY;
    case HLI_REPLY_ERROR:
        return HL_REPLY_ERROR;
    default:
        return HL_REPLY_NIL;
    }
}

static hl_reply *reply_fill(struct reply_copy *copy, const struct hli_reply *from)
{
    hl_reply *reply = reply_take(copy, sizeof(*reply));

    *reply = (hl_reply){
        .size = sizeof(*reply), .kind = reply_kind(from->kind), .integer = from->integer};
    if (reply_is_text(from)) {
        reply->text = memcpy(copy->texts, from->text, from->length + 1);
        reply->length = from->length;
        copy->texts += from->length + 1;
    }
    if (from->kind == HLI_REPLY_ARRAY) {
        const hl_reply **elements = reply_take(copy, from->length * sizeof(*elements));
        for (size_t i = 0; i < from->length; i++)
            elements[i] = reply_fill(copy, from->item[i]);
        reply->elements = elements;
        reply->element_count = from->length;
    }
    return reply;
}

static hl_reply *reply_copy(const struct hli_reply *from)
{
    size_t structs = 0, texts = 0;

    reply_measure(from, &structs, &texts);
    char *memory = malloc(structs + texts);
    struct reply_copy copy = {memory, memory + structs};
    return memory ? reply_fill(&copy, from) : NULL;
}

void hl_reply_free(hl_reply *reply)
{
    free(reply);
}

static int command_read(struct hli_call *call, const struct hli_reply *reply)
{
    struct client_command *own = command_of(call);

    own->reply = reply_copy(reply);
    if (own->reply)
        return HL_OK;
    return hli_call_fail(call, call->kind->changes_data ? HL_EINDOUBT : HL_ENOMEM,
                         "it has run, and there is no memory for its reply");
}

static void command_tell(struct hli_async *async, int code, const hl_error *err)
{
    struct client_command *own = command_of(HLI_PART_OF(async, struct hli_call, async));

    async->completion.replied(code, own->reply, err, async->completion.arg);
    free(own->reply);
    own->reply = NULL;
}

/* Of a blocking call. */
static void command_settle(struct hli_call *call, int code)
{
    struct client_command *own = command_of(call);

    if (call->async.completion.is_async)
        return;
    if (code == HL_OK)
        *call->async.completion.ret_reply = own->reply;
    else
        free(own->reply);
    own->reply = NULL;
}

static const struct hli_call_kind command_kind = {.verb = "command",
                                                  .size = sizeof(struct client_command),
                                                  .changes_data = true,
                                                  .is_foreign = true,
                                                  .prepare = command_prepare,
                                                  .read = command_read,
                                                  .settle = command_settle};
static const struct hli_call_kind command_that_reads_kind = {.verb = "command",
                                                             .size = sizeof(struct client_command),
                                                             .is_repeatable = true,
                                                             .is_foreign = true,
                                                             .prepare = command_prepare,
                                                             .read = command_read,
                                                             .settle = command_settle};

static void command_set_name(struct client_command *own, const hl_command *command)
{
    if (!command_has_words(command))
        return;
    const char *word = command->words[0];
    size_t length = command->lengths ? command->lengths[0] : strlen(word);
    size_t kept = length < sizeof(own->name) ? length : sizeof(own->name);
    memcpy(own->name, word, kept);
    own->call.about = (struct hli_bytes){own->name, kept};
}

static struct hli_call *command_new(hl_client *client, const hl_command *command)
{
    struct hli_call *call = hli_call_new(
        command->flags & HL_COMMAND_READS ? &command_that_reads_kind : &command_kind, client);

    if (!call)
        return NULL;
    call->async.tell = command_tell;
    command_set_name(command_of(call), command);
    return call;
}

static int client_command(hl_client *client, const hl_command *passed,
                          const struct hli_completion *completion)
{
    hl_command command = HL_COMMAND_INIT;
    int rc = passed ? hli_versioned_read(&command, sizeof(command), passed, "hl_command",
                                         completion->err)
                    : hli_fail(completion->err, HL_EINVAL, "the command is NULL");

    if (rc == 0)
        rc = hli_client_enter_call(client, completion);
    if (rc < 0)
        return rc;
    rc = hli_call_run(command_new(client, &command), &command, completion);
    hli_client_leave(client);
    return rc;
}

int hl_client_command(hl_client *client, const hl_command *command, hl_reply **ret_reply,
                      hl_error *err)
{
    if (!ret_reply)
        return hli_fail(err, HL_EINVAL, "ret_reply is NULL");
    return client_command(client, command,
                          &(struct hli_completion){.err = err, .ret_reply = ret_reply});
}

int hl_client_command_async(hl_client *client, const hl_command *command, hl_reply_cb done,
                            void *arg)
{
    return client_command(client, command, HLI_ASYNC_CALL(replied, done, arg));
}
