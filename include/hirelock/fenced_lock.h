/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The fenced lock: a lock (lock.h) whose every hold has a fencing token, a number that grows with
 * each hold of the name. What the lock guards can refuse whoever comes with a smaller token than it
 * has seen: a holder that was paused for longer than its lease and does not know it yet (Martin
 * Kleppmann, "How to do distributed locking"). Wire-compatible with Redisson's RFencedLock: both
 * count in the same key, "redisson_lock_token:{name}".
 *
 * The token comes with the lock, in the same answer, and is written to options->ret_token. One hold
 * has one token, however deep it is nested. Tokens of one name grow strictly as long as the server
 * keeps its data; they are not without gaps, for a client that may hand the lock on between its own
 * threads takes some in advance. The key has no expiry and is never deleted here: it would begin
 * anew.
 *
 * A fenced lock and an hl_lock of the same name are the same lock, whose holds through hl_lock have
 * no token.
 */
#ifndef HIRELOCK_FENCED_LOCK_H
#define HIRELOCK_FENCED_LOCK_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a handle of the fenced lock `name`. options: those of a lock, NULL for none. No I/O.
 *
 * An acquire through it also returns HL_EINVAL for a nested call inside a hold without a token (one
 * that was begun through an hl_lock), and HL_ESERVER when the token's key is no integer.
 *
 * Threads: any.
 * Returns: as hl_lock_new_with.
 */
HL_API HL_MUST_CHECK int hl_fenced_lock_new(hl_client *client, const char *name,
                                            const hl_lock_options *options, hl_lock **ret_lock,
                                            hl_error *err);

/*
 * The fencing token of the hold that this owner (NULL: the calling thread) has now. No I/O.
 *
 * Threads: any.
 * Returns: the token; 0 when not held, or held without one.
 */
HL_API uint64_t hl_lock_token(const hl_lock *lock, const hl_owner *owner);

#ifdef __cplusplus
}
#endif
#endif
