/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The one-trip limit. */
#include "trip.h"

#include "must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char trip_script[] = "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then\n"
                                  "  return 0\n"
                                  "end\n"
                                  "redis.call('DEL', KEYS[1])\n"
                                  "redis.call('HSET', KEYS[1], ARGV[2], 1)\n"
                                  "redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
                                  "redis.call('PUBLISH', ARGV[4], ARGV[5])\n"
                                  "return 1\n";

#define TRIP_NAME "bench:trip"

/* The text of a message: the lock is yours; or the same, and the round is over. */
enum { TRIP_GO = 'g', TRIP_END = 'e' };

struct traveller {
    const struct trip *trip;
    struct hold hold;
    int process;
    redisContext *link, *heard;
    size_t length; /* of a message, all of which are alike */
    char sha[41], field[48], other_field[48], other_channel[48];
};

static void *traveller_begin(void *arg, int process)
{
    struct traveller *self = must_alloc(1, sizeof(*self));
    char channel[48], message[128];
    static const char field[] = "00000000-0000-4000-8000-000000000000:%d";

    self->trip = arg;
    self->process = process;
    self->hold = hold_of(&self->trip->hold, process);
    self->link = server_connect(self->trip->server);
    self->heard = server_connect(self->trip->server);
    snprintf(self->field, sizeof(self->field), field, process);
    snprintf(self->other_field, sizeof(self->other_field), field, 1 - process);
    snprintf(channel, sizeof(channel), TRIP_NAME ":%d", process);
    snprintf(self->other_channel, sizeof(self->other_channel), TRIP_NAME ":%d", 1 - process);
    self->length = (size_t)snprintf(message, sizeof(message),
                                    "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$1\r\ng\r\n",
                                    strlen(channel), channel);

    redisReply *reply = redisCommand(self->heard, "SUBSCRIBE %s", channel);
    must(reply && reply->type == REDIS_REPLY_ARRAY, "SUBSCRIBE failed");
    freeReplyObject(reply);
    reply = redisCommand(self->link, "SCRIPT LOAD %s", trip_script);
    must(reply && reply->type == REDIS_REPLY_STRING, "SCRIPT LOAD failed");
    snprintf(self->sha, sizeof(self->sha), "%s", reply->str);
    freeReplyObject(reply);
    return self;
}

static void traveller_end(void *state)
{
    struct traveller *self = state;

    redisFree(self->link);
    redisFree(self->heard);
    free(self);
}

/* Blocks until the other has written our field. */
static int traveller_listen(const struct traveller *self)
{
    char message[128] = "";
    size_t used = 0;

    while (used < self->length) {
        ssize_t got = read(self->heard->fd, message + used, self->length - used);
        must(got > 0, "the subscription ended");
        used += (size_t)got;
    }
    return message[self->length - 3];
}

static void traveller_release(struct traveller *self, struct turn *turn, int word)
{
    char text[2] = {(char)word, '\0'};
    const char *argv[] = {"EVALSHA", self->sha,           "1",
                          TRIP_NAME, self->field,         self->other_field,
                          "30000",   self->other_channel, text};
    redisReply *reply = NULL;

    redisAppendCommandArgv(self->link, sizeof(argv) / sizeof(argv[0]), argv, NULL);
    if (turn)
        turn->gave_at = instant_now();
    must(redisGetReply(self->link, (void **)&reply) == REDIS_OK && reply->integer == 1,
         "the one-trip release failed");
    freeReplyObject(reply);
}

/* The round begins with the lock in the first one's hands. */
static void traveller_take(struct traveller *self)
{
    redisReply *reply = NULL;

    redisAppendCommand(self->link, "DEL " TRIP_NAME);
    redisAppendCommand(self->link, "HSET " TRIP_NAME " %s 1", self->field);
    for (int i = 0; i < 2; i++) {
        must(redisGetReply(self->link, (void **)&reply) == REDIS_OK, "%s", self->link->errstr);
        freeReplyObject(reply);
    }
}

static void traveller_round(void *state, const atomic_bool *is_over, struct feats *feats)
{
    struct traveller *self = state;
    bool has_it = self->process == 0;

    if (has_it)
        traveller_take(self);
    for (;;) {
        if (!has_it && traveller_listen(self) == TRIP_END)
            return;
        has_it = false;
        struct turn *turn = diary_begin_turn(self->trip->diary, self->process);
        feats->holds++;
        bool is_last = atomic_load(is_over);
        if (!is_last)
            hold_on(&self->hold);
        traveller_release(self, turn, is_last ? TRIP_END : TRIP_GO);
        if (is_last)
            return;
    }
}

const struct crowd_job trip_job = {traveller_begin, traveller_round, traveller_end};
