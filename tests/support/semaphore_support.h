/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The words in which tests speak of semaphores and latches, beside those of lock_support.h. */
#ifndef HL_TEST_SEMAPHORE_SUPPORT_H
#define HL_TEST_SEMAPHORE_SUPPORT_H

#include "actor.h"
#include "lock_support.h"

/* Freed by server_down(). */
hl_semaphore *new_semaphore(hl_client *client, const char *name);
hl_latch *new_latch(hl_client *client, const char *name);

#define SEMAPHORE_CHANNEL(name) "redisson_sc:{" name "}"
#define LATCH_CHANNEL(name) "redisson_countdownlatch__channel__{" name "}"

/* What the library itself is told. */
int64_t available_of(hl_semaphore *semaphore);
int64_t count_of(hl_latch *latch);

/* A call that an actor makes; the result is there after actor_await(). */
struct wait_call {
    hl_semaphore *semaphore; /* one of these two */
    hl_latch *latch;
    int64_t permits;
    hl_acquire_options options;
    atomic_int *served; /* counted up when it returns 0; NULL: not counted */
    int place;          /* as what it was counted, from 1 */
    int code;
    hl_error err;
    int64_t took_ms;
};
void begin_take(struct actor *actor, struct wait_call *call, hl_semaphore *semaphore,
                int64_t permits);
void begin_await(struct actor *actor, struct wait_call *call, hl_latch *latch);
int end_call(struct actor *actor, const struct wait_call *call);

/* Notes of commands in Redis, of the client or of all (NULL). */
int notes_of(hl_client *client);

#endif
