/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The first shard is asked, and answers MOVED when a key is another's. */
#include "redis_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fatal.h"
#include "redis_link.h"
#include "redis_server.h"

/* The words of a command, borrowed. */
enum { WORDS = 64 };

struct command {
    int count;
    const char *word[WORDS];
    size_t length[WORDS];
};

/* As it is sent: "*2\r\n$3\r\nGET\r\n$5\r\nstock\r\n". */
static struct command command_read(const char *bytes)
{
    char *at = NULL;
    struct command command = {.count = (int)strtol(bytes + 1, &at, 10)};
    must(command.count <= WORDS);
    for (int i = 0; i < command.count; i++) {
        command.length[i] = strtoul(at + strlen("\r\n$"), &at, 10);
        command.word[i] = at + strlen("\r\n");
        at += strlen("\r\n") + command.length[i];
    }
    return command;
}

static void command_set(struct command *command, int i, const char *word)
{
    command->word[i] = word;
    command->length[i] = strlen(word);
}

static bool command_has(const struct command *command, int i, const char *word)
{
    return i < command->count && command->length[i] == strlen(word) &&
           strncasecmp(command->word[i], word, command->length[i]) == 0;
}

static bool command_is_for_all(const struct command *command)
{
    static const char *const words[] = {"ACL",  "CLIENT", "CONFIG", "DBSIZE", "FLUSHALL",
                                        "INFO", "KEYS",   "PUBSUB", "SCRIPT", "SLOWLOG"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (command_has(command, 0, words[i]))
            return true;
    return command_has(command, 0, "EVAL") && command_has(command, 2, "0");
}

/* A script with each 'PUBLISH' of its replaced. The caller frees it. */
static char *script_shard_messages(const char *script, size_t length)
{
    static const char word[] = "'PUBLISH'";
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    must(out);
    for (const char *at = script; at < script + length;) {
        const char *found = memmem(at, (size_t)(script + length - at), word, sizeof word - 1);
        const char *end = found ? found : script + length;
        fwrite(at, 1, (size_t)(end - at), out);
        if (found)
            fputs("'SPUBLISH'", out);
        at = found ? found + sizeof word - 1 : end;
    }
    must(fclose(out) == 0);
    return text;
}

/* Returns the memory that it needs, which the caller frees. */
static char *command_shard_messages(struct command *command)
{
    char *script = NULL;
    if (command_has(command, 0, "PUBLISH"))
        command_set(command, 0, "SPUBLISH");
    if (command_has(command, 0, "EVAL")) {
        script = script_shard_messages(command->word[1], command->length[1]);
        command_set(command, 1, script);
    }
    return script;
}

static redisReply *shard_ask(struct redis_server *shard, const struct command *command)
{
    char *bytes = NULL;
    int length = (int)redisFormatCommandArgv(&bytes, command->count, (const char **)command->word,
                                             command->length);
    must(length > 0);
    redisReply *reply = redis_link_send(redis_server_link(shard), bytes, (size_t)length);
    free(bytes);
    return reply;
}

/* "MOVED 3999 127.0.0.1:6381" names one of the shards; another reply none. */
static struct redis_server *shards_find(const struct redis_shards *shards, const redisReply *reply)
{
    if (!reply || reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "MOVED ", 6) != 0)
        return NULL;
    long port = strtol(strrchr(reply->str, ':') + 1, NULL, 10);
    for (int i = 0; i < shards->count; i++)
        if (redis_server_port(shards->shard[i]) == port)
            return shards->shard[i];
    fatal("no shard of this test: %s", reply->str);
}

static redisReply *shards_ask_one(const struct redis_shards *shards, const struct command *command)
{
    redisReply *reply = shard_ask(shards->shard[0], command);
    struct redis_server *shard = shards_find(shards, reply);
    if (shard) {
        freeReplyObject(reply);
        reply = shard_ask(shard, command);
    }
    return reply;
}

/* The elements or the text of `from` become the last ones of `reply`. */
static void reply_take_over(redisReply *reply, redisReply *from)
{
    if (reply->type == REDIS_REPLY_ARRAY) {
        size_t count = reply->elements + from->elements;
        reply->element = realloc(reply->element, (count + 1) * sizeof *reply->element);
        must(reply->element);
        for (size_t i = 0; i < from->elements; i++)
            reply->element[reply->elements++] = from->element[i];
        from->elements = 0;
    } else {
        size_t length = (size_t)reply->len, more = (size_t)from->len;
        reply->str = realloc(reply->str, length + more + 1);
        must(reply->str);
        memcpy(reply->str + length, from->str, more + 1);
        reply->len += from->len;
    }
}

/* Frees all but the one that it returns. */
static redisReply *reply_join(redisReply *reply, redisReply *next)
{
    if (!next || next->type != reply->type || next->type == REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        return next;
    }
    if (next->type == REDIS_REPLY_INTEGER)
        reply->integer += next->integer;
    else if (next->type == REDIS_REPLY_ARRAY || next->type == REDIS_REPLY_STRING)
        reply_take_over(reply, next);
    freeReplyObject(next);
    return reply;
}

static redisReply *shards_ask_all(const struct redis_shards *shards, const struct command *command)
{
    redisReply *reply = shard_ask(shards->shard[0], command);
    for (int i = 1; i < shards->count && reply && reply->type != REDIS_REPLY_ERROR; i++)
        reply = reply_join(reply, shard_ask(shards->shard[i], command));
    return reply;
}

/* Each key is asked about by itself. */
static redisReply *shards_ask_apart(const struct redis_shards *shards,
                                    const struct command *command)
{
    redisReply *reply = NULL;
    for (int i = 1; i < command->count; i++) {
        struct command one = *command;
        one.count = 2;
        one.word[1] = command->word[i];
        one.length[1] = command->length[i];
        redisReply *next = shards_ask_one(shards, &one);
        reply = reply ? reply_join(reply, next) : next;
    }
    return reply;
}

static struct redis_server *shards_of(const struct redis_shards *shards, const char *name,
                                      size_t length)
{
    struct command command = {.count = 2, .word[1] = name, .length[1] = length};
    command_set(&command, 0, "EXISTS");
    redisReply *reply = shard_ask(shards->shard[0], &command);
    struct redis_server *shard = shards_find(shards, reply);
    freeReplyObject(reply);
    return shard ? shard : shards->shard[0];
}

/* At the node whose scripts send messages by this channel: behind these, wherever one listens. */
static redisReply *shards_publish(const struct redis_shards *shards, const struct command *command)
{
    return shard_ask(shards_of(shards, command->word[1], command->length[1]), command);
}

static redisReply *shards_ask(const struct redis_shards *shards, const struct command *command)
{
    bool has_keys_only = command_has(command, 0, "DEL") || command_has(command, 0, "EXISTS");
    if (command_has(command, 0, "PUBLISH"))
        return shards_publish(shards, command);
    if (command_is_for_all(command))
        return shards_ask_all(shards, command);
    return has_keys_only ? shards_ask_apart(shards, command) : shards_ask_one(shards, command);
}

redisReply *redis_shards_command(const struct redis_shards *shards, const char *format,
                                 va_list args)
{
    char *bytes = NULL, *script = NULL;
    must(redisvFormatCommand(&bytes, format, args) > 0);
    struct command command = command_read(bytes);
    if (shards->has_sharded_messages)
        script = command_shard_messages(&command);
    redisReply *reply = shards_ask(shards, &command);
    free(script);
    free(bytes);
    return reply;
}

struct redis_server *redis_shards_of(const struct redis_shards *shards, const char *names)
{
    return shards_of(shards, names, strcspn(names, " "));
}
