/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * An actor: a thread that runs the test's jobs one after the other. So a test decides which thread
 * does a thing, and when.
 */
#ifndef HL_TEST_ACTOR_H
#define HL_TEST_ACTOR_H

#include <hirelock/hirelock.h>
#include <stdbool.h>
#include <stdint.h>

struct actor;

struct actor *actor_start(void);

/* Ends the actor's thread and joins it. */
void actor_stop(struct actor *actor);
void actors_stop(void); /* all that are left */

/* Begins a job in the actor's thread. The job before it must have ended. */
void actor_begin(struct actor *actor, void (*job)(void *arg), void *arg);
void actor_await(struct actor *actor); /* until the job has ended; a minute at most */
bool actor_is_done(struct actor *actor);
void actor_do(struct actor *actor, void (*job)(void *arg), void *arg);

/* The lock's calls in the actor's thread. actor_end() waits for a begun call and returns its code.
 */
void actor_begin_acquire(struct actor *actor, hl_lock *lock, const hl_acquire_options *options);
int actor_end(struct actor *actor);
struct actor *actor_start_acquire(hl_lock *lock, const hl_acquire_options *options);
const char *actor_error(struct actor *actor);        /* the text of the last result */
int64_t actor_took_ms(struct actor *actor);          /* the last call */
int64_t actor_ended_ns(struct actor *actor);         /* when that returned */
uint64_t actor_token(struct actor *actor);           /* of the hold it got */
const hl_lock_info *actor_busy(struct actor *actor); /* what was in its way */
int actor_acquire(struct actor *actor, hl_lock *lock, const hl_acquire_options *options);
int actor_release(struct actor *actor, hl_lock *lock, hl_owner *owner);
bool actor_holds(struct actor *actor, hl_lock *lock, const hl_owner *owner);

#endif
