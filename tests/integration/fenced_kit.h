/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of the laws of fencing tokens: fenced handles of the lock "stock", the counter in
 * Redis, and threads that take turns and note their tokens.
 */
#ifndef HL_TEST_FENCED_KIT_H
#define HL_TEST_FENCED_KIT_H

#include <pthread.h>

#include "support/handle.h"
#include "support/kinds.h"
#include "support/kit.h"

#define COUNTER "redisson_lock_token:{stock}"

static inline hl_lock *new_fenced_with(hl_client *client, const hl_lock_options *options)
{
    hl_lock *lock = NULL;
    expect_ok(fenced_lock_new(client, "stock", options, &lock, NULL));
    return keep_lock(lock);
}

/* With this run's options: handle.h. */
static inline hl_lock *new_fenced(hl_client *client)
{
    hl_lock *lock = NULL;
    expect_ok(handle_new_fenced(client, "stock", &lock, NULL));
    return keep_lock(lock);
}

static inline uint64_t counter(void)
{
    return (uint64_t)redis_int(server, "GET " COUNTER);
}

/* The token of a hold of this thread, which is taken and released. */
static inline uint64_t hold_once(hl_lock *lock)
{
    uint64_t token = 0;
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = -1), &token));
    check(token > 0 && token == hl_lock_token(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    return token;
}

/* Each holder notes its token, and checks that tokens grow. In memory that processes share. */
struct ledger {
    _Atomic uint64_t last;
    _Atomic uint64_t holds, disorders;
};

static inline void note(struct ledger *ledger, uint64_t token)
{
    if (token <= atomic_exchange(&ledger->last, token))
        atomic_fetch_add(&ledger->disorders, 1);
    atomic_fetch_add(&ledger->holds, 1);
}

static inline void expect_order(struct ledger *ledger, uint64_t holds)
{
    check_int(atomic_load(&ledger->disorders), 0);
    check_int(atomic_load(&ledger->holds), holds);
}

struct worker {
    hl_lock *lock;
    struct ledger *ledger;
    int holds;
    pthread_t thread;
};

static inline void *work(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < worker->holds; i++) {
        uint64_t token = 0;
        expect_ok(acquire_token(worker->lock, ACQUIRE(.wait_ms = -1), &token));
        note(worker->ledger, token);
        if (i % 7 == 0) /* now and then a moment longer than a pass may take */
            deadline_nap();
        expect_ok(hl_lock_release(worker->lock, NULL));
    }
    return NULL;
}

enum { WORKERS = 4 };

static inline void work_beside(hl_lock *locks[WORKERS], struct ledger *ledger, int holds)
{
    struct worker workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.lock = locks[i], .ledger = ledger, .holds = holds};
        check_int(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
}

#endif
