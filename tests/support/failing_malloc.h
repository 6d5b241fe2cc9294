/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * An allocator that fails on demand. Add failing_malloc.c to the test that uses it: it defines
 * malloc and its family for the whole program. Sanitizers bring their own allocators, so it is not
 * available under them, and such tests skip.
 */
#ifndef HL_TEST_FAILING_MALLOC_H
#define HL_TEST_FAILING_MALLOC_H

#include <stdbool.h>

enum failing_scope {
    FAILING_THREAD, /* the calls of the thread that arms */
    FAILING_PROCESS /* the calls of all threads */
};

bool failing_malloc_available(void);

/* From now on the n-th allocation (from 0), and only that, returns NULL. */
void failing_malloc_arm(enum failing_scope scope, long n);

/* True when the n-th allocation was reached. */
bool failing_malloc_disarm(void);
long failing_malloc_calls(void); /* counted between the last arm and disarm */
long failing_malloc_live(void);  /* allocations that have not been freed */

/* A scenario, run with n = 0, 1, 2 ..., or each `step`th, until a run ends without an injected
 * failure. */
struct failing_scenario {
    long step; /* 0: 1 */
    enum failing_scope scope;
    void (*prepare)(void *arg);             /* not armed; may be NULL */
    void (*run)(void *arg);                 /* armed */
    void (*verify)(void *arg, bool failed); /* not armed: failed says whether one was injected */
    void *arg;
};

/* Returns the number of failures injected. */
long failing_malloc_sweep(const struct failing_scenario *scenario);

#endif
