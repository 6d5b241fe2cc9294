/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The server under test: INFO, PUBSUB, and a few plain commands. */
#include "server.h"

#include "must.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

redisContext *server_connect(const struct server *server)
{
    redisContext *link = redisConnect("127.0.0.1", server->port);

    must(link != NULL, "out of memory");
    must(link->err == 0, "connect 127.0.0.1:%d: %s", server->port, link->errstr);
    return link;
}

static redisReply *server_ask(struct server *server, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(server->link, format, args);

    must(reply != NULL, "the server does not answer: %s", server->link->errstr);
    must(reply->type != REDIS_REPLY_ERROR, "%s: %s", format, reply->str);
    return reply;
}

static redisReply *server_reply(struct server *server, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = server_ask(server, format, args);
    va_end(args);
    return reply;
}

int64_t server_int(struct server *server, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = server_ask(server, format, args);
    va_end(args);
    must(reply->type == REDIS_REPLY_INTEGER, "%s: no integer", format);
    int64_t value = reply->integer;
    freeReplyObject(reply);
    return value;
}

/* What follows `field` on its line, as text of at most `size` bytes; empty when it is not there. */
static void server_read(const redisReply *reply, const char *field, char *text, size_t size)
{
    const char *found = strstr(reply->str, field);

    text[0] = '\0';
    if (found) {
        snprintf(text, size, "%s", found + strlen(field));
        text[strcspn(text, "\r\n")] = '\0';
    }
}

static void server_info(struct server *server, const char *section, const char *field, char *text,
                        size_t size)
{
    redisReply *reply = server_reply(server, "INFO %s", section);

    server_read(reply, field, text, size);
    freeReplyObject(reply);
}

static double server_info_number(struct server *server, const char *section, const char *field)
{
    char text[64];

    server_info(server, section, field, text, sizeof(text));
    return strtod(text, NULL);
}

void server_open(struct server *server, int port)
{
    *server = (struct server){.port = port};
    server->link = server_connect(server);
    snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%d", port);
    server->pid = (pid_t)server_info_number(server, "server", "process_id:");
    server_info(server, "server", "redis_version:", server->version, sizeof(server->version));
}

void server_close(struct server *server)
{
    redisFree(server->link);
}

static double server_command_stat(struct server *server, const char *command, const char *stat)
{
    char field[64], line[256];

    snprintf(field, sizeof(field), "cmdstat_%s:", command);
    server_info(server, "commandstats", field, line, sizeof(line));
    const char *found = strstr(line, stat);
    return found ? strtod(found + strlen(stat), NULL) : 0;
}

int64_t server_calls(struct server *server, const char *command)
{
    return (int64_t)server_command_stat(server, command, "calls=");
}

double server_command_us(struct server *server, const char *command)
{
    return server_command_stat(server, command, "usec=");
}

double server_cpu_us(struct server *server)
{
    return 1e6 * (server_info_number(server, "cpu", "used_cpu_sys:") +
                  server_info_number(server, "cpu", "used_cpu_user:"));
}

double server_bytes(struct server *server)
{
    return server_info_number(server, "memory", "used_memory:");
}

double server_clients(struct server *server)
{
    return server_info_number(server, "clients", "connected_clients:");
}

/* CLUSTER INFO tells of the kinds of messages that were sent once at least. */
double server_bus_messages(struct server *server)
{
    static const char *const kinds[] = {"messages_publish_sent:", "messages_publishshard_sent:"};
    redisReply *reply = server_reply(server, "CLUSTER INFO");
    double sum = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char text[64];
        server_read(reply, kinds[i], text, sizeof(text));
        sum += strtod(text, NULL);
    }
    freeReplyObject(reply);
    return sum;
}

/* Commands that no script of ours calls. */
static bool server_is_sent_by_clients(const char *command)
{
    static const char *const known[] = {"evalsha", "eval", "script", "subscribe", "unsubscribe",
                                        "ping",    "auth", "client", "hello",     "select"};
    size_t length = strcspn(command, "|:");

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i]) == length && strncmp(command, known[i], length) == 0)
            return true;
    return false;
}

struct server_load server_load(struct server *server)
{
    static const char line[] = "cmdstat_", calls[] = "calls=";
    struct server_load load = {.cpu_us = server_cpu_us(server)};
    redisReply *reply = server_reply(server, "INFO commandstats");

    for (const char *at = reply->str; (at = strstr(at, line));) {
        at += strlen(line);
        const char *number = strstr(at, calls);
        if (!number || strncmp(at, "info:", 5) == 0)
            continue;
        double count = strtod(number + strlen(calls), NULL);
        load.commands += count;
        load.client_commands += server_is_sent_by_clients(at) ? count : 0;
    }
    freeReplyObject(reply);
    return load;
}

void server_load_add(struct server_load *sum, const struct server_load *before,
                     const struct server_load *after)
{
    sum->cpu_us += after->cpu_us - before->cpu_us;
    sum->commands += after->commands - before->commands;
    sum->client_commands += after->client_commands - before->client_commands;
}

int64_t server_subscribers(struct server *server, const char *channel)
{
    redisReply *reply = server_reply(server, "PUBSUB NUMSUB %s", channel);

    must(reply->type == REDIS_REPLY_ARRAY && reply->elements == 2, "PUBSUB NUMSUB: no pair");
    int64_t count = reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

int64_t server_channels(struct server *server, const char *prefix)
{
    redisReply *reply = server_reply(server, "PUBSUB CHANNELS %s*", prefix);
    int64_t count = (int64_t)reply->elements;

    freeReplyObject(reply);
    return count;
}

double server_all_channels(struct server *server)
{
    return server_info_number(server, "stats", "pubsub_channels:") +
           server_info_number(server, "stats", "pubsubshard_channels:");
}

void server_flush(struct server *server)
{
    freeReplyObject(server_reply(server, "FLUSHALL"));
}
