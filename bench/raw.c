/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The raw side: redisCommandArgv, twice for each pair. */
#include "raw.h"

#include "instant.h"
#include "must.h"
#include "redis/script.h"
#include "tls.h"

#include <stdio.h>
#include <string.h>

enum { RAW_LEASE_MS = 30000 };

#define RAW_MAILBOX "hirelock:"
#define RAW_QUEUE_MS "10000"
#define RAW_CLAIM "4000"

static void raw_load(struct raw *raw, hli_script_id id)
{
    const struct hli_script *script = hli_script_get(id);
    redisReply *reply = redisCommand(raw->link, "SCRIPT LOAD %b", script->text, script->length);

    must(reply && reply->type == REDIS_REPLY_STRING && strcmp(reply->str, script->sha1) == 0,
         "SCRIPT LOAD %s failed", script->name);
    freeReplyObject(reply);
}

void raw_open(struct raw *raw, const struct server *server, const char *name, unsigned number)
{
    *raw = (struct raw){
        .link = server_connect(server),
        .acquire_sha = hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE)->sha1,
        .release_sha = hli_script_get(HLI_SCRIPT_LOCK_RELEASE)->sha1,
    };
    raw_name(raw, name);
    snprintf(raw->lease, sizeof(raw->lease), "%d", RAW_LEASE_MS);
    snprintf(raw->field, sizeof(raw->field), "00000000-0000-4000-8000-000000000000:%u",
             1000000000u + number);
    raw_load(raw, HLI_SCRIPT_LOCK_ACQUIRE);
    raw_load(raw, HLI_SCRIPT_LOCK_RELEASE);
}

void raw_close(struct raw *raw)
{
    redisFree(raw->link);
}

void raw_name(struct raw *raw, const char *name)
{
    snprintf(raw->name, sizeof(raw->name), "%s", name);
    snprintf(raw->channel, sizeof(raw->channel), "redisson_lock__channel:{%s}", name);
    snprintf(raw->queue, sizeof(raw->queue), "hirelock_queue:{%s}", name);
    snprintf(raw->others, sizeof(raw->others), "hirelock:{%s}", name);
}

static int64_t raw_call(struct raw *raw, int argc, const char **argv)
{
    redisReply *reply = raw->tls ? tls_command(raw->tls, argc, argv)
                                 : redisCommandArgv(raw->link, argc, argv, NULL);

    must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= 1, "raw EVALSHA: %s",
         reply ? reply->str : raw->link->errstr);
    int64_t status = reply->element[0]->integer;
    freeReplyObject(reply);
    return status;
}

bool raw_acquire(struct raw *raw)
{
    const char *argv[] = {"EVALSHA",    raw->acquire_sha, "1", raw->name,
                          raw->field,   raw->lease,       "1", raw->queue,
                          RAW_QUEUE_MS, RAW_MAILBOX};

    return raw_call(raw, 10, argv) == 1;
}

static void raw_release_to(struct raw *raw, const char *channel, const char *queue)
{
    const char *argv[] = {
        "EVALSHA", raw->release_sha, "1",   raw->name,   raw->field, "0",         "0", "0",
        channel,   "PUBLISH",        queue, RAW_MAILBOX, RAW_CLAIM,  raw->others, "1", "NUMSUB"};

    must(raw_call(raw, 16, argv) == 1, "the raw side lost its lock");
}

void raw_release(struct raw *raw)
{
    raw_release_to(raw, raw->channel, raw->queue);
}

void raw_release_unheard(struct raw *raw)
{
    raw_release_to(raw, "bench:nobody-listens", "");
}

uint64_t raw_pairs(void *arg, int64_t until)
{
    struct raw *raw = arg;
    uint64_t done = 0;

    do {
        must(raw_acquire(raw), "the raw side met a strange lock");
        raw_release(raw);
        done++;
    } while (instant_now() < until);
    return done;
}
