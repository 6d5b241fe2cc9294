/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The floor: a lock without a library, SET NX PX and a compare-and-delete script on a
 * blocking hiredis connection. It renews nothing and cannot wait, so it is measured alone only.
 */
#include "worker.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char raw_unlock[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                 "return redis.call('del', KEYS[1]) else return 0 end";

struct raw {
    redisContext *link;
    char sha[41], name[256], value[32];
};

static int raw_port;

static void *raw_open(int port)
{
    raw_port = port;
    return NULL;
}

static void *raw_join(void *client, const char *name)
{
    struct raw *raw = calloc(1, sizeof(*raw));

    (void)client;
    worker_must(raw != NULL, "out of memory");
    raw->link = redisConnect("127.0.0.1", raw_port);
    worker_must(raw->link && raw->link->err == 0, "no connection");
    snprintf(raw->name, sizeof(raw->name), "%s", name);
    snprintf(raw->value, sizeof(raw->value), "%d", (int)getpid());
    redisReply *reply = redisCommand(raw->link, "SCRIPT LOAD %s", raw_unlock);
    worker_must(reply && reply->type == REDIS_REPLY_STRING, "SCRIPT LOAD failed");
    snprintf(raw->sha, sizeof(raw->sha), "%s", reply->str);
    freeReplyObject(reply);
    return raw;
}

static void raw_acquire(void *lock)
{
    struct raw *raw = lock;
    redisReply *reply = redisCommand(raw->link, "SET %s %s NX PX 30000", raw->name, raw->value);

    worker_must(reply && reply->type == REDIS_REPLY_STATUS, "it is held by another");
    freeReplyObject(reply);
}

static void raw_release(void *lock)
{
    struct raw *raw = lock;
    redisReply *reply =
        redisCommand(raw->link, "EVALSHA %s 1 %s %s", raw->sha, raw->name, raw->value);

    worker_must(reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1, "it is lost");
    freeReplyObject(reply);
}

int main(int argc, char **argv)
{
    static const struct peer peer = {raw_open, raw_join, raw_acquire, raw_release};

    (void)argc;
    return worker_main(argv, &peer);
}
