/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The socket under the context is read directly where bytes matter. */
#include "raw_client.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "deadline.h"
#include "fatal.h"

redisContext *raw_connect(int port)
{
    int64_t ms = deadline_left_ms(deadline_in(5000));
    redisContext *link = redisConnect("127.0.0.1", port);
    struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    must(link && !link->err && redisSetTimeout(link, limit) == REDIS_OK);
    return link;
}

const char *raw_ask(redisContext *link, const char *command)
{
    static _Thread_local char text[256];
    redisReply *reply = redisCommand(link, command);
    snprintf(text, sizeof text, "%s", "(none)");
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        snprintf(text, sizeof text, "%lld", reply->integer);
    else if (reply)
        snprintf(text, sizeof text, "%s", reply->str ? reply->str : "(array)");
    freeReplyObject(reply);
    return text;
}

void raw_send(redisContext *link, const char *command)
{
    int done = 0;
    must(redisAppendCommand(link, command) == REDIS_OK);
    while (!done)
        must(redisBufferWrite(link, &done) == REDIS_OK);
}

bool raw_is_readable(redisContext *link, int64_t ms)
{
    struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    char byte;
    setsockopt(link->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t got = recv(link->fd, &byte, 1, MSG_PEEK);
    return got >= 0 || errno != EAGAIN;
}

int raw_read_to_end(redisContext *link, int *ret_errno)
{
    char bytes[64];
    int total = 0;
    ssize_t got = 0;
    while ((got = recv(link->fd, bytes, sizeof bytes, 0)) > 0)
        total += (int)got;
    *ret_errno = got < 0 ? errno : 0;
    return total;
}
