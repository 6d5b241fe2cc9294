/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The Redlock, and the classic lock: the algorithms of redis.io's page "Distributed Locks with
 * Redis". With one client it is the lock that the page begins with, a key with a value of its
 * holder on one server. With more, each is a client of a master of its own, none of which
 * replicates another: who has the key on more than half of the masters has the lock, so that any
 * minority of them may be dead, slow or out of reach. Wire-compatible with the locks of redsync,
 * redis-py, bsm/redislock and redlock for node.js: SET NX PX, and a delete and an expiry for the
 * holder alone. A name is not shared with the locks of Redisson and of lock.h: their keys are
 * hashes.
 *
 * Both constructors make an hl_lock, and all calls of lock.h work on it, with owners of the first
 * client. What differs is told here and in docs/redlock.md.
 *
 * Guarantees, while a majority of the masters keeps its data and its clock is steady, to 1 %: at
 * any instant at most one owner has a majority of the keys, and hl_lock_is_held() never says yes
 * outside that time. A hold is valid until a majority is not sure any more: of each master, from
 * before its request was sent, less 1 % and 2 ms. The watchdog renews it at each master by itself;
 * a master that has lost the key is asked for it anew.
 *
 * **A master that restarts, or whose data are gone, gets no vote for max_lease_ms**, since it may
 * have forgotten a holder: so the masters need not be restarted with a delay. Its data are known by
 * the key "hirelock_data" beside them, which a Redlock's first request sets: an empty disk and
 * FLUSHALL are noticed. A restart alone costs no vote with appendonly and appendfsync always. The
 * delay also holds of masters that are asked for the first time. Meanwhile a try returns HL_ESERVER
 * if too few others are left, and so does an acquire whose wait time ends earlier. A master that
 * does not tell since when it runs, as its user lacks +info, has no vote: acquires return
 * HL_EDENIED at once.
 *
 * Does not guarantee: exclusion when a majority of masters loses its data or its clocks are
 * stepped; with a Sentinel's or a cluster's master; beside a program whose leases are longer than
 * max_lease_ms; and order: waiters of different processes ask after random pauses.
 */
#ifndef HIRELOCK_REDLOCK_H
#define HIRELOCK_REDLOCK_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* An acquire by the owner that already holds the lock adds a level; each needs its own release.
     * Levels are counted in this process: the hold keeps its lease. Without this flag such an
     * acquire returns HL_EDEADLK. */
    HL_REDLOCK_NESTS = 1,
    /* As HL_LOCK_ASYNC_RELEASE. */
    HL_REDLOCK_ASYNC_RELEASE = 2,
    /* A master that has restarted or lost its data gets a vote at once, as with other libraries:
     * for masters that are surely started later than max_lease_ms after they ended. */
    HL_REDLOCK_NO_RESTART_DELAY = 4
};

/* The name of a lock, and options of its handle; zero is the default. Times are in milliseconds. */
typedef struct hl_redlock_options {
    size_t size;
    unsigned flags; /* HL_REDLOCK_..., joined by | */
    /* 1 to 512 bytes with the first client's name_prefix, copied. */
    const void *name;
    size_t name_length; /* of a name that holds any bytes; 0: it is a C string */
    /* 200, at most 60,000; how long each master is waited for, and never longer than a quarter of
     * the lease. */
    int64_t vote_timeout_ms;
    /* 50, at most 60,000; the pause before a waiter that no message woke asks again, doubled each
     * time up to retry_max_ms, and up to a quarter more at random. */
    int64_t retry_min_ms;
    int64_t retry_max_ms; /* 200, or retry_min_ms if that is more; at most 60,000 */
    /* watchdog_timeout_ms of the first client, and not less; at most 10^11. The longest lease that
     * any program takes on this name: for so long a restarted master has no vote. Give all handles
     * of a name the same. */
    int64_t max_lease_ms;
} hl_redlock_options;

/* clang-format off */
#define HL_REDLOCK_OPTIONS_INIT { sizeof(hl_redlock_options), 0, NULL, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * Makes a handle of the lock `name`, a C string, on the servers of `count` clients. No I/O.
 *
 * Threads: any.
 * Returns: as hl_redlock_new_with.
 */
HL_API HL_MUST_CHECK int hl_redlock_new(hl_client *const *clients, size_t count, const char *name,
                                        hl_lock **ret_lock, hl_error *err);

/*
 * Makes a handle of the lock that the options describe, which need a name, on the servers of
 * `count` clients, an odd number from 1 to 31. No I/O. With one client any URL is fine; with more,
 * each is one server (redis://, rediss:// or unix://). The name gets the first client's
 * name_prefix, at all masters. All handles of a name give the same clients in the same order.
 *
 * The clients must outlive the handle's calls, as with any handle. A client that is closed counts
 * as a master that does not answer; when the first one is closed, waits end and holds are lost.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL; a count that is even or out of range; a client or a server that is
 * given twice; a Sentinel or a cluster among several; options out of range or unknown; a name that
 * hl_lock_new_with would refuse; other clients than a handle before); HL_ENOMEM; HL_ECLOSED;
 * HL_EFORKED. That two clients reach one server by different addresses is found out by the acquire:
 * the second has no vote.
 */
HL_API HL_MUST_CHECK int hl_redlock_new_with(hl_client *const *clients, size_t count,
                                             const hl_redlock_options *options, hl_lock **ret_lock,
                                             hl_error *err);

#ifdef __cplusplus
}
#endif
#endif
