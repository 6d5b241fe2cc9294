/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* It logs in as a user of its own, so whatever a test does to passwords does not shut it out. */
#include "redis_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "deadline.h"
#include "fatal.h"

void redis_link_init(struct redis_link *link, const char *socket_path)
{
    pthread_mutex_init(&link->mutex, NULL);
    snprintf(link->path, sizeof link->path, "%s", socket_path);
    link->context = NULL;
}

void redis_link_deinit(struct redis_link *link)
{
    redis_link_drop(link);
    pthread_mutex_destroy(&link->mutex);
}

static bool redis_link_log_in(redisContext *context)
{
    redisReply *reply = redisCommand(context, "AUTH hltest any");
    bool known = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    /* LOADING and BUSY refuse these two; then the link goes by no name. */
    freeReplyObject(redisCommand(context, "CLIENT SETNAME hltest"));
    return known || !context->err;
}

redisContext *redis_link_connect(const char *socket_path)
{
    int64_t ms = deadline_left_ms(deadline_in(10000));
    struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    redisContext *context = redisConnectUnixWithTimeout(socket_path, limit);
    if (!context || context->err || redisSetTimeout(context, limit) != REDIS_OK ||
        !redis_link_log_in(context)) {
        if (context)
            redisFree(context);
        return NULL;
    }
    return context;
}

static bool redis_link_is_stale(const redisContext *context)
{
    char byte;
    return context->err || recv(context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void redis_link_close(struct redis_link *link)
{
    if (link->context)
        redisFree(link->context);
    link->context = NULL;
}

redisReply *redis_link_command(struct redis_link *link, const char *format, va_list args)
{
    char *bytes = NULL;
    int length = redisvFormatCommand(&bytes, format, args);
    must(length > 0);
    redisReply *reply = redis_link_send(link, bytes, (size_t)length);
    free(bytes);
    return reply;
}

redisReply *redis_link_send(struct redis_link *link, const char *bytes, size_t length)
{
    void *reply = NULL;
    pthread_mutex_lock(&link->mutex);
    if (link->context && redis_link_is_stale(link->context))
        redis_link_close(link);
    if (!link->context)
        link->context = redis_link_connect(link->path);
    if (link->context && (redisAppendFormattedCommand(link->context, bytes, length) != REDIS_OK ||
                          redisGetReply(link->context, &reply) != REDIS_OK))
        reply = NULL;
    if (!reply)
        redis_link_close(link);
    pthread_mutex_unlock(&link->mutex);
    return reply;
}

void redis_link_drop(struct redis_link *link)
{
    pthread_mutex_lock(&link->mutex);
    redis_link_close(link);
    pthread_mutex_unlock(&link->mutex);
}
