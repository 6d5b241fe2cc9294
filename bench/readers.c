/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The server's cost of a reader's release of a read-write lock: beside one other reader, beside so
 * many that the release does not look at them any more, and beside a thousand. Readers acquire by
 * EVAL and release by EVALSHA, so that the server's statistics tell the two apart.
 */
#include "must.h"
#include "redis/script.h"
#include "samples.h"
#include "scenario.h"

#include <stdio.h>

enum { READERS_FEW = 9, READERS_MANY = 1000, READERS_PAIRS = 1000, READERS_BATCH = 50 };

#define READERS_LEASE "600000"
#define READERS_UUID "00000000-0000-4000-8000-000000000000:"

struct readers {
    struct bench *bench;
    redisContext *link;
    const struct hli_script *acquire, *release;
};

static void readers_collect(const struct readers *readers, int count)
{
    redisReply *reply = NULL;

    for (int i = 0; i < count; i++) {
        must(redisGetReply(readers->link, (void **)&reply) == REDIS_OK &&
                 reply->type == REDIS_REPLY_ARRAY && reply->element[0]->integer == 1,
             "a read lock was not taken or released: %s", reply && reply->str ? reply->str : "");
        freeReplyObject(reply);
    }
}

static void readers_acquire(const struct readers *readers, const char *name, int number)
{
    redisAppendCommand(readers->link,
                       "EVAL %b 1 %s " READERS_UUID "%d " READERS_LEASE
                       " 1 hirelock_rw_writer:{%s} none",
                       readers->acquire->text, readers->acquire->length, name, number, name);
}

static void readers_release(const struct readers *readers, const char *name, int number)
{
    redisAppendCommand(readers->link,
                       "EVALSHA %s 1 %s " READERS_UUID "%d 0 0 0 redisson_rwlock:{%s} PUBLISH",
                       readers->release->sha1, name, number, name);
}

static void readers_begin(const struct readers *readers, const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        readers_acquire(readers, name, i);
        readers_collect(readers, 1);
    }
}

/* Microseconds of the server's for each release of one more reader. */
static double readers_measure(const struct readers *readers, const char *name)
{
    struct server *server = &readers->bench->server;
    double before = server_command_us(server, "evalsha");

    for (int done = 0; done < READERS_PAIRS; done += READERS_BATCH) {
        for (int i = 0; i < READERS_BATCH; i++) {
            readers_acquire(readers, name, READERS_MANY);
            readers_release(readers, name, READERS_MANY);
        }
        readers_collect(readers, 2 * READERS_BATCH);
    }
    return (server_command_us(server, "evalsha") - before) / READERS_PAIRS;
}

void scenario_readers(struct bench *bench)
{
    struct readers readers = {
        .bench = bench,
        .link = server_connect(&bench->server),
        .acquire = hli_script_get(HLI_SCRIPT_RW_READ_ACQUIRE),
        .release = hli_script_get(HLI_SCRIPT_RW_READ_RELEASE),
    };
    struct samples one = {0}, few = {0}, many = {0};

    report_heading("a reader leaves a read-write lock");
    freeReplyObject(redisCommand(readers.link, "SCRIPT LOAD %b", readers.release->text,
                                 readers.release->length));
    readers_begin(&readers, "bench:one", 1);
    readers_begin(&readers, "bench:few", READERS_FEW);
    readers_begin(&readers, "bench:many", READERS_MANY);
    for (int round = 0; round < (bench->is_quick ? 11 : 51); round++) {
        samples_add(&one, readers_measure(&readers, "bench:one"));
        samples_add(&few, readers_measure(&readers, "bench:few"));
        samples_add(&many, readers_measure(&readers, "bench:many"));
    }
    double with_one = samples_quantile(&one, 0.5), with_many = samples_quantile(&many, 0.5);
    report_figure(&bench->report, "rw_read_release_us_1_reader", with_one, "us");
    report_figure(&bench->report, "rw_read_release_us_9_readers", samples_quantile(&few, 0.5),
                  "us");
    report_at_most(&bench->report, "rw_read_release_us_1000_readers", with_many, "us",
                   1.5 * with_one);
    report_at_most(&bench->report, "read release beside 1,000 readers over beside 1",
                   with_many / with_one, "x", 1.5);
    samples_free(&one);
    samples_free(&few);
    samples_free(&many);
    redisFree(readers.link);
}
