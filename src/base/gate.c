/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Gates: a futex, or the wakefd of a waiter that polls. */
#include "base/gate.h"

#include "base/wakefd.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GATE_ATTACHES = 1 << 30 }; /* then their states begin anew */

static long gate_futex(atomic_int *word, int op, int value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* The gate may be gone after the store that opened it: its fields were read before. */
static void gate_wake(struct hli_gate *gate, int before, struct hli_wakefd *wakefd)
{
    if (before == HLI_GATE_SLEPT_AT)
        gate_futex(&gate->state, FUTEX_WAKE, 1, NULL);
    else if (before >= HLI_GATE_POLLED_AT)
        hli_wakefd_wake(wakefd);
}

void hli_gate_open(struct hli_gate *gate)
{
    int before = atomic_load_explicit(&gate->state, memory_order_acquire);
    struct hli_wakefd *wakefd;

    do
        wakefd = atomic_load_explicit(&gate->wakefd, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&gate->state, &before, HLI_GATE_OPEN,
                                                  memory_order_acq_rel, memory_order_acquire));
    gate_wake(gate, before, wakefd);
}

void hli_gate_nudge(struct hli_gate *gate)
{
    int before = atomic_load(&gate->state);

    do {
        if (before == HLI_GATE_OPEN || before == HLI_GATE_NUDGED)
            return;
    } while (!atomic_compare_exchange_weak(&gate->state, &before, HLI_GATE_NUDGED));
    /* wakefd is read only now: the waiter may have attached another one meanwhile. After a nudge
     * the gate still exists. */
    gate_wake(gate, before, atomic_load(&gate->wakefd));
}

bool hli_gate_attach(struct hli_gate *gate, struct hli_wakefd *wakefd)
{
    int state = atomic_load(&gate->state);
    int polled_at = HLI_GATE_POLLED_AT + (int)(gate->attached++ % GATE_ATTACHES);

    atomic_store_explicit(&gate->wakefd, wakefd, memory_order_relaxed);
    while (state == HLI_GATE_SHUT || state == HLI_GATE_SLEPT_AT) /* a sleep that timed out */
        if (atomic_compare_exchange_weak(&gate->state, &state, polled_at))
            return true;
    return false;
}

void hli_gate_detach(struct hli_gate *gate)
{
    int state = atomic_load(&gate->state);

    if (state >= HLI_GATE_POLLED_AT)
        atomic_compare_exchange_strong(&gate->state, &state, HLI_GATE_SHUT);
}

bool hli_gate_is_shut(const struct hli_gate *gate)
{
    int state = atomic_load_explicit(&gate->state, memory_order_acquire);

    return state != HLI_GATE_OPEN && state != HLI_GATE_NUDGED;
}

bool hli_gate_is_open(const struct hli_gate *gate)
{
    return atomic_load_explicit(&gate->state, memory_order_acquire) == HLI_GATE_OPEN;
}

/* Sleeps until the gate is opened or nudged, or for a while, but not past the deadline. */
static void gate_sleep(struct hli_gate *gate, hli_ns deadline)
{
    int shut = HLI_GATE_SHUT;
    struct timespec timeout;

    if (deadline != HLI_NEVER)
        timeout = hli_timespec(hli_nap(deadline));
    if (atomic_compare_exchange_strong(&gate->state, &shut, HLI_GATE_SLEPT_AT) ||
        shut == HLI_GATE_SLEPT_AT)
        gate_futex(&gate->state, FUTEX_WAIT, HLI_GATE_SLEPT_AT,
                   deadline == HLI_NEVER ? NULL : &timeout);
}

/* True if the gate is OPEN, or was NUDGED; the nudge is consumed. */
static bool gate_has_moved(struct hli_gate *gate, enum hli_gate_state *ret_state)
{
    int state = atomic_load_explicit(&gate->state, memory_order_acquire);

    *ret_state = (enum hli_gate_state)state;
    if (state == HLI_GATE_OPEN)
        return true;
    return state == HLI_GATE_NUDGED &&
           atomic_compare_exchange_strong(&gate->state, &state, HLI_GATE_SHUT);
}

enum hli_gate_state hli_gate_wait(struct hli_gate *gate, hli_ns deadline)
{
    enum hli_gate_state state;

    while (!gate_has_moved(gate, &state)) {
        if (deadline != HLI_NEVER && deadline <= hli_now())
            return HLI_GATE_SHUT;
        gate_sleep(gate, deadline);
    }
    return state;
}
