/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The multi-lock: several locks as one, all or none. What hl_multi_lock_new makes is an hl_lock,
 * and all that lock.h declares works on it. Its members are ordinary locks of one client, shared
 * with everybody who uses them, alone or in a multi-lock, Redisson's RMultiLock among them.
 *
 * Guarantees: an acquire that returns 0 holds all members, and one that fails holds none that its
 * owner did not hold before; what was held before is as it was. Members are taken in the order of
 * their names' bytes, whatever order they were given in, so callers that wait for each other's
 * members never deadlock. What is free is taken by one request, and given back by one.
 *
 * Waiting: in front of the first member that is busy a caller waits in its queue like any other,
 * holding what precedes it; then it goes on behind. So each of its waits ends when it is its turn,
 * however much is going on at the other members. A caller that does not wait (HL_NO_WAIT) takes
 * nothing when one is busy, unless another thread of this process has to do with a member, or one
 * is not a plain lock: then it may hold some for a moment. Lease times, max_hold_ms and min_hold_ms
 * count from the return, when all are held; what is held before is renewed.
 *
 * Does not guarantee: freedom from deadlock for an owner that waits for a multi-lock while it holds
 * other locks, members of it included. Give such a call a wait time.
 *
 * Of the verbs of lock.h:
 *
 * hl_lock_is_held: all members are held. hl_lock_validity_ms and hl_lock_hold_count: the least of
 * the members'. hl_lock_name: their names in order, with commas between. hl_lock_token: 0; ask the
 * member. Events are each member's, by its own name. Statistics count members, not calls.
 *
 * hl_lock_acquire_with: options->ret_busy tells of the member that was busy; options->ret_token is
 * HL_EINVAL. HL_ELOST also when a fair lock among the members was lost while a later one was waited
 * for; with members of other kinds the call begins anew then.
 *
 * hl_lock_release: every member is released, whatever becomes of the others. The code is that of
 * the member that matters most: one that was not done (HL_ENOMEM ...), else HL_ELOST, HL_EDENIED,
 * HL_ESERVER, HL_EUNKNOWN, HL_ENOTOWNER; the text has a sentence for each. All codes are given by
 * hl_multi_lock_release_each.
 *
 * hl_lock_inspect: the first member that somebody else holds; else the first that is free; else,
 * when this client holds all, the first. hl_lock_force_release: each member, one after the other,
 * each for outage_timeout_ms at most; 0 when one of them was locked, unless another one's answer
 * was a refusal, or none came.
 */
#ifndef HIRELOCK_MULTI_LOCK_H
#define HIRELOCK_MULTI_LOCK_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a handle of `count` members, 1 to 100, as one lock. A name that is given twice counts once.
 * The members' handles may be freed afterwards; how they release (posted, lingering) is not
 * inherited, but given by options, NULL for none. No I/O.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL; a count out of range; members of several clients; a name that is
 * given as two kinds of locks; a member that is a multi-lock itself; options that are out of range,
 * unknown, or not for one of the members; a name_length); HL_ENOMEM; HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_multi_lock_new(hl_lock *const *members, size_t count,
                                           const hl_lock_options *options, hl_lock **ret_lock,
                                           hl_error *err);

/*
 * hl_lock_release_as, and what became of each member: ret_codes has room for as many codes as
 * members were given, and is filled in that order whatever the result; a failure of the whole call
 * (HL_ENOMEM, HL_ECLOSED) is each one's code. It stays untouched only when lock is no multi-lock.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: as hl_lock_release, the code that matters most; HL_EINVAL also for NULL or a lock that
 * is no multi-lock.
 */
HL_API int hl_multi_lock_release_each(hl_lock *lock, hl_owner *owner, int *ret_codes,
                                      hl_error *err);

/*
 * The same without blocking; owner must not be NULL, and ret_codes, which may be NULL here, must
 * live until done ran: it is filled before.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_release. Negative: it never runs,
 * and ret_codes is untouched: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_multi_lock_release_each_async(hl_lock *lock, hl_owner *owner,
                                                          int *ret_codes, hl_done_cb done,
                                                          void *arg);

#ifdef __cplusplus
}
#endif
#endif
