/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The multi-lock: several locks as one, all or none. hl_multi_lock_new makes an hl_lock, and all
 * calls of lock.h work on it. Its members are ordinary locks, of one client or of several, whose
 * servers may be of any kind: other callers use them alone or in a multi-lock, also in Redisson's
 * RMultiLock and RedissonMultiLock.
 *
 * Guarantees: after an acquire that returns 0 the owner holds all members. After an acquire that
 * fails the owner holds the members that it held before, unchanged, and no other. Members are
 * acquired in the order of their names' bytes (in a cluster: of their slots, and in one slot of
 * their names), in whatever order they were given, so multi-locks with common members never
 * deadlock. While no member is busy, one request for each server (in a cluster: for each slot)
 * acquires all its members, one server after the other; and one releases them, all at once.
 *
 * Waiting: a caller waits in the queue of the first busy member like any other waiter, and holds
 * the members that precede it; then it goes on with the next members. So each of its waits ends
 * when its turn comes, however contended the other members are. A caller that does not wait
 * (HL_NO_WAIT) acquires nothing when a member is busy; but if another thread of this process holds
 * or wants a member, a member is not a plain lock, or the members are on several servers, the
 * caller may hold some members for a moment. Lease times, max_hold_ms and min_hold_ms count from
 * the return, when all members are held; until then the watchdog renews the members that are held.
 *
 * Does not guarantee: freedom from deadlock for an owner that waits for a multi-lock while it holds
 * other locks, members of it included. Give such a call a wait time. Among the threads of one
 * process it returns HL_EDEADLK (hl_lock_acquire_with), unless the members are of several clients.
 *
 * Several clients. One name at several servers is that many locks. These are acquired in the order
 * of the servers' run ids, which a restart or a failover changes; so a call holds one of them while
 * it waits for another only for some moments, then gives it back, and keeps its place in the queue:
 * no deadlock, but no place in the first queue either. The call belongs to the client of the first
 * member that was given: that one's thread, or dispatch, runs the completions. Each member has the
 * options of its own client (outage_timeout_ms, poll_ms, min_replicas, failover_grace_ms ...), and
 * its events, those of options.on_event included, run there. The owner is the calling thread, or an
 * explicit owner of any of the clients. When one of them is closed, an acquire under way ends with
 * HL_ECANCELED, also an async one that was complete and whose completion has not run yet, and all
 * is given back. Held members of that client are lost, as other holds are. Later acquires, inspects
 * and force-releases return HL_ECLOSED; a release releases the members of the open clients, and has
 * HL_ECLOSED for the others.
 *
 * The calls of lock.h on a multi-lock:
 *
 * hl_lock_is_held: true if all members are held. hl_lock_validity_ms and hl_lock_hold_count: the
 * least value of any member. hl_lock_name: the members' names in order, with commas between.
 * hl_lock_token: 0; ask the member. hl_lock_update_lease: HL_ENOTSUP. Each member has its own
 * events, under its own name. Statistics count members, not calls.
 *
 * hl_lock_acquire_with: err->busy describes the holder of the busy member. When a member is lost
 * while the call waits for a later member, the call releases all and begins anew.
 *
 * hl_lock_release: every member is released, also when another member's release fails. The result
 * is the gravest code of any member: first a code of a member that was not released (HL_ENOMEM,
 * HL_ECLOSED ...), then HL_ELOST, HL_EDENIED, HL_ESERVER, HL_EINDOUBT, HL_ENOTOWNER; the text has a
 * sentence for each failed member. hl_multi_lock_release_each returns all codes.
 *
 * hl_lock_inspect: describes the first member that another client holds; else the first free
 * member; else, when this client holds all, the first member. hl_lock_force_release: releases the
 * members one after the other, each within outage_timeout_ms; 0 when a member was locked, unless
 * the server refused another member or did not answer.
 */
#ifndef HIRELOCK_MULTI_LOCK_H
#define HIRELOCK_MULTI_LOCK_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a handle of `count` members, 1 to 100, as one lock. A name that is given twice counts once.
 * The members' handles may be freed afterwards; their options (HL_LOCK_ASYNC_RELEASE, retain_ms)
 * are not inherited: `options` sets them, NULL for none. No I/O.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL; a count out of range; a name of one client that is given as two
 * kinds of locks; a member that is a multi-lock itself; options that are out of range, unknown, or
 * not for one of the members, or that have a name, a kind or a backoff); HL_ENOMEM; HL_ECLOSED,
 * HL_EFORKED (of any member's client). That two clients of one server name one lock is found out by
 * the acquire: HL_EDEADLK.
 */
HL_API HL_MUST_CHECK int hl_multi_lock_new(hl_lock *const *members, size_t count,
                                           const hl_lock_options *options, hl_lock **ret_lock,
                                           hl_error *err);

/*
 * hl_lock_release_as, with a code for each member: ret_codes has room for as many codes as members
 * were given, and is filled in that order, whatever the result; a failure of the whole call
 * (HL_ENOMEM, HL_ECLOSED) is the code of each member. It stays untouched only when `lock` is no
 * multi-lock.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: as hl_lock_release, the gravest code; HL_EINVAL also for NULL or a lock that is no
 * multi-lock.
 */
HL_API int hl_multi_lock_release_each(hl_lock *lock, hl_owner *owner, int *ret_codes,
                                      hl_error *err);

/* The completion of hl_multi_lock_release_each_async. `codes` has a code for each member, in the
 * order in which the members were given; it is valid during the call only, as err is. */
typedef void (*hl_codes_cb)(int code, const int *codes, size_t count, const hl_error *err,
                            void *arg);

/*
 * hl_multi_lock_release_each without blocking; owner must not be NULL.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_release. Negative: it never runs:
 * HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_multi_lock_release_each_async(hl_lock *lock, hl_owner *owner,
                                                          hl_codes_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
