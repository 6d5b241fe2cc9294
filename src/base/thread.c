/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Threads, mutexes, conditions. */
#include "base/thread.h"

#include <hirelock/error.h>

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

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

void hli_thread_detach(hli_thread thread)
{
    pthread_detach(thread);
}

void hli_thread_keep_library(void)
{
    static const char library_anchor;
    Dl_info found;

    if (dladdr(&library_anchor, &found) && found.dli_fname)
        (void)!dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
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
        hli_timespec((hli_ns)now.tv_sec * 1000000000 + now.tv_nsec + hli_nap(deadline));
    pthread_cond_timedwait(cond, mutex, &until);
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
