/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each answer and message is read in its turn; redis_link gives the time that a read may take. */
#include "ear.h"

#include "fatal.h"
#include "kit.h"
#include "redis_shards.h"

static redisContext *ear_subscribe(struct redis_server *at_server, const char *verb,
                                   const char *channels)
{
    redisContext *ear = redis_link_connect(redis_server_socket(at_server));
    char command[768];
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
    const struct redis_shards *shards = redis_server_shards(server);
    if (!shards || !shards->has_sharded_messages)
        return ear_subscribe(server, "SUBSCRIBE", channels);
    return ear_subscribe(redis_shards_of(shards, channels), "SSUBSCRIBE", channels);
}

redisContext *ear_open_unseen(const char *pattern)
{
    return ear_subscribe(server, "PSUBSCRIBE", pattern);
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
