/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The raw side of a Redlock: append, write, poll, read. */
#include "raw_quorum.h"

#include "must.h"
#include "redis/script.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define RAW_LEASE_MS "30000"

static void raw_load(redisContext *link, hli_script_id id)
{
    const struct hli_script *script = hli_script_get(id);
    redisReply *reply = redisCommand(link, "SCRIPT LOAD %b", script->text, script->length);

    must(reply && reply->type == REDIS_REPLY_STRING && strcmp(reply->str, script->sha1) == 0,
         "SCRIPT LOAD %s failed", script->name);
    freeReplyObject(reply);
}

void raw_quorum_open(struct raw_quorum *raw, const struct nodes *nodes, int count, const char *name)
{
    *raw = (struct raw_quorum){
        .count = count,
        .acquire_sha = hli_script_get(HLI_SCRIPT_REDLOCK_ACQUIRE)->sha1,
        .release_sha = hli_script_get(HLI_SCRIPT_REDLOCK_RELEASE)->sha1,
    };
    snprintf(raw->name, sizeof(raw->name), "%s", name);
    snprintf(raw->channel, sizeof(raw->channel), "hirelock_redlock:{%s}", name);
    for (int i = 0; i < count; i++) {
        raw->link[i] = server_connect(&nodes->node[i]);
        raw_load(raw->link[i], HLI_SCRIPT_REDLOCK_ACQUIRE);
        raw_load(raw->link[i], HLI_SCRIPT_REDLOCK_RELEASE);
    }
}

static void raw_send(struct raw_quorum *raw, int argc, const char **argv)
{
    for (int i = 0; i < raw->count; i++) {
        int is_written = 0;
        must(redisAppendCommandArgv(raw->link[i], argc, argv, NULL) == REDIS_OK, "out of memory");
        while (!is_written)
            must(redisBufferWrite(raw->link[i], &is_written) == REDIS_OK, "raw side: %s",
                 raw->link[i]->errstr);
        raw->behind[i]++;
    }
}

/* Returns how many masters have answered all that was sent. */
static int raw_read(struct raw_quorum *raw, int i)
{
    void *reply = NULL;

    must(redisBufferRead(raw->link[i]) == REDIS_OK, "raw side: %s", raw->link[i]->errstr);
    while (redisGetReplyFromReader(raw->link[i], &reply) == REDIS_OK && reply) {
        const redisReply *read = reply;
        must(read->type == REDIS_REPLY_ARRAY && read->element[0]->integer == 1,
             "the raw side met a strange lock");
        freeReplyObject(reply);
        raw->behind[i]--;
        reply = NULL;
    }
    return raw->behind[i] == 0;
}

static void raw_wait(struct raw_quorum *raw, int wanted)
{
    struct pollfd polled[NODES_MOST];

    for (int i = 0; i < raw->count; i++)
        polled[i] = (struct pollfd){.fd = raw->link[i]->fd, .events = POLLIN};
    for (int answered = 0; answered < wanted;) {
        must(poll(polled, (nfds_t)raw->count, -1) > 0, "poll failed");
        for (int i = 0; i < raw->count; i++) {
            if (!polled[i].revents || !raw_read(raw, i))
                continue;
            polled[i].fd = -1; /* nothing more is to come */
            answered++;
        }
    }
}

void raw_quorum_acquire(struct raw_quorum *raw)
{
    const char *argv[] = {"EVALSHA", raw->acquire_sha, "1", raw->name, raw->value, RAW_LEASE_MS};

    snprintf(raw->value, sizeof(raw->value), "00000000-0000-4000-8000-000000000000:%" PRIu64,
             ++raw->number);
    raw_send(raw, sizeof(argv) / sizeof(argv[0]), argv);
    raw_wait(raw, raw->count / 2 + 1);
}

void raw_quorum_release(struct raw_quorum *raw)
{
    const char *argv[] = {"EVALSHA", raw->release_sha, "1",      raw->name, raw->value,
                          "0",       raw->channel,     "PUBLISH"};

    raw_send(raw, sizeof(argv) / sizeof(argv[0]), argv);
    raw_wait(raw, raw->count / 2 + 1);
}

void raw_quorum_close(struct raw_quorum *raw)
{
    for (int i = 0; i < raw->count; i++)
        redisFree(raw->link[i]);
}
