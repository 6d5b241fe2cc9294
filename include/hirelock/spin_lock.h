/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The spin lock: a lock (lock.h) whose waiters look in every now and then instead of being woken,
 * and whose release tells nobody. It is for very many names that are each held for a moment only,
 * where subscriptions would cost more than they save. Wire-compatible with Redisson's RSpinLock:
 * the key is that of a lock, and no message is published.
 *
 * Waiters look in after backoff_min_ms, then after twice as long each time, up to backoff_max_ms,
 * and from 4 ms on a little later by chance. They are served in no order, neither between clients
 * nor before the waiters of an hl_lock of the same name, which is the same lock. An hl_lock's
 * waiters do not hear of a spin lock's release, and ask again with their next poll; those that
 * stand in the queue are granted it all the same.
 */
#ifndef HIRELOCK_SPIN_LOCK_H
#define HIRELOCK_SPIN_LOCK_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Its waiters listen for the releases of others, too: hirelock's and Redisson's locks. */
    HL_SPIN_LOCK_LISTEN = 1
};

/* Times are in milliseconds; zero is the default. */
typedef struct hl_spin_lock_options {
    size_t size;
    unsigned flags;         /* HL_SPIN_LOCK_... */
    int64_t backoff_min_ms; /* 1; from 1 to 60,000 */
    /* 128, or backoff_min_ms if that is more; up to 60,000, and not less than backoff_min_ms. The
     * same: no backoff. */
    int64_t backoff_max_ms;
} hl_spin_lock_options;

#define HL_SPIN_LOCK_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hl_spin_lock_options), 0, 0, 0                                                      \
    }

/*
 * Makes a handle of the spin lock `name`. options: NULL for the defaults. No I/O.
 *
 * Threads: any.
 * Returns: as hl_lock_new; HL_EINVAL too for options that are out of range or unknown.
 */
HL_API HL_MUST_CHECK int hl_spin_lock_new(hl_client *client, const char *name,
                                          const hl_spin_lock_options *options, hl_lock **ret_lock,
                                          hl_error *err);

#ifdef __cplusplus
}
#endif
#endif
