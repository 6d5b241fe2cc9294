/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The server's cost of a turn of the fair lock, beside a hundred waiters and beside ten thousand:
 * the acquire of the head, and the first poll of the next one. What is measured goes by EVALSHA,
 * and all else by EVAL, so that the server's statistics tell the two apart.
 */
#include "must.h"
#include "redis/script.h"
#include "samples.h"
#include "scenario.h"

#include <stdio.h>

enum { FAIR_FEW = 100, FAIR_MANY = 10000, FAIR_TURNS = 20, FAIR_BATCH = 100 };

#define FAIR_TIMES "PUBLISH NUMSUB 5000 1000"
#define FAIR_UUID "00000000-0000-4000-8000-000000000000:"

struct fair {
    struct bench *bench;
    redisContext *link, *ears; /* all waiters listen, as they do in life */
    const struct hli_script *acquire, *release;
};

/* A queue: the holder's number, and how many wait behind it. */
struct fair_line {
    const char *name;
    int first, waiters;
    struct samples takes, polls;
};

static void fair_collect(redisContext *link, int count)
{
    redisReply *reply = NULL;

    for (int i = 0; i < count; i++) {
        must(redisGetReply(link, (void **)&reply) == REDIS_OK && reply->type == REDIS_REPLY_ARRAY,
             "a request of the fair lock failed: %s", reply && reply->str ? reply->str : "");
        freeReplyObject(reply);
    }
}

static void fair_ask(const struct fair *fair, const char *name, int number, bool is_measured)
{
    if (is_measured)
        redisAppendCommand(fair->link, "EVALSHA %s 1 %s " FAIR_TIMES " " FAIR_UUID "%d 30000 1 1",
                           fair->acquire->sha1, name, number);
    else
        redisAppendCommand(fair->link, "EVAL %b 1 %s " FAIR_TIMES " " FAIR_UUID "%d 30000 1 1",
                           fair->acquire->text, fair->acquire->length, name, number);
}

static void fair_begin(const struct fair *fair, const struct fair_line *line)
{
    for (int done = 0; done <= line->waiters; done += FAIR_BATCH) {
        for (int i = done; i < done + FAIR_BATCH; i++) {
            redisAppendCommand(fair->ears, "SUBSCRIBE redisson_lock__channel:{%s}:" FAIR_UUID "%d",
                               line->name, i);
            fair_ask(fair, line->name, i, true);
        }
        fair_collect(fair->ears, FAIR_BATCH);
        fair_collect(fair->link, FAIR_BATCH);
    }
}

/* The holder releases, the head acquires, the next one polls; who released goes to the end. */
static void fair_turn(const struct fair *fair, struct fair_line *line, bool measures_take)
{
    int count = line->waiters + 1, first = line->first;

    redisAppendCommand(fair->link, "EVAL %b 1 %s " FAIR_TIMES " " FAIR_UUID "%d 0 0 0",
                       fair->release->text, fair->release->length, line->name, first);
    fair_ask(fair, line->name, (first + 1) % count, measures_take);
    fair_ask(fair, line->name, (first + 2) % count, !measures_take);
    fair_ask(fair, line->name, first, false);
    fair_collect(fair->link, 4);
    line->first = (first + 1) % count;
}

static void fair_measure(const struct fair *fair, struct fair_line *line, bool measures_take)
{
    struct server *server = &fair->bench->server;
    double before = server_command_us(server, "evalsha");

    for (int i = 0; i < FAIR_TURNS; i++)
        fair_turn(fair, line, measures_take);
    samples_add(measures_take ? &line->takes : &line->polls,
                (server_command_us(server, "evalsha") - before) / FAIR_TURNS);
}

/* `figure` is judged. */
static void fair_tell(struct bench *bench, const char *what, const char *figure, double few,
                      double many)
{
    char name[96];

    snprintf(name, sizeof(name), "fair lock: %s, %d waiters", what, FAIR_FEW);
    report_figure(&bench->report, name, few, "us");
    snprintf(name, sizeof(name), "fair lock: %s, %d waiters", what, FAIR_MANY);
    report_figure(&bench->report, name, many, "us");
    report_at_most(&bench->report, figure, many / few, "x", 2);
}

void scenario_fair(struct bench *bench)
{
    struct fair fair = {
        .bench = bench,
        .link = server_connect(&bench->server),
        .ears = server_connect(&bench->server),
        .acquire = hli_script_get(HLI_SCRIPT_FAIR_LOCK_ACQUIRE),
        .release = hli_script_get(HLI_SCRIPT_FAIR_LOCK_RELEASE),
    };
    struct fair_line few = {.name = "bench:few", .waiters = FAIR_FEW - 1},
                     many = {.name = "bench:many", .waiters = FAIR_MANY - 1};

    report_heading("a turn of the fair lock, the server's time");
    freeReplyObject(
        redisCommand(fair.link, "SCRIPT LOAD %b", fair.acquire->text, fair.acquire->length));
    fair_begin(&fair, &few);
    fair_begin(&fair, &many);
    for (int round = 0; round < (bench->is_quick ? 22 : 100); round++) {
        fair_measure(&fair, &few, round % 2 == 0);
        fair_measure(&fair, &many, round % 2 == 0);
    }
    fair_tell(bench, "acquire of the head", "fair_acquire_10000_waiters_over_100",
              samples_quantile(&few.takes, 0.5), samples_quantile(&many.takes, 0.5));
    fair_tell(bench, "first poll of the next", "fair_first_poll_10000_waiters_over_100",
              samples_quantile(&few.polls, 0.5), samples_quantile(&many.polls, 0.5));
    samples_free(&few.takes);
    samples_free(&few.polls);
    samples_free(&many.takes);
    samples_free(&many.polls);
    redisFree(fair.link);
    redisFree(fair.ears);
}
