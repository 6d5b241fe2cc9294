/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Helpers of tests of semaphores and latches, in addition to kit.h. */
#ifndef HL_TEST_SEMAPHORE_SUPPORT_H
#define HL_TEST_SEMAPHORE_SUPPORT_H

#include "actor.h"
#include "kit.h"

/* Freed by server_down(). */
hl_semaphore *new_semaphore(hl_client *client, const char *name);
hl_latch *new_latch(hl_client *client, const char *name);

#define SEMAPHORE_CHANNEL(name) "redisson_sc:{" name "}"
#define LATCH_CHANNEL(name) "redisson_countdownlatch__channel__{" name "}"

/* The numbers that the library's own calls return. */
int64_t available_of(hl_semaphore *semaphore);
int64_t count_of(hl_latch *latch);

/* A call that an actor makes; its result is set after actor_await(). */
struct wait_call {
    hl_semaphore *semaphore; /* this or .latch is set */
    hl_latch *latch;
    int64_t permits;
    hl_wait_options options;
    atomic_int *served; /* incremented when the call returns 0; may be NULL */
    int place;          /* the value of *served after that, from 1 */
    int code;
    hl_error err;
    int64_t took_ms;
};
void begin_take(struct actor *actor, struct wait_call *call, hl_semaphore *semaphore,
                int64_t permits);
void begin_await(struct actor *actor, struct wait_call *call, hl_latch *latch);
int end_call(struct actor *actor, const struct wait_call *call);

/* The number of "once" notes in Redis: of this client, or of all (NULL). */
int notes_of(hl_client *client);

#endif
