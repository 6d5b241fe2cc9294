/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Handles of semaphores and latches, and calls in actors. */

#include "semaphore_support.h"

static void end_semaphore(void *semaphore)
{
    hl_semaphore_free(semaphore);
}

static void end_latch(void *latch)
{
    hl_latch_free(latch);
}

hl_semaphore *new_semaphore(hl_client *client, const char *name)
{
    hl_semaphore *semaphore = NULL;
    expect_ok(hl_semaphore_new(client, name, &semaphore, NULL));
    return free_at_end(semaphore, end_semaphore);
}

hl_latch *new_latch(hl_client *client, const char *name)
{
    hl_latch *latch = NULL;
    expect_ok(hl_latch_new(client, name, &latch, NULL));
    return free_at_end(latch, end_latch);
}

int64_t available_of(hl_semaphore *semaphore)
{
    int64_t permits = INT64_MIN;
    expect_ok(hl_semaphore_available(semaphore, &permits, NULL));
    return permits;
}

int64_t count_of(hl_latch *latch)
{
    int64_t count = INT64_MIN;
    expect_ok(hl_latch_count(latch, &count, NULL));
    return count;
}

static void wait_job(void *arg)
{
    struct wait_call *call = arg;
    int64_t before_ms = now_ms();
    call->code = call->semaphore ? hl_semaphore_acquire_with(call->semaphore, call->permits,
                                                             &call->options, &call->err)
                                 : hl_latch_await_with(call->latch, &call->options, &call->err);
    call->took_ms = now_ms() - before_ms;
    if (call->code == HL_OK && call->served)
        call->place = atomic_fetch_add(call->served, 1) + 1;
}

static void begin_wait(struct actor *actor, struct wait_call *call)
{
    if (call->options.size == 0)
        call->options = *WAIT(.wait_ms = HL_WAIT_FOREVER);
    actor_begin(actor, wait_job, call);
}

void begin_take(struct actor *actor, struct wait_call *call, hl_semaphore *semaphore,
                int64_t permits)
{
    call->semaphore = semaphore;
    call->permits = permits;
    begin_wait(actor, call);
}

void begin_await(struct actor *actor, struct wait_call *call, hl_latch *latch)
{
    call->latch = latch;
    begin_wait(actor, call);
}

int end_call(struct actor *actor, const struct wait_call *call)
{
    actor_await(actor);
    return call->code;
}

int notes_of(hl_client *client)
{
    return (int)redis_int(server, "EVAL %s 0 hirelock_note:*%s*",
                          "return #redis.call('KEYS', ARGV[1])",
                          client ? hl_client_id(client) : "");
}
