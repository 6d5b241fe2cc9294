/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* glibc's own allocator stands behind it under the names that glibc exports for this. */
#include "failing_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fatal.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HL_FAILING_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HL_FAILING_MALLOC 0
#endif
#endif
#ifndef HL_FAILING_MALLOC
#define HL_FAILING_MALLOC 1
#endif

static _Atomic long failing_left = -1; /* of the process; -1: not armed, or over */
static _Atomic long failing_calls;
static _Atomic bool failing_counts; /* the process is armed */
static _Atomic bool failing_met;
static _Atomic long failing_live;
static _Thread_local long failing_thread_left;
static _Thread_local bool failing_thread_counts;

#if HL_FAILING_MALLOC

/* NOLINTBEGIN(cert-dcl51-cpp): the names are glibc's */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);
/* NOLINTEND(cert-dcl51-cpp) */

static bool failing_now(void)
{
    bool thread = failing_thread_counts;
    if (!thread && !atomic_load(&failing_counts))
        return false;
    atomic_fetch_add(&failing_calls, 1);
    long left = thread ? failing_thread_left-- : atomic_fetch_sub(&failing_left, 1);
    if (left != 0)
        return false;
    atomic_store(&failing_met, true);
    errno = ENOMEM;
    return true;
}

static void *failing_made(void *memory)
{
    if (memory)
        atomic_fetch_add(&failing_live, 1);
    return memory;
}

void *malloc(size_t size)
{
    return failing_now() ? NULL : failing_made(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return failing_now() ? NULL : failing_made(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
    if (!old)
        return malloc(size);
    if (failing_now())
        return NULL;
    if (size == 0) /* glibc frees it */
        atomic_fetch_sub(&failing_live, 1);
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return failing_now() ? NULL : failing_made(__libc_memalign(alignment, size));
}

void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **ret_memory, size_t alignment, size_t size)
{
    void *memory = aligned_alloc(alignment, size);
    if (!memory)
        return ENOMEM;
    *ret_memory = memory;
    return 0;
}

void free(void *memory)
{
    if (memory)
        atomic_fetch_sub(&failing_live, 1);
    __libc_free(memory);
}

#endif

bool failing_malloc_available(void)
{
    return HL_FAILING_MALLOC;
}

void failing_malloc_arm(enum failing_scope scope, long n)
{
    must(failing_malloc_available());
    atomic_store(&failing_calls, 0);
    atomic_store(&failing_met, false);
    failing_thread_left = n;
    atomic_store(&failing_left, n);
    failing_thread_counts = scope == FAILING_THREAD;
    atomic_store(&failing_counts, scope == FAILING_PROCESS);
}

bool failing_malloc_disarm(void)
{
    failing_thread_counts = false;
    atomic_store(&failing_counts, false);
    return atomic_load(&failing_met);
}

long failing_malloc_calls(void)
{
    return atomic_load(&failing_calls);
}

long failing_malloc_live(void)
{
    return atomic_load(&failing_live);
}

long failing_malloc_sweep(const struct failing_scenario *scenario)
{
    for (long n = 0, step = scenario->step > 0 ? scenario->step : 1;; n += step) {
        if (scenario->prepare)
            scenario->prepare(scenario->arg);
        failing_malloc_arm(scenario->scope, n);
        scenario->run(scenario->arg);
        bool failed = failing_malloc_disarm();
        scenario->verify(scenario->arg, failed);
        if (!failed)
            return n / step;
    }
}
