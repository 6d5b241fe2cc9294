/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Fencing: the data that a lock guards refuses the writes of a late holder.
 *
 * A holder may be stopped for longer than its lease, and then go on with a write while another
 * owner holds the lock; no check of the lock before the write can prevent that (M. Kleppmann, "How
 * to do distributed locking", 2016). So each hold of a fenced lock (HL_LOCK_FENCED) has a token, a
 * number that grows with each hold of the name, and the guarded data refuses a token that is
 * smaller than one it has seen. The answer that gives the lock brings the token. One hold has one
 * token, however deep it is nested. Tokens of a name grow as long as the server keeps its data, but
 * not without gaps: a client takes some in advance for its own threads. Their counter is
 * Redisson's, in the key "redisson_lock_token:{name}", which has no expiry and is never deleted
 * here.
 *
 * For data in the same Redis, two calls check and write in one step of the server:
 *
 * hl_fence_set() writes with the token of the hold. The server remembers the largest token that has
 * written, in a key beside the data, and refuses a smaller one. One hold may write any number of
 * times. A late write may still be taken until the next holder writes, so it is not for a value
 * that was computed from the one before.
 *
 * hl_lock_set_and_release() writes and releases in one step, only if the caller still holds the
 * lock: also a value that was computed from the one before. It needs no token.
 *
 * docs/fencing.md explains both, and shows the same for data in an SQL database.
 *
 * Guarantees, while the server keeps its data: a write with a token is never accepted after one
 * with a larger token; hl_lock_set_and_release() writes nothing once another owner holds the lock,
 * however late the request arrives.
 *
 * Does not guarantee: anything about writes that do not go through these calls, nor that two reads
 * return the same value. Tokens of two locks are not comparable: data belongs to one lock.
 *
 * Ownership: arguments are copied.
 */
#ifndef HIRELOCK_FENCE_H
#define HIRELOCK_FENCE_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The fencing token of the hold that this owner (NULL: the calling thread) has now. No I/O.
 *
 * Threads: any.
 * Returns: the token; 0 when not held, or held without one.
 */
HL_API uint64_t hl_lock_token(const hl_lock *lock, const hl_owner *owner);

/* The largest token that a counter may be raised to. */
#define HL_TOKEN_RAISE_MAX (UINT64_C(1) << 62)

/*
 * Raises the counter of the lock's tokens, as after a loss of the server's data: the next tokens
 * are larger than `token`, which is the largest that the guarded data has seen. The call never
 * lowers the counter. Holds go on, with their tokens. This client drops the tokens that it took in
 * advance unless they are larger. Another client may still use up to 65,536 smaller tokens that it
 * took in advance, until it gives the lock back to the server. Waits for a server and its answer
 * for outage_timeout_ms at most.
 *
 * Threads: any.
 * Returns: 0: raised, or it was as large already. HL_EINVAL: not a fenced lock's handle, or token
 * is not from 1 to HL_TOKEN_RAISE_MAX. HL_EINDOUBT: no answer; repeat it. HL_ESERVER (also: the
 * token's key is no integer); HL_EDENIED; HL_ECONN; HL_EPROTO; HL_ENOMEM; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_raise_token(hl_lock *lock, uint64_t token, hl_error *err);

/*
 * hl_lock_raise_token without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_lock_raise_token. Negative: it never
 * runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_raise_token_async(hl_lock *lock, uint64_t token, hl_done_cb done,
                                                   void *arg);

/* A write: any bytes as a string of Redis, in place of the key's present value. Times are in
 * milliseconds, at most 10^11. */
typedef struct hl_fenced_write {
    size_t size;
    /* 1 to 512 bytes; the client's name_prefix is not put before them. Neither the lock's own key
     * nor a key with the prefix of keys beside locks (hirelock_queue: ..., see
     * hl_lock_new_with). */
    const void *key;
    size_t key_length; /* of a key that holds any bytes; 0: it is a C string */
    const void *value; /* NULL: an empty value */
    /* At most 16 MiB. The value shares a connection with renewals, so keep it small. */
    size_t value_length;
    uint64_t token;    /* of the hold that writes (hl_lock_token), at most 2^63 - 1 */
    int64_t expire_ms; /* 0: the value stays until it is written again; else it expires */
    /* 0: the token is remembered for ever, in the key "hirelock_fence:{key}". Else for this long
     * after the last write with a token; choose it longer than any writer can be late. A shorter
     * time than an earlier write asked for does not shorten that. */
    int64_t remember_ms;
} hl_fenced_write;

#define HL_FENCED_WRITE_INIT                                                                       \
    {                                                                                              \
        sizeof(hl_fenced_write), NULL, 0, NULL, 0, 0, 0, 0                                         \
    }

/*
 * Writes, unless a larger token has written this key before. write->token is needed. In a cluster
 * key and fence share a slot, so the rules for braces are those of a lock's name. The client
 * repeats a request without an answer for up to outage_timeout_ms; the server checks a late copy
 * like the first.
 *
 * Threads: any.
 * Returns: 0: written. HL_EFENCED: a larger token was there before, nothing was written; err says
 * which. HL_EINDOUBT: the request was sent, and no answer came; the value may have been written.
 * HL_EINVAL; HL_ENOMEM. HL_ECONN, HL_EPROTO: no usable server, nothing was sent. HL_ESERVER,
 * HL_EDENIED: the server refused, nothing was written (OOM: after outage_timeout_ms; WRONGTYPE,
 * when the fence's key is something else, and NOPERM at once). HL_ECANCELED (closed meanwhile,
 * nothing was sent); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_fence_set(hl_client *client, const hl_fenced_write *write,
                                      hl_error *err);

/*
 * The largest token that is remembered for a key (key_length 0: a C string); 0 when there is none.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER (WRONGTYPE: the fence's key is
 * something else), HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_fence_token(hl_client *client, const void *key, size_t key_length,
                                        uint64_t *ret_token, hl_error *err);

/*
 * Writes, and releases the lock, in one step of the server: only if this owner (NULL: the calling
 * thread) still holds it, with its last level. The next holder finds the value. The call waits for
 * the answer at most request_timeout_ms, with a handle of any options, and always asks the server:
 * the lock is neither passed nor retained. Waiters are served as by hl_lock_release. If
 * write->token is 0, a hold of a fenced lock writes with its own token. A write with a token checks
 * and raises the fence as hl_fence_set does. In a cluster lock and key share a slot.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: written and released. HL_ELOST: the hold had ended before; nothing was written.
 * HL_EFENCED: released, but a larger token was there before; nothing was written. HL_EINDOUBT: no
 * answer in time, or a second copy of the request found no hold. The value may have been written,
 * or may still be until the lease is over, but never once another owner has the lock. For this
 * process the hold is over. HL_ESERVER, HL_EDENIED with "set 'key': ..." in err: released, but the
 * server refused the value; nothing was written; else as hl_lock_release. HL_ENOTOWNER: this owner
 * holds nothing; nothing was changed. HL_EINVAL: bad arguments, or not the last level: nothing was
 * changed. HL_ENOTSUP: a lock of another kind than HL_LOCK_REENTRANT, HL_LOCK_FENCED and
 * HL_LOCK_SPIN. HL_ENOMEM: nothing was sent, still held. HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_set_and_release(hl_lock *lock, hl_owner *owner,
                                                 const hl_fenced_write *write, hl_error *err);

/* The completion of hl_fence_token_async; err is filled when code is negative. */
typedef void (*hl_token_cb)(int code, uint64_t token, const hl_error *err, void *arg);

/*
 * hl_fence_set without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_fence_set. Negative: it never runs:
 * HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_fence_set_async(hl_client *client, const hl_fenced_write *write,
                                            hl_done_cb done, void *arg);

/*
 * hl_fence_token without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_fence_token. Negative: it never runs:
 * HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_fence_token_async(hl_client *client, const void *key, size_t key_length,
                                              hl_token_cb done, void *arg);

/*
 * hl_lock_set_and_release without blocking; owner must not be NULL.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_set_and_release. Negative: it
 * never runs: HL_EINVAL, HL_ENOTSUP, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_set_and_release_async(hl_lock *lock, hl_owner *owner,
                                                       const hl_fenced_write *write,
                                                       hl_done_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
