/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The multi-lock: several locks as one, all or none. hl_multi_lock_new makes an hl_lock, and all
 * calls of lock.h work on it. Its members are ordinary locks of one client: other callers use them
 * alone or in a multi-lock, also in Redisson's RMultiLock.
 *
 * Guarantees: after an acquire that returns 0 the owner holds all members. After an acquire that
 * fails the owner holds the members that it held before, unchanged, and no other. Members are
 * acquired in the order of their names' bytes (in a cluster: of their slots, and in one slot of
 * their names), in whatever order they were given, so multi-locks with common members never
 * deadlock. While all members are on one server (in a cluster: in one
 * slot), one request acquires all members that are free, and one releases them; else there is one
 * for each server.
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
 * other locks, members of it included. Give such a call a wait time.
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
 * is the gravest code of any member: first a code of a member that was not released (HL_ENOMEM
 * ...), then HL_ELOST, HL_EDENIED, HL_ESERVER, HL_EINDOUBT, HL_ENOTOWNER; the text has a sentence
 * for each failed member. hl_multi_lock_release_each returns all codes.
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
 * Returns: 0; HL_EINVAL (NULL; a count out of range; members of several clients (in this version);
 * a name that is given as two kinds of locks; a member that is a multi-lock itself; options that
 * are out of range, unknown, or not for one of the members, or that have a name, a kind or a
 * backoff); HL_ENOMEM; HL_ECLOSED; HL_EFORKED.
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
