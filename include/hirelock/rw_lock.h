/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The read-write lock: any number of owners read at a time, or one writes. Wire-compatible with
 * Redisson's RReadWriteLock. Both halves are locks (lock.h): all that is declared there works on
 * them, and what it promises holds for each of their holds.
 *
 * Each read hold has a lease of its own. A short one shortens nobody else's, and a reader whose
 * lease is over keeps writers out no longer than until the next of them asks again (poll_ms at
 * most), however many others go on reading.
 *
 * An owner that writes may read as well. When it releases the write lock first it goes on as a
 * reader, and other readers come in beside it. The other way is refused: an owner that reads and
 * wants to write as well would wait for itself, so it is told HL_EDEADLK at once, unless it holds
 * the write lock already and just goes deeper.
 *
 * Readers come in as long as somebody reads, so a writer may have to wait for long. With
 * HL_LOCK_PREFER_WRITERS, new readers that use this library stay away while such a writer waits,
 * those that hold already excepted; Redisson's readers do not know of it.
 */
#ifndef HIRELOCK_RW_LOCK_H
#define HIRELOCK_RW_LOCK_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes two handles of the read-write lock `name`, one for each half. options: those of a lock, and
 * HL_LOCK_PREFER_WRITERS; NULL for none; linger_ms must be 0. No I/O. Each is freed by
 * hl_lock_free.
 *
 * What calls of lock.h do here: an acquire of the write handle also returns HL_EDEADLK, for an
 * owner that reads. hl_lock_inspect of the read handle says locked for a lock that anybody reads,
 * its writer included, and names one of the readers, one of this client's if there is one; of the
 * write handle, for one that is being written. hl_lock_force_release takes the lock from all
 * readers, or from the writer, who loses with it what it reads. min_hold_ms keeps writers away
 * after a reader, and everybody after a writer, unless that goes on as a reader.
 *
 * Threads: any.
 * Returns: 0; as hl_lock_new_with, and then neither of them is written.
 */
HL_API HL_MUST_CHECK int hl_rw_lock_new(hl_client *client, const char *name,
                                        const hl_lock_options *options, hl_lock **ret_read,
                                        hl_lock **ret_write, hl_error *err);

#ifdef __cplusplus
}
#endif
#endif
