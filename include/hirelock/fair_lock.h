/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The fair lock: a lock (lock.h) that its waiters get in the order in which they asked for it,
 * among all threads of all processes and Java programs. Wire-compatible with Redisson's RFairLock,
 * whose waiters stand in the same queue.
 *
 * The order is that in which the server saw the first request of each acquire that waits. An
 * acquire that does not wait does not queue: it gets a lock that is free and that nobody waits for.
 * A nested acquire does not queue either.
 *
 * A place is kept while its waiter asks, which it does every poll_ms. It is given up, and the
 * others move up, when the wait ends; about a second after the waiter's process or its connection
 * ended; and when it did not ask for five polls, as in a process that stands still. A waiter that
 * comes back after that queues anew, behind the others.
 *
 * Each waiting owner costs a request of its own and a subscription: with a hundred threads in one
 * process that want the same lock, an hl_lock hands over a hundred times faster, in the order of
 * their arrival within that process.
 *
 * A fair lock and an hl_lock of the same name exclude each other, but do not queue together: use
 * one of the two for a name, as with Redisson.
 */
#ifndef HIRELOCK_FAIR_LOCK_H
#define HIRELOCK_FAIR_LOCK_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a handle of the fair lock `name`. options: those of a lock, NULL for none; it does not
 * linger. No I/O. What an acquire through it tells in ret_busy.lease_left_ms is -1 unless it was
 * the first in the queue, or did not wait; when the lock was free, but is another waiter's turn,
 * ret_busy.owner is that waiter and hold_count 0.
 *
 * Threads: any.
 * Returns: as hl_lock_new_with; HL_EINVAL too for linger_ms.
 */
HL_API HL_MUST_CHECK int hl_fair_lock_new(hl_client *client, const char *name,
                                          const hl_lock_options *options, hl_lock **ret_lock,
                                          hl_error *err);

#ifdef __cplusplus
}
#endif
#endif
