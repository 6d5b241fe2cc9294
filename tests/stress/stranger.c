/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

#include "stranger.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/fatal.h"

static const char stranger_take[] =
    "if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('HINCRBY', KEYS[1], ARGV[2], 1) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return -9 "
    "end return redis.call('PTTL', KEYS[1])";
static const char stranger_leave[] =
    "if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return -1 end "
    "local left = redis.call('HINCRBY', KEYS[1], ARGV[2], -1) "
    "if left > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) return left end "
    "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', KEYS[2], '0') return 0";

enum { STRANGER_HELD = -9, STRANGER_FAILED = -10, STRANGER_MARGIN_MS = STRESS_LEASE_MS / 100 + 2 };

struct stranger {
    const struct stranger_job *job;
    struct ledger_record *record;
    redisContext *commands, *messages;
    char name[8], channel[48], field[64];
    uint64_t number, numbers; /* of this wait's field; the next one */
    uint64_t dice;
    int64_t sent_ns; /* of the last request that took the lock, or made its lease longer */
    pthread_t thread;
};

static uint64_t stranger_roll(struct stranger *stranger, uint64_t sides)
{
    stranger->dice = stranger->dice * 6364136223846793005u + 1442695040888963407u;
    return (stranger->dice >> 33) % sides;
}

static void stranger_nap(int64_t us)
{
    struct timespec nap = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&nap, NULL);
}

static void stranger_hang_up(redisContext **link)
{
    if (*link)
        redisFree(*link);
    *link = NULL;
}

static redisContext *stranger_connect(const struct stranger *stranger)
{
    const struct timeval patience = {.tv_sec = 2};
    redisContext *link = redisConnectWithTimeout("127.0.0.1", stranger->job->port, patience);
    if (link && (link->err || redisSetTimeout(link, patience) != REDIS_OK))
        stranger_hang_up(&link);
    return link;
}

static int64_t stranger_run_script(struct stranger *stranger, const char *script)
{
    int64_t answer = STRANGER_FAILED, sent_ns = ledger_now_ns();
    if (!stranger->commands)
        stranger->commands = stranger_connect(stranger);
    if (!stranger->commands)
        return STRANGER_FAILED;
    redisReply *reply =
        redisCommand(stranger->commands, "EVAL %s 2 %s %s %d %s", script, stranger->name,
                     stranger->channel, STRESS_LEASE_MS, stranger->field);
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        answer = reply->integer;
    if (answer == STRANGER_HELD)
        stranger->sent_ns = sent_ns;
    freeReplyObject(reply);
    if (answer == STRANGER_FAILED)
        stranger_hang_up(&stranger->commands);
    return answer;
}

/* A request without an answer may have run: the wait goes on under another field. */
static void stranger_take_number(struct stranger *stranger)
{
    stranger->number = ++stranger->numbers;
    snprintf(stranger->field, sizeof stranger->field, "%s:%llu", stranger->job->book->uuid,
             (unsigned long long)stranger->number);
}

static int64_t stranger_try(struct stranger *stranger)
{
    int64_t answer = stranger_run_script(stranger, stranger_take);
    if (answer == STRANGER_FAILED)
        stranger_take_number(stranger);
    return answer;
}

static bool stranger_listen(struct stranger *stranger)
{
    if (stranger->messages)
        return true;
    stranger->messages = stranger_connect(stranger);
    if (!stranger->messages)
        return false;
    redisReply *reply = redisCommand(stranger->messages, "SUBSCRIBE %s", stranger->channel);
    bool is_there = reply && reply->type == REDIS_REPLY_ARRAY;
    freeReplyObject(reply);
    if (!is_there)
        stranger_hang_up(&stranger->messages);
    return is_there;
}

/* Until a message comes, or that time is over. */
static void stranger_sleep(struct stranger *stranger, int64_t ms)
{
    struct pollfd wait = {.fd = stranger->messages->fd, .events = POLLIN};
    redisReply *reply = NULL;
    if (poll(&wait, 1, (int)ms) <= 0)
        return;
    if (redisGetReply(stranger->messages, (void **)&reply) != REDIS_OK)
        stranger_hang_up(&stranger->messages);
    freeReplyObject(reply);
}

/* Try, subscribe, try again, and then after each message and each expiry. */
static bool stranger_acquire(struct stranger *stranger)
{
    int64_t until_ns = ledger_now_ns() + STRANGER_WAIT_MS * INT64_C(1000000);
    stranger_take_number(stranger);
    while (stranger_try(stranger) != STRANGER_HELD) {
        bool was_listening = stranger->messages != NULL;
        int64_t left_ms = (until_ns - ledger_now_ns()) / 1000000, ttl_ms;
        if (left_ms <= 0 || atomic_load(&stranger->job->ledger->stops))
            return false;
        if (!stranger_listen(stranger)) {
            stranger_nap(10000);
            continue;
        }
        if (!was_listening)
            continue;
        ttl_ms = stranger_try(stranger);
        if (ttl_ms == STRANGER_HELD)
            return true;
        stranger_sleep(stranger, ttl_ms >= 0 && ttl_ms < left_ms ? ttl_ms : left_ms);
    }
    return true;
}

static bool stranger_believes(struct stranger *stranger)
{
    int64_t now_ns = ledger_now_ns();
    if (now_ns >= stranger->sent_ns + (STRESS_LEASE_MS - STRANGER_MARGIN_MS) * INT64_C(1000000))
        return false;
    if (atomic_load(&stranger->record->first_ns) == 0)
        atomic_store(&stranger->record->first_ns, now_ns);
    atomic_store(&stranger->record->seen_ns, now_ns);
    return true;
}

static void stranger_be_inside(struct stranger *stranger)
{
    struct ledger_record *record = stranger->record;
    int64_t until_ns = ledger_now_ns() + (int64_t)stranger_roll(stranger, 2000000);
    int levels = 1;
    record->number = stranger->number;
    atomic_fetch_add(&stranger->job->book->held, 1);
    if (stranger_believes(stranger) && stranger_roll(stranger, 5) == 0) {
        atomic_store(&record->deepest, 2);
        levels += stranger_run_script(stranger, stranger_take) == STRANGER_HELD;
    }
    while (stranger_believes(stranger) && ledger_now_ns() < until_ns)
        stranger_nap(200);
    atomic_store(&record->leave_ns, ledger_now_ns());
    while (levels-- > 0)
        stranger_run_script(stranger, stranger_leave);
}

static void stranger_round(struct stranger *stranger, struct ledger_record *record)
{
    record->name = (uint32_t)stranger_roll(stranger, STRESS_NAMES);
    record->is_watched = false;
    atomic_store(&record->deepest, 1);
    stranger->record = record;
    snprintf(stranger->name, sizeof stranger->name, "s%u", record->name);
    snprintf(stranger->channel, sizeof stranger->channel, "redisson_lock__channel:{%s}",
             stranger->name);
    record->invoke_ns = ledger_now_ns();
    record->code = stranger_acquire(stranger) ? 0 : -1;
    record->return_ns = ledger_now_ns();
    stranger_hang_up(&stranger->messages);
    if (record->code == 0)
        stranger_be_inside(stranger);
}

static void *stranger_thread_run(void *arg)
{
    struct stranger *stranger = arg;
    const struct stranger_job *job = stranger->job;
    while (!atomic_load(&job->ledger->stops)) {
        uint32_t index = atomic_fetch_add(&job->book->used, 1);
        if (index >= LEDGER_RECORDS)
            break;
        stranger_round(stranger, &job->book->record[index]);
        stranger_nap((int64_t)stranger_roll(stranger, 30000));
    }
    stranger_hang_up(&stranger->commands);
    return NULL;
}

void stranger_run(const struct stranger_job *job)
{
    struct stranger stranger[STRANGER_THREADS];
    snprintf(job->book->uuid, sizeof job->book->uuid, "%08x-%04x-4000-8000-%012llx",
             (unsigned)getpid(), (unsigned)(ledger_now_ns() & 0xffff),
             (unsigned long long)ledger_now_ns() & 0xffffffffffff);
    for (int i = 0; i < STRANGER_THREADS; i++) {
        stranger[i] = (struct stranger){.job = job,
                                        .numbers = (uint64_t)i << 32,
                                        .dice = (uint64_t)ledger_now_ns() + (uint64_t)i};
        must(pthread_create(&stranger[i].thread, NULL, stranger_thread_run, &stranger[i]) == 0);
    }
    for (int i = 0; i < STRANGER_THREADS; i++)
        pthread_join(stranger[i].thread, NULL);
}
