/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Threads of the library, and the gate, at which one thread waits for one event. */
#ifndef HLI_BASE_THREAD_H
#define HLI_BASE_THREAD_H

#include "base/clock.h"
#include "base/wakefd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef pthread_t hli_thread;
typedef pthread_mutex_t hli_mutex;
typedef pthread_cond_t hli_cond;

#define HLI_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

/* Starts a thread with every signal blocked, so that the program's handlers never run on it, and
 * with a name of at most 15 bytes. Errors: HL_ENOMEM, and errno has the reason. */
int hli_thread_start(hli_thread *ret_thread, const char *name, void *(*run)(void *), void *arg);
void hli_thread_join(hli_thread thread);
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

/*
 * A gate: any thread opens it once, and one thread waits for that. Before that, any thread may
 * nudge it, to make the waiter check its state. A gate may live on the waiter's stack: the opener's
 * store is its last access, and the wake-up that follows uses the address only. To open a gate at
 * which no thread sleeps takes no system call. A waiter that sleeps in poll(2) attaches a wakefd to
 * the gate, and the opener writes to that instead.
 */
struct hli_gate {
    atomic_int state; /* futex word; the opener's release pairs with the waiter's acquire */
    _Atomic(struct hli_wakefd *) wakefd; /* borrowed; used while state is POLLED_AT */
};

enum hli_gate_state {
    HLI_GATE_SHUT,
    HLI_GATE_OPEN,
    HLI_GATE_NUDGED,
    HLI_GATE_SLEPT_AT,  /* shut, and its waiter sleeps at the futex, or is about to */
    HLI_GATE_POLLED_AT, /* shut, and its waiter sleeps in poll(2), or is about to */
};

void hli_gate_open(struct hli_gate *gate);
void hli_gate_nudge(struct hli_gate *gate);
bool hli_gate_is_open(const struct hli_gate *gate);

/* Returns OPEN; NUDGED, which consumes the nudge; or SHUT when the deadline came first. */
enum hli_gate_state hli_gate_wait(struct hli_gate *gate, hli_ns deadline);

/* The waiter is about to poll this wakefd: opening or nudging the gate writes to it, until the
 * detach. The wakefd's memory must outlive every opener and nudger, which may use it after the
 * gate is gone. False: the gate is not shut any more, and no wakefd was attached. */
bool hli_gate_attach(struct hli_gate *gate, struct hli_wakefd *wakefd);
void hli_gate_detach(struct hli_gate *gate);
bool hli_gate_is_shut(const struct hli_gate *gate); /* neither opened nor nudged */

/* Public calls switch thread cancellation off, since it would leave an operation half done. The
 * first pair may also be used in a signal handler; the second pair may be nested. */
int hli_cancelability_off(void);
void hli_cancelability_restore(int state);
void hli_cancelability_enter(void);
void hli_cancelability_leave(void);

#endif
