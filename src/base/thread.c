/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Threads and gates. */
#include "base/thread.h"

#include <hirelock/error.h>

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int hli_thread_start(hli_thread *ret_thread, const char *name, void *(*run)(void *), void *arg)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(ret_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        errno = rc;
        return HL_ENOMEM;
    }
    pthread_setname_np(*ret_thread, name);
    return 0;
}

void hli_thread_join(hli_thread thread)
{
    pthread_join(thread, NULL);
}

void hli_thread_yield(void)
{
    sched_yield();
}

void hli_mutex_init(hli_mutex *mutex)
{
    pthread_mutex_init(mutex, NULL);
}

void hli_mutex_deinit(hli_mutex *mutex)
{
    pthread_mutex_destroy(mutex);
}

void hli_mutex_lock(hli_mutex *mutex)
{
    pthread_mutex_lock(mutex);
}

void hli_mutex_unlock(hli_mutex *mutex)
{
    pthread_mutex_unlock(mutex);
}

static struct timespec thread_timespec(hli_ns ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

void hli_cond_init(hli_cond *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void hli_cond_deinit(hli_cond *cond)
{
    pthread_cond_destroy(cond);
}

void hli_cond_signal(hli_cond *cond)
{
    pthread_cond_signal(cond);
}

void hli_cond_wait(hli_cond *cond, hli_mutex *mutex)
{
    pthread_cond_wait(cond, mutex);
}

void hli_cond_wait_until(hli_cond *cond, hli_mutex *mutex, hli_ns deadline)
{
    struct timespec now;

    if (deadline == HLI_NEVER) {
        hli_cond_wait(cond, mutex);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct timespec until =
        thread_timespec((hli_ns)now.tv_sec * 1000000000 + now.tv_nsec + hli_nap(deadline));
    pthread_cond_timedwait(cond, mutex, &until);
}

static long thread_futex(atomic_int *word, int op, int value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* The gate may be gone after the store that opened it: its fields were read before. */
static void gate_wake(struct hli_gate *gate, int before, struct hli_wakefd *wakefd)
{
    if (before == HLI_GATE_SLEPT_AT)
        thread_futex(&gate->state, FUTEX_WAKE, 1, NULL);
    else if (before == HLI_GATE_POLLED_AT)
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

    atomic_store_explicit(&gate->wakefd, wakefd, memory_order_relaxed);
    while (state == HLI_GATE_SHUT || state == HLI_GATE_SLEPT_AT) /* a sleep that timed out */
        if (atomic_compare_exchange_weak(&gate->state, &state, HLI_GATE_POLLED_AT))
            return true;
    return state == HLI_GATE_POLLED_AT;
}

void hli_gate_detach(struct hli_gate *gate)
{
    int polled_at = HLI_GATE_POLLED_AT;

    atomic_compare_exchange_strong(&gate->state, &polled_at, HLI_GATE_SHUT);
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
        timeout = thread_timespec(hli_nap(deadline));
    if (atomic_compare_exchange_strong(&gate->state, &shut, HLI_GATE_SLEPT_AT) ||
        shut == HLI_GATE_SLEPT_AT)
        thread_futex(&gate->state, FUTEX_WAIT, HLI_GATE_SLEPT_AT,
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

int hli_cancelability_off(void)
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void hli_cancelability_restore(int state)
{
    pthread_setcancelstate(state, NULL);
}

static _Thread_local struct {
    unsigned depth;
    int before;
} thread_inside;

void hli_cancelability_enter(void)
{
    if (thread_inside.depth++ == 0)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &thread_inside.before);
}

void hli_cancelability_leave(void)
{
    if (--thread_inside.depth == 0)
        pthread_setcancelstate(thread_inside.before, NULL);
}
