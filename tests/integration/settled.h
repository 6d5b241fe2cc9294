/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * When a client's wait is settled. The server's word that the client listens comes before the
 * client knows it, and before the request that the client then sends once more.
 */
#ifndef HL_TEST_SETTLED_H
#define HL_TEST_SETTLED_H

#include <pthread.h>

#include "lease/state/contention.h"
#include "support/kit.h"
#include "sync/common/handle.h"

/* The client knows that it listens, and has the answer to its last request. */
static inline bool is_settled(void *handle)
{
    struct hli_name *name = ((struct hli_handle *)handle)->name;
    pthread_mutex_lock(&name->mutex);
    bool is = name->contention && name->contention->confirmed_at != 0 && name->current &&
              name->current->asking == HLI_ASKING_NOTHING;
    pthread_mutex_unlock(&name->mutex);
    return is;
}

/* Of a handle of any kind whose waiters stand in one line: soon a message finds its first waiter
 * asleep. */
static inline void expect_settled_wait(void *handle)
{
    check(wait_until(is_settled, handle, 5000));
}

#endif
