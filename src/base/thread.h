/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Threads of the library, and the gate: how one thread waits for one thing to happen once. */
#ifndef HLI_BASE_THREAD_H
#define HLI_BASE_THREAD_H

#include "base/buzzer.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Starts a thread with every signal blocked, so that the program's handlers never run on it, and
 * with a name of at most 15 bytes. Errors: HL_ENOMEM, and errno says what ran out. */
int hli_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *arg);

/* A condition variable on CLOCK_MONOTONIC, and a wait on it until a deadline of ours. */
void hli_cond_init(pthread_cond_t *cond);
void hli_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, hli_ns deadline);

/*
 * Opened once by any thread, waited for by one; until then it may be poked, to make the waiter look
 * around. It may live on the waiter's stack: opening touches it last with its store, and the
 * wake-up that follows is by address only. A gate that nobody sleeps at is opened without a system
 * call. A waiter that sleeps in poll(2) hangs a buzzer at the gate, which is used instead.
 */
struct hli_gate {
    atomic_int state; /* futex word; the opener's release pairs with the waiter's acquire */
    _Atomic(struct hli_buzzer *) buzzer; /* borrowed, of a gate that is POLLED_AT */
};

enum hli_gate_state {
    HLI_GATE_SHUT,
    HLI_GATE_OPEN,
    HLI_GATE_POKED,
    HLI_GATE_SLEPT_AT,  /* shut, and its waiter is in the kernel or on the way there */
    HLI_GATE_POLLED_AT, /* the same, but in poll(2) */
};

void hli_gate_open(struct hli_gate *gate);
void hli_gate_poke(struct hli_gate *gate);
bool hli_gate_is_open(const struct hli_gate *gate);

/* OPEN; POKED, and the poke is used up; or SHUT when the deadline came first. */
enum hli_gate_state hli_gate_wait(struct hli_gate *gate, hli_ns deadline);

/* The waiter is about to poll this buzzer: it buzzes when the gate is opened or poked, until it is
 * taken down. Its memory must be there as long as anybody may do that, also after the gate. False:
 * the gate is not shut any more, and nothing was hung. */
bool hli_gate_hang(struct hli_gate *gate, struct hli_buzzer *buzzer);
void hli_gate_take_down(struct hli_gate *gate);
bool hli_gate_is_shut(const struct hli_gate *gate); /* neither opened nor poked */

/* Thread cancellation in the middle of anything would leave it half done: switched off for the time
 * of a public call. The first pair is for a signal handler, too; the second may be nested. */
int hli_cancelability_off(void);
void hli_cancelability_restore(int state);
void hli_cancelability_enter(void);
void hli_cancelability_leave(void);

#endif
