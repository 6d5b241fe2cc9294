/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Deadlocks inside this process: threads that wait in a circle for each other's locks. A thread
 * that holds something and is about to block in a line is announced to the others of the process.
 * All holds of a circle are older than the waits of their owners; so the wait that is announced
 * last closes the circle. That one looks for it, among those that were announced before, and is
 * refused. So of each circle one wait is refused, and the others go on.
 *
 * Only what a thread waits for without any other choice counts: its blocking calls. A call without
 * a blocked thread does not, nor does an owner of its own, because another thread may release for
 * it. Names whose owners are not threads (permits, semaphores) and Redlocks do not count either.
 */
#ifndef HLI_LEASE_ACQUIRE_DEADLOCK_H
#define HLI_LEASE_ACQUIRE_DEADLOCK_H

#include "lease/state/waiters.h"

/* A blocking call that is announced. Zeroed before its first use. */
struct hli_blocked {
    struct hli_acquire *acquire; /* of the thread that makes the call's steps; NULL: none is
                                    announced */
    struct hl_owner *owner;      /* the list's mutex, as all below; borrowed from the acquire */
    struct hli_name *name;       /* the same */
    uint64_t serial;             /* in the order of the announcements */
    TAILQ_ENTRY(hli_blocked) link;
};

/* The acquire stands in the line, and its owner has holds: if it may be part of a circle, announces
 * it in place of any other of the call, and fails it with HL_EDEADLK if it has closed one. Without
 * a mutex. Without memory it is not checked. */
void hli_blocked_begin(struct hli_blocked *blocked, struct hli_acquire *acquire);
void hli_blocked_end(struct hli_blocked *blocked);

/* In the child after a fork: the calls of the parent's other threads do not go on here. */
void hli_blocked_forget_all(void);

#ifdef HL_TESTING
/* How many names' holders all searches have asked for. */
extern atomic_uint hli_deadlock_asks;
#endif

#endif
