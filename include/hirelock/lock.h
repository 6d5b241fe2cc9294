/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The lock: at most one owner, among all threads of all processes and Java programs that use the
 * same name on the same Redis, holds it at a time. Wire-compatible with Redisson's locks.
 *
 * There are several kinds of locks (hl_lock_kind), and all calls work on each of them. A multi-lock
 * (multi_lock.h), which is several locks taken as one, is an hl_lock too.
 *
 * Guarantees, while the server keeps its data and its clock is steady: at any instant at most one
 * owner has the key, and hl_lock_is_held() never says yes outside that owner's time on the server.
 * A dead holder blocks others for at most its remaining lease and one poll period; a lost wake-up
 * costs at most one poll period.
 *
 * Does not guarantee: exclusion across an asynchronous failover or loss of the server's data,
 * without the client's failover_grace_ms; nor across another program's DEL, or a step of the
 * server's clock. A holder that is paused for longer than its lease learns of the loss only when it
 * runs again.
 *
 * Holds. The first acquire of an owner begins a hold; further acquires by the same owner nest, each
 * needs its own release, and the last release ends the hold. The watchdog renews a hold until its
 * release if any of its levels was acquired without a lease time. A nested acquire never shortens
 * the lease.
 *
 * Owners. By default the calling thread is the owner. An explicit hl_owner stands for anything
 * else, such as a connection or a request, and is used by one flow at a time. An acquire inside a
 * callback must name an hl_owner.
 *
 * Ownership: freeing a handle releases no hold. Handles may be freed before or after the client is
 * closed. Several handles of one name are the same lock.
 */
#ifndef HIRELOCK_LOCK_H
#define HIRELOCK_LOCK_H

#include <hirelock/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_lock hl_lock;
typedef struct hl_owner hl_owner;
typedef struct hl_cancel hl_cancel;

#define HL_NO_WAIT INT64_C(0)
#define HL_WAIT_FOREVER INT64_C(-1)

/* How long a call waits. Without options (NULL), and with those of an _INIT, a call that waits does
 * so without end. Times are in milliseconds, at most 10^11. */
typedef struct hl_wait_options {
    size_t size;
    /* HL_NO_WAIT (0), HL_WAIT_FOREVER (-1, the _INIT), or the longest wait. A call with HL_NO_WAIT
     * takes the first answer: it waits neither for a holder nor for a server out of reach. */
    int64_t wait_ms;
    /* NULL: none. Must live until the call has returned or its completion has run. */
    hl_cancel *cancel;
} hl_wait_options;

/* clang-format off */
#define HL_WAIT_OPTIONS_INIT { sizeof(hl_wait_options), HL_WAIT_FOREVER, NULL }
/* clang-format on */

/* The kind of a lock. Each comment begins with the name of Redisson's class. */
typedef enum hl_lock_kind {
    /* RLock. The owner may acquire it again; each acquire needs its own release. Waiters of one
     * process are served in the order of their arrival. */
    HL_LOCK_REENTRANT = 0,
    /* RFairLock. All owners of all processes and Java programs get it in the order in which the
     * server saw their first requests. An acquire that does not wait does not queue. Each waiting
     * owner costs a request and a subscription. Do not use one name for a fair lock and for another
     * kind. */
    HL_LOCK_FAIR = 1,
    /* RFencedLock. Each hold has a fencing token (fence.h). It is the same lock as the reentrant
     * lock of that name; holds that are acquired as reentrant have no token. */
    HL_LOCK_FENCED = 2,
    /* RSpinLock. Its waiters ask again after a pause instead of being woken, and its release sends
     * no message: for very many names that are held for a moment. Waiters are served in no order.
     * It is the same lock as the reentrant lock of that name. */
    HL_LOCK_SPIN = 3,
    /* The read lock of RReadWriteLock. Any number of owners read at a time, and no owner writes
     * meanwhile. Each hold has a lease of its own. hl_lock_inspect names one of the readers, a
     * reader of this client if there is one. hl_lock_force_release takes the lock from all
     * readers. */
    HL_LOCK_READ = 4,
    /* The write lock of RReadWriteLock. One owner writes, and may read as well; if it releases the
     * write lock first, it goes on as a reader. An acquire by an owner that only reads returns
     * HL_EDEADLK. */
    HL_LOCK_WRITE = 5
} hl_lock_kind;

enum {
    /* hl_lock_release returns when the request is on its way, without waiting for the answer: one
     * round trip for acquire and release, not two. HL_EVENT_RELEASE_FAILED reports a release that
     * failed. */
    HL_LOCK_ASYNC_RELEASE = 1,
    /* An acquire by the owner that already holds the lock returns HL_EDEADLK and changes nothing;
     * without this flag acquires nest. */
    HL_LOCK_NON_REENTRANT = 2,
    /* HL_LOCK_WRITE only: while this writer waits, new readers of this library wait too. Without
     * this flag, new readers are admitted as long as any owner reads. */
    HL_LOCK_PREFER_WRITERS = 4,
    /* HL_LOCK_SPIN only: its waiters subscribe too, and so hear the releases of other kinds. */
    HL_LOCK_SUBSCRIBE = 8,
    /* With min_replicas: as HL_CLIENT_KEEP_UNCONFIRMED, for the holds of this handle. */
    HL_LOCK_KEEP_UNCONFIRMED = 16
};

/* The kind and name of a lock, and options of its handle; zero is the default. */
typedef struct hl_lock_options {
    size_t size;
    hl_lock_kind kind;
    unsigned flags; /* HL_LOCK_..., joined by | */
    /* 1 to 512 bytes with the client's name_prefix, copied. */
    const void *name;
    size_t name_length; /* of a name that holds any bytes; 0: it is a C string */
    /* HL_LOCK_REENTRANT and HL_LOCK_FENCED only. For this long, at most 1,000, the client keeps the
     * lock after the last release through this handle; its next owner then needs no request. The
     * client gives the lock back at once when another client asks for it, and within retain_ms when
     * a Redisson client does. 0: not retained. Use it for short holds that follow each other: only
     * a hold without a lease time is retained, and only if the server has reported within the last
     * 20 ms that no other client waits. Holds without a lease time then have a lease of at most
     * 5,000: if the process ends without hl_client_close, the key stays for that time. */
    int64_t retain_ms;
    /* HL_LOCK_SPIN only: the pause before a waiter asks again, doubled each time up to
     * backoff_max_ms. 0: 1; at most 60,000. */
    int64_t backoff_min_ms;
    /* 0: 128, or backoff_min_ms if that is more; at most 60,000. */
    int64_t backoff_max_ms;
    /* 0: the client's. How many replicas must have the lock before an acquire returns, and each
     * renewal: up to 1,000, HL_REPLICAS_MAJORITY or HL_REPLICAS_NONE. The client needs a
     * min_replicas of its own, which may be HL_REPLICAS_NONE. Give all handles of a name the same.
     */
    int min_replicas;
} hl_lock_options;

/* clang-format off */
#define HL_LOCK_OPTIONS_INIT                                                                       \
    { sizeof(hl_lock_options), HL_LOCK_REENTRANT, 0, NULL, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Read by the call, and never written: a program may share one constant. Times are in milliseconds,
 * at most 10^11. max_hold_ms, min_hold_ms, on_event and event_arg belong to the acquire that begins
 * the hold; a nested acquire ignores its own. */
typedef struct hl_acquire_options {
    size_t size;
    int64_t wait_ms; /* as in hl_wait_options; HL_WAIT_FOREVER in the _INIT */
    /* 0: renewed by the watchdog until released; else at least 10: the hold ends after so long. */
    int64_t lease_ms;
    /* The longest hold: after this time it is lost, and no longer renewed. 0: no limit. */
    int64_t max_hold_ms;
    /* The shortest life of the key: a release before this age (by a call, the close, or the
     * thread's exit) leaves the key until then, so that a job that several hosts start by differing
     * clocks runs once. 0: none. */
    int64_t min_hold_ms;
    /* NULL: the calling thread. The async calls need an owner. */
    hl_owner *owner;
    /* NULL: none. Must live until the call has returned or its completion has run. */
    hl_cancel *cancel;
    /* Receives the events of this hold, before the client's on_event does. A release does not wait
     * for callbacks, since a callback may wait for the release: a callback that another thread is
     * about to run may still begin after a release has returned 0. So event_arg must live until the
     * completion of hl_lock_release_async has reported 0; or until a release has returned 0 inside
     * a callback, or in the thread that dispatches; or until hl_client_close has returned.
     * HL_EVENT_LOST may come after a release that returned HL_ELOST. */
    hl_event_cb on_event;
    void *event_arg;
} hl_acquire_options;

/* clang-format off */
#define HL_ACQUIRE_OPTIONS_INIT                                                                    \
    { sizeof(hl_acquire_options), HL_WAIT_FOREVER, 0, 0, 0, NULL, NULL, NULL, NULL }
/* clang-format on */

/*
 * Makes a handle of the reentrant lock `name`, a C string. No I/O.
 *
 * Threads: any.
 * Returns: as hl_lock_new_with.
 */
HL_API HL_MUST_CHECK int hl_lock_new(hl_client *client, const char *name, hl_lock **ret_lock,
                                     hl_error *err);

/*
 * Makes a handle of the lock that the options describe; they need a name. No I/O. Handles of one
 * name and kind share one lock: a hold that was acquired through one handle may be released through
 * another, with the options of the latter.
 *
 * Redisson's channel for a name is derived with braces, so a name whose braces would put key and
 * channel in different cluster slots is refused. A fair lock's name is not wholly in braces
 * ("{x}"): it would share the keys of "x".
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL; options out of range, unknown, or not for this kind; a name that is
 * empty, longer than 512 bytes with the client's prefix, with braces such as "a{", "{}", "a}b{", or
 * that begins with the prefix of a key beside a lock: "hirelock_queue:", "hirelock_fair:",
 * "hirelock_fence:", "hirelock_holder:", "hirelock_note:", "hirelock_rw_writer:",
 * "hirelock_waiter:", "redisson_lock_token:", "redisson_lock_queue:" or "redisson_lock_timeout:");
 * HL_ENOMEM; HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_new_with(hl_client *client, const hl_lock_options *options,
                                          hl_lock **ret_lock, hl_error *err);

/*
 * Frees a handle; its holds go on. NULL is fine.
 *
 * Threads: any, when no call on this handle is running, but for an async call whose completion
 * frees it.
 * Returns: nothing.
 */
HL_API void hl_lock_free(hl_lock *lock);

/*
 * Acquires the lock for the calling thread, waiting without end; the watchdog renews the hold until
 * its release.
 *
 * Threads: any.
 * Returns: as hl_lock_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_lock_acquire(hl_lock *lock, hl_error *err);

/*
 * Acquires the lock for the calling thread if no other owner holds it; never waits for a holder. A
 * lock that another client retains (hl_lock_options) is busy.
 *
 * **It does not wait for a server either**: when the last attempt to connect failed, the call fails
 * at once with that reason, and it fails when the server refuses. It takes longer than a round trip
 * only while an attempt to connect is under way (connect_timeout_ms), or while a connected server
 * is silent (request_timeout_ms, and then one attempt to connect).
 *
 * Threads: any.
 * Returns: as hl_lock_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_lock_try_acquire(hl_lock *lock, hl_error *err);

/*
 * Acquires the lock for the calling thread, waiting at most wait_ms (HL_NO_WAIT, HL_WAIT_FOREVER,
 * or milliseconds).
 *
 * Threads: any.
 * Returns: as hl_lock_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_lock_acquire_for(hl_lock *lock, int64_t wait_ms, hl_error *err);

/*
 * Acquires the lock as the options say; NULL means the defaults (as hl_lock_acquire). Waiters of
 * one process are served in the order of their arrival; a release wakes them, and they ask again
 * every poll_ms. A wait goes on across reconnects but never longer than its wait time. A call
 * without waiting fails at once while the server is out of reach (hl_lock_try_acquire).
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: held, and hl_lock_is_held() was true just before the return. HL_EBUSY: another owner
 * holds it (no waiting). HL_ETIMEDOUT: the wait time is over. HL_ECANCELED: options->cancel was
 * fired, or the client was closed meanwhile. HL_ELOST: a nested call on a hold that is lost; the
 * owner does not hold the lock. HL_EDEADLK: the call would wait for its own owner
 * (HL_LOCK_NON_REENTRANT, HL_LOCK_WRITE); or its thread waits in a circle with other threads of
 * this process, each for a lock that the next one holds, without a lease time or max_hold: of a
 * circle one call is refused, and err names the locks (HL_CLIENT_NO_DEADLOCK_CHECK). HL_EINVAL;
 * HL_ENOMEM. HL_ECONN, HL_EPROTO: no usable server when the wait time is over, or for
 * outage_timeout_ms, or (no waiting) at the last attempt to connect. HL_ESERVER: a refusal, at once
 * when it cannot pass (WRONGTYPE) or the call does not wait, and when the wait time or
 * outage_timeout_ms is over when it may (LOADING, OOM, READONLY). HL_EDENIED: at once. HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_acquire_with(hl_lock *lock, const hl_acquire_options *options,
                                              hl_error *err);

/*
 * Releases one level of the calling thread's hold. The last level hands the lock over: without a
 * request to a waiter of this client, if the server has just reported that no other client waits;
 * else to the first client in the queue; else the lock is free. The call waits for the answer at
 * most request_timeout_ms; then the client repeats the release in the background until the server
 * answers or the lease is over. With HL_LOCK_ASYNC_RELEASE the call does not wait, and 0 means that
 * the release is on its way.
 *
 * Threads: the thread that holds it.
 * Returns: 0: released. HL_ENOTOWNER: this thread holds nothing; nothing was changed. HL_ELOST: the
 * hold had ended before (others may have been inside); the level is gone all the same. HL_EINDOUBT:
 * no answer in time; or a second copy of the release found no hold, so either the first copy
 * released it or the hold had ended before. For this process the hold is over. HL_EINVAL; HL_ENOMEM
 * (nothing was sent, still held). HL_ESERVER, HL_EDENIED: the server refused for good, as with
 * WRONGTYPE and NOPERM; the key stays until its lease is over. After a refusal that may pass, as
 * READONLY, the result is HL_EINDOUBT with the server's text. HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_lock_release(hl_lock *lock, hl_error *err);

/*
 * hl_lock_release for an explicit owner (NULL: the calling thread).
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: as hl_lock_release.
 */
HL_API int hl_lock_release_as(hl_lock *lock, hl_owner *owner, hl_error *err);

/*
 * Extends or shortens the hold of this owner (NULL: the calling thread), with all its levels: it
 * ends lease_ms from now, later or sooner than before, and is not renewed any more. With 0 the
 * watchdog renews it from now on. max_hold_ms and min_hold_ms of the hold stay as they are.
 *
 * The client repeats the request until the server answers, outage_timeout_ms is over, or the hold
 * ends. A later end is valid once the server has answered. For a sooner end this client releases
 * the lock at that time; the lease in Redis is not shortened, so other clients wait for it if the
 * process dies.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: the hold has its new end. HL_ENOTOWNER: this owner holds nothing. HL_ELOST: the hold
 * has ended before its release. After any other code the hold ends as before. HL_EINDOUBT: no
 * answer; the key may stand for the new lease. HL_EINVAL: lease_ms is neither 0 nor from 10 to
 * 10^11, or another call of the owner is under way. HL_ENOTSUP: a multi-lock; update its members by
 * their own handles. HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_update_lease(hl_lock *lock, hl_owner *owner, int64_t lease_ms,
                                              hl_error *err);

/*
 * Deletes the lock, whichever owner holds it, and wakes waiters; the holder loses it, and its
 * client is told: docs/semantics.md says when it notices. For operators, not for programs. A key
 * that is no lock of this library's or Redisson's stays: HL_ESERVER, and err says what it is.
 * Waits for a server and its answer for outage_timeout_ms at most. When it returns 0, a hold that
 * this client acquired before the call is lost ("gone").
 *
 * Threads: any.
 * Returns: 0: it was locked, and now is not. HL_ENOENT: it was not locked. HL_EINDOUBT: no answer;
 * HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_lock_force_release(hl_lock *lock, hl_error *err);

/*
 * True if this owner (NULL: the calling thread) holds the lock now. No I/O: the answer is the
 * hold's validity, which ends before the lease does on the server.
 *
 * Threads: any.
 * Returns: true only while the hold is valid; false for NULL, closed and forked handles.
 */
HL_API bool hl_lock_is_held(const hl_lock *lock, const hl_owner *owner);

/*
 * How long the hold of this owner (NULL: the calling thread) is still valid if nothing renews it.
 * No I/O.
 *
 * Threads: any.
 * Returns: milliseconds, rounded down; 0 when not held.
 */
HL_API int64_t hl_lock_validity_ms(const hl_lock *lock, const hl_owner *owner);

/*
 * How many levels this owner (NULL: the calling thread) holds. No I/O.
 *
 * Threads: any.
 * Returns: the hold count; 0 when not held.
 */
HL_API uint32_t hl_lock_hold_count(const hl_lock *lock, const hl_owner *owner);

/*
 * Asks the server who holds the lock, and for how long; set info->size to sizeof(hl_lock_info)
 * before (HL_LOCK_INFO_INIT).
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms),
 * HL_EPROTO, HL_ESERVER (WRONGTYPE: the key is something else), HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err);

/*
 * The lock's name as it stands in Redis, with the client's prefix.
 *
 * Threads: any.
 * Returns: a NUL-terminated string (the name itself may contain NULs) that lives as long as the
 * handle; NULL for NULL.
 */
HL_API const char *hl_lock_name(const hl_lock *lock, size_t *ret_length);

/*
 * Makes an explicit owner, for use in place of the calling thread.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_owner_new(hl_client *client, hl_owner **ret_owner);

/*
 * Frees an owner; its holds go on (and are renewed) until the client is closed. NULL is fine.
 *
 * Threads: any, when no call with this owner is running.
 * Returns: nothing.
 */
HL_API void hl_owner_free(hl_owner *owner);

/*
 * Makes a cancel, which ends the waits that carry it. It works once: make a new cancel for the next
 * wait.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM.
 */
HL_API HL_MUST_CHECK int hl_cancel_new(hl_cancel **ret_cancel);

/*
 * Ends every wait that carries this cancel, now and later, with HL_ECANCELED; the client releases a
 * lock that such a wait may already have acquired.
 *
 * Threads: any, signal handlers included (async-signal-safe). NULL is fine.
 * Returns: nothing.
 */
HL_API void hl_cancel_fire(hl_cancel *cancel);

/*
 * Frees a cancel. NULL is fine.
 *
 * Threads: any, when no wait carries the cancel any more, and no thread or signal handler is inside
 * hl_cancel_fire() with it, or will call that.
 * Returns: nothing.
 */
HL_API void hl_cancel_free(hl_cancel *cancel);

/* As hl_done_cb (client.h), with the number that the call returns; 0 when code is negative. */
typedef void (*hl_count_cb)(int code, int64_t count, const hl_error *err, void *arg);
typedef void (*hl_inspect_cb)(int code, const hl_lock_info *info, const hl_error *err, void *arg);

/*
 * hl_lock_acquire_with without blocking; options->owner must be set.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_acquire_with. Negative: it never
 * runs: HL_EINVAL, HL_ENOMEM, HL_EDEADLK (HL_LOCK_WRITE), HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_acquire_async(hl_lock *lock, const hl_acquire_options *options,
                                               hl_done_cb done, void *arg);

/*
 * hl_lock_release_as without blocking; owner must not be NULL.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_release. Negative: it never runs:
 * HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_release_async(hl_lock *lock, hl_owner *owner, hl_done_cb done,
                                               void *arg);

/*
 * hl_lock_update_lease without blocking; owner must not be NULL.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_update_lease. Negative: it never
 * runs: HL_EINVAL, HL_ENOTOWNER, HL_ELOST, HL_ENOTSUP, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_update_lease_async(hl_lock *lock, hl_owner *owner,
                                                    int64_t lease_ms, hl_done_cb done, void *arg);

/*
 * hl_lock_force_release without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_lock_force_release. Negative: it never
 * runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_force_release_async(hl_lock *lock, hl_done_cb done, void *arg);

/*
 * hl_lock_inspect without blocking; info is NULL when code is negative.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_lock_inspect. Negative: it never runs:
 * HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_inspect_async(hl_lock *lock, hl_inspect_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
