/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * An actor: a thread of the test's own that does one thing after the other as it is told, so that a
 * test can say who does what, and when.
 */
#ifndef HL_TEST_ACTOR_H
#define HL_TEST_ACTOR_H

#include <hirelock/hirelock.h>
#include <stdbool.h>
#include <stdint.h>

struct actor;

struct actor *actor_start(void);

/* Lets its thread end, and waits for that. */
void actor_stop(struct actor *actor);
void actors_stop(void); /* all that are left */

/* Begins a job in its thread; the job before it has ended. */
void actor_begin(struct actor *actor, void (*job)(void *arg), void *arg);
void actor_await(struct actor *actor); /* until the job has ended; a minute at most */
bool actor_is_done(struct actor *actor);
void actor_do(struct actor *actor, void (*job)(void *arg), void *arg);

/* The lock's calls in the actor's thread. The result of a begun one is given by actor_end(). */
void actor_begin_acquire(struct actor *actor, hl_lock *lock, const hl_acquire_options *options);
int actor_end(struct actor *actor);
const char *actor_error(struct actor *actor); /* the text of the last result */
int64_t actor_took_ms(struct actor *actor);   /* the last call */
int actor_acquire(struct actor *actor, hl_lock *lock, const hl_acquire_options *options);
int actor_release(struct actor *actor, hl_lock *lock, hl_owner *owner);
bool actor_holds(struct actor *actor, hl_lock *lock, const hl_owner *owner);

#endif
