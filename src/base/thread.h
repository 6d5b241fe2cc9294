/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Threads of the library, their mutexes and conditions. */
#ifndef HLI_BASE_THREAD_H
#define HLI_BASE_THREAD_H

#include "base/clock.h"

#include <pthread.h>

typedef pthread_t hli_thread;
typedef pthread_mutex_t hli_mutex;
typedef pthread_cond_t hli_cond;

#define HLI_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

/* Starts a thread with every signal blocked, so that the program's handlers never run on it, and
 * with a name of at most 15 bytes. Errors: HL_ENOMEM, and errno has the reason. */
int hli_thread_start(hli_thread *ret_thread, const char *name, void *(*run)(void *), void *arg);
void hli_thread_join(hli_thread thread);
void hli_thread_detach(hli_thread thread);
/* From now on a dlclose() does not unload the library, for a thread of it may outlive that. */
void hli_thread_keep_library(void);
void hli_thread_yield(void); /* lets another thread run on this core */

void hli_mutex_init(hli_mutex *mutex);
void hli_mutex_deinit(hli_mutex *mutex);
void hli_mutex_lock(hli_mutex *mutex);
void hli_mutex_unlock(hli_mutex *mutex);

/* A condition variable on CLOCK_MONOTONIC. hli_cond_wait_until() may return before the deadline
 * (hli_nap). */
void hli_cond_init(hli_cond *cond);
void hli_cond_deinit(hli_cond *cond);
void hli_cond_signal(hli_cond *cond);
void hli_cond_wait(hli_cond *cond, hli_mutex *mutex);
void hli_cond_wait_until(hli_cond *cond, hli_mutex *mutex, hli_ns deadline);

/* Public calls switch thread cancellation off, since it would leave an operation half done. The
 * first pair may also be used in a signal handler; the second pair may be nested. */
int hli_cancelability_off(void);
void hli_cancelability_restore(int state);
void hli_cancelability_enter(void);
void hli_cancelability_leave(void);

#endif
