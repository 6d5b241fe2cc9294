/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The fence: writes to data in the same Redis that come too late are refused, by the server, in the
 * step that would have written.
 *
 * A holder may be stopped for longer than its lease, and go on with a write when somebody else is
 * inside; no look at the lock before the write can prevent that (M. Kleppmann, "How to do
 * distributed locking", 2016). Two ways out:
 *
 * hl_fenced_set() writes with the token of the hold, a number that grows with every hold. Beside
 * the data the largest token that has written is remembered, and a smaller one is refused. The same
 * hold may write as often as it likes.
 *
 * hl_lock_set_and_release() writes and releases in one step, only if the lock is still held by the
 * one who asks. It needs no token.
 *
 * docs/fencing.md has both, and the same for data in an SQL database.
 *
 * Guarantees, while the server keeps its data: a write with a token is never accepted after one
 * with a larger token; nothing is written by hl_lock_set_and_release() once the lock is held by
 * somebody else, however late the request arrives.
 *
 * Does not guarantee: anything about writes that do not go through these calls, nor that a reader
 * who reads twice sees the same. Tokens of two locks are not comparable: data belongs to one lock.
 *
 * Ownership: everything that is passed is copied.
 */
#ifndef HIRELOCK_FENCE_H
#define HIRELOCK_FENCE_H

#include <hirelock/fenced_lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is written: any bytes as a string of Redis, in place of whatever the key held. Times are in
 * milliseconds, at most 10^11. */
typedef struct hl_write {
    size_t size;
    /* 1 to 512 bytes, as they are: the client's name_prefix is for locks. Not the lock's own key,
     * nor one that begins like hirelock's keys beside locks (hirelock_queue: ...). */
    const void *key;
    size_t key_length; /* of a key that holds any bytes; 0: it is a C string */
    const void *value; /* NULL: an empty one */
    size_t
        value_length;  /* at most 16 MiB; it shares a connection with renewals, so keep it small */
    uint64_t token;    /* of the hold that writes (hl_lock_token), at most 2^63 - 1 */
    int64_t expire_ms; /* 0: the value stays until it is written again; else it expires */
    /* 0: the token is remembered for ever, in the key "hirelock_fence:{key}". Else for so long
     * after the last write with one: longer than any writer may come late. It is not forgotten
     * earlier than another writer asked for. */
    int64_t remember_ms;
} hl_write;

#define HL_WRITE_INIT                                                                              \
    {                                                                                              \
        sizeof(hl_write), NULL, 0, NULL, 0, 0, 0, 0                                                \
    }

/*
 * Writes, unless a larger token has written this key before. write->token is needed. In a cluster
 * key and fence share a slot, so braces are as in a lock's name. A request without an answer is
 * repeated for up to outage_timeout_ms; a copy that arrives late is judged like the first.
 *
 * Threads: any.
 * Returns: 0: written. HL_EFENCED: a larger token was there before, nothing was written; err says
 * which. HL_EUNKNOWN: it was sent, and no answer came; it may have been written. HL_EINVAL;
 * HL_ENOMEM. HL_ECONN, HL_EPROTO: no usable server, nothing was sent. HL_ESERVER, HL_EDENIED: the
 * server refused, nothing was written (OOM: after outage_timeout_ms; WRONGTYPE, when the fence's
 * key is something else, and NOPERM at once). HL_ECANCELED (closed meanwhile, nothing was sent);
 * HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_fenced_set(hl_client *client, const hl_write *write, hl_error *err);

/*
 * The largest token that is remembered for a key (key_length 0: a C string); 0 when there is none.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER (WRONGTYPE: the fence's key is
 * something else), HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_fenced_last(hl_client *client, const void *key, size_t key_length,
                                        uint64_t *ret_token, hl_error *err);

/*
 * Writes, and releases the lock, in one step of the server: only if this owner (NULL: the calling
 * thread) still holds it, with its last level. Whoever holds the lock next finds the value. Waits
 * for the answer at most request_timeout_ms, with a handle of any options, and always asks the
 * server: the lock does not pass or linger. Waiters are served as by hl_lock_release. A hold of a
 * fenced lock writes with its token (write->token is 0), and so does who gives one: then the fence
 * is judged and raised as by hl_fenced_set. In a cluster lock and key share a slot.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: written and released. HL_ELOST: the hold had ended before; nothing was written.
 * HL_EFENCED: released, but a larger token was there before; nothing was written. HL_EUNKNOWN: no
 * answer in time: it may have been written, or may still be until the lease is over, but not once
 * another owner has the lock; it is no longer held for this process. HL_ESERVER, HL_EDENIED with
 * "set 'key': ..." in err: released, but the server refused the value; nothing was written; else as
 * hl_lock_release. HL_ENOTOWNER: this owner holds nothing; nothing was changed. HL_EINVAL: bad
 * arguments, or not the last level: nothing was changed. HL_ENOTSUP: a lock of another kind than
 * hl_lock_new, hl_fenced_lock_new and hl_spin_lock_new make. HL_ENOMEM: nothing was sent, still
 * held. HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_lock_set_and_release(hl_lock *lock, hl_owner *owner, const hl_write *write,
                                   hl_error *err);

/* The completion of hl_fenced_last_async; err is filled when code is negative. */
typedef void (*hl_token_cb)(int code, uint64_t token, const hl_error *err, void *arg);

/*
 * hl_fenced_set without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_fenced_set. Negative: it never runs:
 * HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_fenced_set_async(hl_client *client, const hl_write *write,
                                             hl_done_cb done, void *arg);

/*
 * hl_fenced_last without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_fenced_last. Negative: it never runs:
 * HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_fenced_last_async(hl_client *client, const void *key, size_t key_length,
                                              hl_token_cb done, void *arg);

/*
 * hl_lock_set_and_release without blocking; owner must not be NULL.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_set_and_release. Negative: it
 * never runs: HL_EINVAL, HL_ENOTSUP, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_set_and_release_async(hl_lock *lock, hl_owner *owner,
                                                       const hl_write *write, hl_done_cb done,
                                                       void *arg);

#ifdef __cplusplus
}
#endif
#endif
