/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An owner: who holds. The calling thread, or an explicit hl_owner; both are a number that no other
 * owner of this process has. Not pthread_self() and not gettid(), for the system gives those to
 * later threads again.
 */
#ifndef HLI_LEASE_OWNER_H
#define HLI_LEASE_OWNER_H

#include "base/ref.h"

#include <hirelock/lock.h>

struct hl_owner {
    struct hli_ref ref;     /* the handle's, or the thread's, and one for each hold */
    uint32_t number;        /* 31 bits; immutable */
    hl_client *client;      /* counted, immutable; NULL for a thread */
    atomic_uint holds;      /* that are live */
    atomic_bool has_exited; /* the thread has, and what it holds is abandoned */
};

/* Errors: NULL when memory is out. */
struct hl_owner *hli_owner_new(hl_client *client);
void hli_owner_ref(struct hl_owner *owner);
void hli_owner_unref(struct hl_owner *owner);

/* The calling thread's owner, borrowed; made on its first use. Errors: NULL when memory is out. */
struct hl_owner *hli_owner_of_thread(void);

/* The same, but NULL for a thread that has never been an owner. */
struct hl_owner *hli_owner_of_thread_if_any(void);

/* Called when a thread ends that still holds; set once, before the first client is there. */
void hli_owner_on_exit(void (*hook)(void));

#endif
