/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The bare renewal. */
#include "bare.h"

#include "must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BARE_BATCH = 100, BARE_NAME = 64, BARE_FIELD = 80 };

static const char bare_script[] = "local lease = ARGV[1]\n"
                                  "local gone = {}\n"
                                  "for i, name in ipairs(KEYS) do\n"
                                  "  if redis.call('HEXISTS', name, ARGV[i + 1]) == 1 then\n"
                                  "    redis.call('PEXPIRE', name, lease)\n"
                                  "  else\n"
                                  "    gone[#gone + 1] = i\n"
                                  "  end\n"
                                  "end\n"
                                  "return gone\n";

struct bare {
    redisContext *link;
    int count;
    char sha[41], lease[24];
    char (*name)[BARE_NAME];
    char (*field)[BARE_FIELD];
};

static redisReply *bare_reply(struct bare *bare)
{
    redisReply *reply = NULL;

    must(redisGetReply(bare->link, (void **)&reply) == REDIS_OK, "bare: %s", bare->link->errstr);
    must(reply->type != REDIS_REPLY_ERROR, "bare: %s", reply->str);
    return reply;
}

static void bare_learn_fields(struct bare *bare)
{
    for (int i = 0; i < bare->count; i++)
        redisAppendCommand(bare->link, "HKEYS %s", bare->name[i]);
    for (int i = 0; i < bare->count; i++) {
        redisReply *reply = bare_reply(bare);
        must(reply->elements == 1, "%s is not held once", bare->name[i]);
        snprintf(bare->field[i], BARE_FIELD, "%s", reply->element[0]->str);
        freeReplyObject(reply);
    }
}

/* Neighbours in time are not neighbours in number: the holders are many, and take turns. So the
 * order here is 0, stride, 2 * stride, ..., 1, stride + 1, ... */
static void bare_name_all(struct bare *bare, const char *prefix, int stride)
{
    int next = 0;

    for (int first = 0; first < stride; first++)
        for (int i = first; i < bare->count; i += stride)
            snprintf(bare->name[next++], BARE_NAME, "%s%d", prefix, i);
}

struct bare *bare_open(const struct server *server, const char *prefix, int count, int stride,
                       int64_t lease_ms)
{
    struct bare *bare = must_alloc(1, sizeof(*bare));

    bare->link = server_connect(server);
    bare->count = count;
    bare->name = must_alloc((size_t)count, BARE_NAME);
    bare->field = must_alloc((size_t)count, BARE_FIELD);
    snprintf(bare->lease, sizeof(bare->lease), "%lld", (long long)lease_ms);
    bare_name_all(bare, prefix, stride);
    bare_learn_fields(bare);
    redisAppendCommand(bare->link, "SCRIPT LOAD %s", bare_script);
    redisReply *reply = bare_reply(bare);
    snprintf(bare->sha, sizeof(bare->sha), "%s", reply->str);
    freeReplyObject(reply);
    return bare;
}

static void bare_renew_batch(struct bare *bare, int first)
{
    const char *argv[4 + 2 * BARE_BATCH] = {"EVALSHA", bare->sha};
    char keys[16];
    int count = bare->count - first < BARE_BATCH ? bare->count - first : BARE_BATCH;
    int argc = 2;

    snprintf(keys, sizeof(keys), "%d", count);
    argv[argc++] = keys;
    for (int i = first; i < first + count; i++)
        argv[argc++] = bare->name[i];
    argv[argc++] = bare->lease;
    for (int i = first; i < first + count; i++)
        argv[argc++] = bare->field[i];
    redisAppendCommandArgv(bare->link, argc, argv, NULL);
    redisReply *reply = bare_reply(bare);
    must(reply->elements == 0, "bare: a lock was lost");
    freeReplyObject(reply);
}

void bare_renew(struct bare *bare)
{
    for (int first = 0; first < bare->count; first += BARE_BATCH)
        bare_renew_batch(bare, first);
}

void bare_close(struct bare *bare)
{
    redisFree(bare->link);
    free(bare->name);
    free(bare->field);
    free(bare);
}
