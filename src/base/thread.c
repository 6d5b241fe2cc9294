/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Threads and gates. */
#include "base/thread.h"

#include <hirelock/error.h>

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int hli_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *arg)
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

static struct timespec thread_timespec(hli_ns ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

void hli_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void hli_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, hli_ns deadline)
{
    struct timespec now;

    if (deadline == HLI_NEVER) {
        pthread_cond_wait(cond, mutex);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    hli_ns left = hli_later(deadline - hli_now(), 0);
    struct timespec until = thread_timespec((hli_ns)now.tv_sec * 1000000000 + now.tv_nsec + left);
    pthread_cond_timedwait(cond, mutex, &until);
}

static long thread_futex(atomic_int *word, int op, int value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void hli_gate_open(struct hli_gate *gate)
{
    atomic_store_explicit(&gate->state, HLI_GATE_OPEN, memory_order_release);
    thread_futex(&gate->state, FUTEX_WAKE, 1, NULL);
}

void hli_gate_poke(struct hli_gate *gate)
{
    int shut = HLI_GATE_SHUT;

    if (atomic_compare_exchange_strong(&gate->state, &shut, HLI_GATE_POKED))
        thread_futex(&gate->state, FUTEX_WAKE, 1, NULL);
}

bool hli_gate_is_open(const struct hli_gate *gate)
{
    return atomic_load_explicit(&gate->state, memory_order_acquire) == HLI_GATE_OPEN;
}

static enum hli_gate_state gate_look(struct hli_gate *gate)
{
    int poked = HLI_GATE_POKED;

    if (atomic_compare_exchange_strong(&gate->state, &poked, HLI_GATE_SHUT))
        return HLI_GATE_POKED;
    return (enum hli_gate_state)poked;
}

enum hli_gate_state hli_gate_wait(struct hli_gate *gate, hli_ns deadline)
{
    enum hli_gate_state state;

    while ((state = gate_look(gate)) == HLI_GATE_SHUT) {
        hli_ns left = deadline == HLI_NEVER ? 0 : deadline - hli_now();
        struct timespec timeout = thread_timespec(left);
        if (deadline != HLI_NEVER && left <= 0)
            return HLI_GATE_SHUT;
        thread_futex(&gate->state, FUTEX_WAIT, HLI_GATE_SHUT,
                     deadline == HLI_NEVER ? NULL : &timeout);
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
