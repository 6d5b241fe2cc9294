/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each question is one command on the server's link, or at the shards that the server stands for.
 */
#include "redis_probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "deadline.h"
#include "fatal.h"
#include "redis_link.h"
#include "redis_shards.h"

static redisReply *redis_ask(struct redis_server *server, const char *format, va_list args)
{
    const struct redis_shards *shards = redis_server_shards(server);
    return shards ? redis_shards_command(shards, format, args)
                  : redis_link_command(redis_server_link(server), format, args);
}

redisReply *redis_command(struct redis_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redis_ask(server, format, args);
    va_end(args);
    return reply;
}

static int64_t redis_read_int(redisReply *reply, const char *format)
{
    int64_t value = -1;
    if (!reply)
        fatal("no answer to %s", format);
    if (reply->type == REDIS_REPLY_INTEGER)
        value = reply->integer;
    else if (reply->type == REDIS_REPLY_STRING)
        value = strtoll(reply->str, NULL, 10);
    else if (reply->type != REDIS_REPLY_NIL)
        fatal("no integer for %s: %s", format, reply->str ? reply->str : "an array");
    freeReplyObject(reply);
    return value;
}

int64_t redis_int(struct redis_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redis_ask(server, format, args);
    va_end(args);
    return redis_read_int(reply, format);
}

static void redis_print(FILE *out, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        fprintf(out, "%lld", reply->integer);
    else if (reply->type == REDIS_REPLY_NIL)
        fputs("(nil)", out);
    else if (reply->str)
        fwrite(reply->str, 1, (size_t)reply->len, out);
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        if (i > 0)
            fputc(' ', out);
        redis_print(out, reply->element[i]);
    }
}

const char *redis_str(struct redis_server *server, const char *format, ...)
{
    static _Thread_local char texts[8][4096];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % 8];
    va_list args;
    va_start(args, format);
    redisReply *reply = redis_ask(server, format, args);
    va_end(args);
    if (!reply)
        fatal("no answer to %s", format);
    memset(text, 0, sizeof texts[0]);
    FILE *out = fmemopen(text, sizeof texts[0] - 1, "w");
    must(out);
    redis_print(out, reply);
    fclose(out);
    freeReplyObject(reply);
    return text;
}

void redis_do(struct redis_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redis_ask(server, format, args);
    va_end(args);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fatal("%s: %s", format, reply ? reply->str : "no answer");
    freeReplyObject(reply);
}

int redis_post(struct redis_server *server, const char *format, ...)
{
    int done = 0;
    redisContext *context = redis_link_connect(redis_server_socket(server));
    must(context);
    va_list args;
    va_start(args, format);
    must(redisvAppendCommand(context, format, args) == REDIS_OK);
    va_end(args);
    while (!done)
        must(redisBufferWrite(context, &done) == REDIS_OK);
    int fd = dup(context->fd);
    must(fd >= 0);
    redisFree(context);
    return fd;
}

int64_t redis_calls(struct redis_server *server, const char *command)
{
    char key[64];
    int64_t calls = 0;
    snprintf(key, sizeof key, "cmdstat_%s:calls=", command);
    redisReply *reply = redis_command(server, "INFO commandstats");
    must(reply && reply->type == REDIS_REPLY_STRING);
    for (const char *at = reply->str; (at = strstr(at, key)); at += strlen(key))
        calls += strtoll(at + strlen(key), NULL, 10);
    freeReplyObject(reply);
    return calls;
}

int64_t redis_subcommand_calls(struct redis_server *server, const char *command,
                               const char *subcommand)
{
    int64_t calls = 0;
    redisReply *log = redis_command(server, "SLOWLOG GET -1");
    must(log && log->type == REDIS_REPLY_ARRAY && log->elements > 0); /* it has our own commands */
    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *words = log->element[i]->element[3];
        calls += words->elements > 1 && strcasecmp(words->element[0]->str, command) == 0 &&
                 strcasecmp(words->element[1]->str, subcommand) == 0;
    }
    freeReplyObject(log);
    return calls;
}

/* HELP has a line "KILL <option> ..." for each subcommand, and lines with spaces in front below it;
 * it is asked first, for it may be denied afterwards. */
static void redis_deny_of_the_whole(struct redis_server *server, const char *user,
                                    const char *command, const char *denied)
{
    redisReply *help = redis_command(server, "%s HELP", command);
    must(help && help->type == REDIS_REPLY_ARRAY);
    redis_do(server, "ACL SETUSER %s -%s", user, command);
    for (size_t i = 1; i < help->elements; i++) { /* the first line is on the command */
        const char *line = help->element[i]->str;
        int length = (int)strcspn(line, " ");
        char word[32];
        snprintf(word, sizeof word, "%.*s", length, line);
        if (length > 0 && strcasecmp(word, denied) != 0)
            redis_do(server, "ACL SETUSER %s +%s|%s", user, command, word);
    }
    freeReplyObject(help);
}

void redis_deny(struct redis_server *server, const char *user, const char *command)
{
    char whole[32];
    const char *bar = strchr(command, '|');
    redisReply *reply = redis_command(server, "ACL SETUSER %s -%s", user, command);
    must(reply);
    bool is_done = reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    if (is_done)
        return;
    if (!bar)
        fatal("ACL SETUSER %s -%s is refused", user, command);
    snprintf(whole, sizeof whole, "%.*s", (int)(bar - command), command);
    redis_deny_of_the_whole(server, user, whole, bar + 1);
}

int64_t redis_evalsha_calls(struct redis_server *server)
{
    return redis_calls(server, "evalsha");
}

int64_t redis_requests(struct redis_server *server)
{
    static const char *const commands[] = {"eval", "evalsha", "subscribe", "unsubscribe"};
    int64_t calls = 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        calls += redis_calls(server, commands[i]);
    return calls;
}

/* The answer is a channel and its number, at each shard. */
static int redis_count_subscribers(struct redis_server *server, const char *numsub,
                                   const char *channel)
{
    int count = 0;
    redisReply *reply = redis_command(server, "PUBSUB %s %s", numsub, channel);
    must(reply);
    for (size_t i = 1; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i += 2)
        count += (int)reply->element[i]->integer;
    freeReplyObject(reply);
    return count;
}

int redis_subscribers(struct redis_server *server, const char *channel)
{
    return redis_count_subscribers(server, "NUMSUB", channel) +
           redis_count_subscribers(server, "SHARDNUMSUB", channel); /* an error before Redis 7 */
}

static const char *redis_kind_name(enum redis_kind kind)
{
    return kind == REDIS_PUBSUB ? "pubsub" : "normal";
}

int redis_clients(struct redis_server *server, enum redis_kind kind, const char *name)
{
    char wanted[128];
    int count = 0;
    snprintf(wanted, sizeof wanted, " name=%s", name);
    redisReply *reply = redis_command(server, "CLIENT LIST TYPE %s", redis_kind_name(kind));
    must(reply && reply->type == REDIS_REPLY_STRING);
    const char *at = reply->str;
    while ((at = strstr(at, " name="))) {
        if (strncmp(at, wanted, strlen(wanted)) == 0 && strncmp(at, " name=hltest ", 13) != 0)
            count++;
        at++;
    }
    freeReplyObject(reply);
    return count;
}

int redis_kill_clients(struct redis_server *server, enum redis_kind kind)
{
    return (int)redis_int(server, "CLIENT KILL TYPE %s", redis_kind_name(kind));
}

/* Of a list of clients; frees it. */
static int redis_kill_listed(struct redis_server *server, redisReply *reply, const char *name)
{
    char wanted[128];
    int killed = 0;
    snprintf(wanted, sizeof wanted, " name=%s ", name);
    must(reply && reply->type == REDIS_REPLY_STRING);
    char *rest = NULL, *line = strtok_r(reply->str, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        long long id = strtoll(line + strlen("id="), NULL, 10);
        if (strstr(line, wanted))
            killed += (int)redis_int(server, "CLIENT KILL ID %lld", id);
    }
    freeReplyObject(reply);
    return killed;
}

int redis_kill_named(struct redis_server *server, enum redis_kind kind, const char *name)
{
    return redis_kill_listed(
        server, redis_command(server, "CLIENT LIST TYPE %s", redis_kind_name(kind)), name);
}

int redis_kill_links(struct redis_server *server, const char *name)
{
    return redis_kill_listed(server, redis_command(server, "CLIENT LIST"), name);
}

bool redis_wait_subscribers(struct redis_server *server, const char *channel, int n, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (redis_subscribers(server, channel) != n) {
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
    return true;
}

bool redis_wait_clients(struct redis_server *server, enum redis_kind kind, int n, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (redis_clients(server, kind, "hirelock") != n) {
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
    return true;
}

/* In INFO replication: "slave0:ip=127.0.0.1,port=6380,state=online,offset=656,lag=0". */
static int replicas_with(struct redis_server *server, long long offset)
{
    const char *at = redis_str(server, "INFO replication");
    int count = 0;

    while ((at = strstr(at, ",offset=")))
        count += atoll(at += strlen(",offset=")) >= offset;
    return count;
}

bool redis_wait_replicas(struct redis_server *server, int n, int64_t ms)
{
    static const char key[] = "master_repl_offset:";
    struct deadline deadline = deadline_of_wait(ms);
    const char *offset = strstr(redis_str(server, "INFO replication"), key);
    must(offset);
    long long now = atoll(offset + strlen(key));
    while (replicas_with(server, now) < n) {
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
    return true;
}

bool redis_wait_int(struct redis_server *server, int64_t value, int64_t ms, const char *format, ...)
{
    struct deadline deadline = deadline_of_wait(ms);
    for (;;) {
        va_list args;
        va_start(args, format);
        redisReply *reply = redis_ask(server, format, args);
        va_end(args);
        if (redis_read_int(reply, format) == value)
            return true;
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
}
