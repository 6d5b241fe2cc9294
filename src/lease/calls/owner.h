/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An owner of holds: the calling thread, or an explicit hl_owner. Each has a number that no other
 * owner of this process ever has. pthread_self() and gettid() would not do, because the system
 * gives them to later threads again.
 */
#ifndef HLI_LEASE_CALLS_OWNER_H
#define HLI_LEASE_CALLS_OWNER_H

#include "base/ref.h"

#include <hirelock/lock.h>

struct hli_blocked;

struct hl_owner {
    struct hli_ref ref;     /* the handle's, or the thread's, and one for each hold */
    uint64_t number;        /* immutable */
    hl_client *client;      /* counted, immutable; NULL for a thread */
    atomic_uint holds;      /* live holds */
    atomic_bool has_exited; /* the thread has ended and its holds are abandoned, or the handle is
                               freed: nobody will release its lost holds */
    struct hli_blocked *blocked; /* the mutex of the list of announced calls (deadlock.h): the call
                                    in which this thread is blocked, or NULL */
};

/* Errors: NULL when memory is out. */
struct hl_owner *hli_owner_new(hl_client *client);
void hli_owner_ref(struct hl_owner *owner);
void hli_owner_unref(struct hl_owner *owner);

/* The calling thread's owner, borrowed; made on its first use. Errors: NULL when memory is out. */
struct hl_owner *hli_owner_of_thread(void);

/* The same, but NULL for a thread that has never been an owner. */
struct hl_owner *hli_owner_of_thread_if_any(void);

/* Sets the function that is called when a thread ends that still has holds. Once, before the first
 * client is opened. */
void hli_owner_on_exit(void (*hook)(void));

#endif
