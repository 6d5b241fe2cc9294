/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The gate, at which one thread waits for one event. */
#ifndef HLI_BASE_GATE_H
#define HLI_BASE_GATE_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>

struct hli_wakefd;

/*
 * A gate: any thread opens it once, and one thread waits for that. Before that, any thread may
 * nudge it, to make the waiter check its state. A gate may live on the waiter's stack: the opener's
 * store is its last access, and the wake-up that follows uses the address only. To open a gate at
 * which no thread sleeps takes no system call. A waiter that sleeps in poll(2) attaches a wakefd to
 * the gate, and the opener writes to that instead.
 */
struct hli_gate {
    atomic_int state;  /* futex word; the opener's release pairs with the waiter's acquire */
    unsigned attached; /* how often; of the waiter */
    _Atomic(struct hli_wakefd *) wakefd; /* borrowed; used while state is POLLED_AT */
};

enum hli_gate_state {
    HLI_GATE_SHUT,
    HLI_GATE_OPEN,
    HLI_GATE_NUDGED,
    HLI_GATE_SLEPT_AT, /* shut, and its waiter sleeps at the futex, or is about to */
    /* Shut, and its waiter sleeps in poll(2), or is about to. The last: each attach has a state of
     * its own from here on, so that an opener never wakes the wakefd of an earlier one. */
    HLI_GATE_POLLED_AT,
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

#endif
