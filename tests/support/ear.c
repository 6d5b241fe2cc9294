/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each answer and message is read in its turn; redis_link gives the time that a read may take. */
#include "ear.h"

#include "fatal.h"
#include "kit.h"

static redisContext *ear_subscribe(const char *verb, const char *channels)
{
    redisContext *ear = redis_link_connect(redis_server_socket(server));
    char command[256];
    int count = 1;
    must(ear);
    for (const char *at = channels; (at = strchr(at, ' ')); at++)
        count++;
    snprintf(command, sizeof command, "%s %s", verb, channels);
    must(redisAppendCommand(ear, command) == REDIS_OK);
    for (; count > 0; count--) {
        redisReply *reply = NULL;
        must(redisGetReply(ear, (void **)&reply) == REDIS_OK && reply->type == REDIS_REPLY_ARRAY);
        freeReplyObject(reply);
    }
    return ear;
}

redisContext *ear_open(const char *channels)
{
    return ear_subscribe("SUBSCRIBE", channels);
}

redisContext *ear_open_unseen(const char *pattern)
{
    return ear_subscribe("PSUBSCRIBE", pattern);
}

/* A message is {"message", channel, text}, or {"pmessage", pattern, channel, text}. */
const char *ear_next(redisContext *ear)
{
    static char heard[1024];
    redisReply *reply = NULL;
    check_msg(redisGetReply(ear, (void **)&reply) == REDIS_OK, "no message: %s", ear->errstr);
    check(reply->type == REDIS_REPLY_ARRAY && reply->elements >= 3);
    snprintf(heard, sizeof heard, "%s %s", reply->element[reply->elements - 2]->str,
             reply->element[reply->elements - 1]->str);
    freeReplyObject(reply);
    return heard;
}

void ear_check(redisContext *ear, const char *channel, const char *text)
{
    char expected[1024];
    snprintf(expected, sizeof expected, "%s %s", channel, text);
    check_str(ear_next(ear), expected);
}

void ear_check_end(redisContext *ear, const char *channel)
{
    redis_do(server, "PUBLISH %s end", channel);
    ear_check(ear, channel, "end");
}
