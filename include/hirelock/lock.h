/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The reentrant lock: at most one owner, among all threads of all processes and Java programs that
 * use the same name on the same Redis, holds it at a time. Wire-compatible with Redisson's RLock.
 *
 * The other kinds of locks (fair_lock.h, rw_lock.h, fenced_lock.h, spin_lock.h, multi_lock.h) are
 * hl_locks too, made by calls of their own; all that is declared here works on them.
 *
 * Guarantees, while the server keeps its data and its clock is steady: at any instant at most one
 * owner has the key, and hl_lock_is_held() never says yes outside that owner's time on the server.
 * A dead holder blocks others for at most its remaining lease and one poll period; a lost wake-up
 * costs at most one poll period.
 *
 * Does not guarantee: exclusion across an asynchronous failover, loss of the server's data, a
 * stranger's DEL, or a stepped server clock. A holder that is paused longer than its lease learns
 * of it only when it runs again.
 *
 * Holds. The first acquire of an owner begins a hold; further acquires by the same owner nest, each
 * wants its own release, and the last release ends the hold. A hold without a lease time is renewed
 * by the watchdog until it is released; it stays so if any level was taken without a lease time,
 * and a nested acquire never shortens the lease.
 *
 * Owners. By default the calling thread is the owner. An explicit hl_owner stands for anything
 * else, such as a connection or a request, and is used by one flow at a time.
 *
 * Ownership: freeing a handle does not release what is held through it. Handles may be freed before
 * or after the client is closed. Several handles of one name are the same lock.
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

/* What one reply of the server said about a lock. */
typedef struct hl_lock_info {
    size_t size;
    bool locked;
    bool mine;             /* held by this client, whichever of its owners it is */
    uint32_t hold_count;   /* 0 while a lock rests after a release before min_hold_ms */
    int64_t lease_left_ms; /* -1: the key has no expiry (a stranger's PERSIST) */
    char owner[64];        /* "<uuid>:<number>", shortened when a stranger wrote a longer one */
    /* What the holder tells of itself, if its client and this one have HL_CLIENT_TAGS and it has
     * held for a moment (20 ms); else empty, and 0. */
    char host[64];
    char thread[16]; /* its name, of the one that acquired; it may have none */
    int64_t pid;
    int64_t held_ms; /* for how long */
} hl_lock_info;

/* clang-format off */
#define HL_LOCK_INFO_INIT                                                                          \
    { sizeof(hl_lock_info), false, false, 0, 0, "", "", "", 0, 0 }
/* clang-format on */

enum {
    /* hl_lock_release returns when the request is on its way, without waiting for the answer: one
     * round trip for acquire and release, not two. A release that fails is told by
     * HL_EVENT_RELEASE_FAILED. */
    HL_LOCK_POSTED_RELEASE = 1,
    /* An acquire by the owner that holds already is HL_EDEADLK, and changes nothing; without it
     * acquires nest. */
    HL_LOCK_NON_REENTRANT = 2,
    /* Of a read-write lock (rw_lock.h): while a writer waits, new readers stay away. */
    HL_LOCK_PREFER_WRITERS = 4
};

/* What a handle may be asked to do differently; zero is the default. */
typedef struct hl_lock_options {
    size_t size;
    unsigned flags;     /* HL_LOCK_... */
    size_t name_length; /* of a name that holds any bytes; 0: it is a C string */
    /* After the last release through this handle the lock is kept for so long, at most 1,000, for
     * the next owner of this client, who then needs no request; at once let go when another client
     * asks for it, and within linger_ms for one that cannot say so (Redisson). 0: not kept. It is
     * for short holds that follow each other: kept is what was acquired through such a handle
     * without a lease time, if the server has said within the last 20 ms that nobody else waits; a
     * longer hold is released as usual. Holds without a lease time then have one of at most 5 s: so
     * long the lock stays when the process ends without hl_client_close. */
    int64_t linger_ms;
} hl_lock_options;

#define HL_LOCK_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(hl_lock_options), 0, 0, 0                                                           \
    }

/* Times are in milliseconds, at most 10^11. */
typedef struct hl_acquire_options {
    size_t size;
    /* HL_NO_WAIT (0), HL_WAIT_FOREVER (-1), or how long to wait. A call without waiting waits for
     * no holder; for a server that is out of reach it waits for outage_timeout_ms, as every call.
     */
    int64_t wait_ms;
    /* 0: renewed by the watchdog until released; else at least 10: the hold ends after so long. */
    int64_t lease_ms;
    /* The watchdog's leash: renewal stops, and the hold is lost, after so long. 0: none. */
    int64_t max_hold_ms;
    /* An earlier release, be it by a call, the close or the thread's end, leaves the key until this
     * age, so that a job whose hosts' clocks differ runs once. 0: none. */
    int64_t min_hold_ms;
    /* NULL: the calling thread. The async calls need one. */
    hl_owner *owner;
    /* NULL: none. Must live until the call returned or its completion ran. */
    hl_cancel *cancel;
    /* This hold's events, before the client's on_event. A callback may wait for the release, so the
     * release does not wait for callbacks: one that was about to be told in another thread may
     * begin, and run, after a release that returned 0. So event_arg must live until the completion
     * of hl_lock_release_async said 0; or until a release returned 0 inside a callback, or in the
     * thread that dispatches; or until hl_client_close has returned. HL_EVENT_LOST may come after a
     * release that said HL_ELOST. */
    hl_event_cb on_event;
    void *event_arg;
    /* Who holds it, written when the answer is HL_EBUSY or HL_ETIMEDOUT. */
    hl_lock_info *ret_busy;
    /* Of a fenced lock: the hold's fencing token, written when it is held; of an async call just
     * before its completion. A nested acquire writes that of the hold. */
    uint64_t *ret_token;
} hl_acquire_options;

/* clang-format off */
#define HL_ACQUIRE_OPTIONS_INIT                                                                    \
    { sizeof(hl_acquire_options), 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }
/* clang-format on */

/*
 * Makes a handle of the lock `name`, a C string of 1 to 512 bytes. No I/O. Redisson's channel for a
 * name is derived with braces, so a name whose braces would put key and channel in different
 * cluster slots is refused.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL, empty, longer than 512 bytes with the client's prefix, braces such
 * as "a{", "{}", "a}b{"; or it begins with "hirelock_queue:", "hirelock_fair:",
 * "hirelock_fence:", "hirelock_holder:" or "hirelock_rw_writer:"); HL_ENOMEM; HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_new(hl_client *client, const char *name, hl_lock **ret_lock,
                                     hl_error *err);

/*
 * The same for a name of any bytes, NUL included.
 *
 * Threads: any.
 * Returns: as hl_lock_new.
 */
HL_API HL_MUST_CHECK int hl_lock_new_bytes(hl_client *client, const void *name, size_t length,
                                           hl_lock **ret_lock, hl_error *err);

/*
 * The same with options, NULL for none. Handles of one name share one lock: what is held through
 * one of them may be released through another, and how it is released is the latter's business.
 *
 * Threads: any.
 * Returns: as hl_lock_new; HL_EINVAL too for options that are out of range or unknown.
 */
HL_API HL_MUST_CHECK int hl_lock_new_with(hl_client *client, const void *name,
                                          const hl_lock_options *options, hl_lock **ret_lock,
                                          hl_error *err);

/*
 * Frees a handle; what is held stays held. NULL is fine.
 *
 * Threads: any, when no call on this handle is running; the completion of an async call may free it
 * although that call has not returned yet.
 * Returns: nothing.
 */
HL_API void hl_lock_free(hl_lock *lock);

/*
 * Acquires the lock for the calling thread, waiting without end; renewed by the watchdog until
 * released.
 *
 * Threads: any.
 * Returns: as hl_lock_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_lock_acquire(hl_lock *lock, hl_error *err);

/*
 * Acquires the lock for the calling thread if nobody else holds it; never waits for a holder. One
 * that lingers with another client (hl_lock_options) is busy.
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
 * Acquires the lock with all that options say; NULL is the defaults (no waiting). Waiters of one
 * process are served in the order of their arrival; they are woken by the release and ask again
 * every poll_ms. A wait goes on across reconnects but never longer than its wait time; without
 * waiting, not longer than outage_timeout_ms.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: held, and hl_lock_is_held() was true just before the return. HL_EBUSY: held by
 * another (no waiting). HL_ETIMEDOUT: the wait time is over. HL_ECANCELED: options->cancel was
 * fired, or the client was closed meanwhile. HL_ELOST: a nested call on a hold that is lost; it is
 * not held. HL_EDEADLK: it would wait for its own owner (HL_LOCK_NON_REENTRANT, rw_lock.h).
 * HL_EINVAL; HL_ENOMEM. HL_ECONN, HL_EPROTO: no usable server for the wait time or for
 * outage_timeout_ms (also no answer within a very short wait time). HL_ESERVER: a refusal, at once
 * when it cannot pass (WRONGTYPE) and after outage_timeout_ms when it may (LOADING, OOM, READONLY).
 * HL_EDENIED: at once. HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_lock_acquire_with(hl_lock *lock, const hl_acquire_options *options,
                                              hl_error *err);

/*
 * Releases one level of the calling thread's hold; the last one hands the lock to a waiter: one of
 * this client without a request if the server has just said that nobody else waits, else the first
 * in the queue, else whoever comes. Waits for the answer at most request_timeout_ms; the release is
 * then repeated behind until the server answers or the lease is over. With HL_LOCK_POSTED_RELEASE
 * it does not wait, and 0 means that the release is on its way.
 *
 * Threads: the thread that holds it.
 * Returns: 0: released. HL_ENOTOWNER: this thread holds nothing; nothing was changed. HL_ELOST: the
 * hold had ended before (others may have been inside); the level is gone all the same. HL_EUNKNOWN:
 * no answer in time; it is no longer held for this process. HL_EINVAL; HL_ENOMEM (nothing was sent,
 * still held). HL_ESERVER, HL_EDENIED: the server refused for good, as WRONGTYPE and NOPERM do; the
 * key is left to its lease. What it refuses for now, as READONLY, ends as HL_EUNKNOWN with its
 * text. HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_lock_release(hl_lock *lock, hl_error *err);

/*
 * The same for an explicit owner (NULL: the calling thread).
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: as hl_lock_release.
 */
HL_API int hl_lock_release_as(hl_lock *lock, hl_owner *owner, hl_error *err);

/*
 * Deletes the lock whoever holds it, and wakes waiters; the holder loses it. For operators, not for
 * programs. Waits for a server and its answer for outage_timeout_ms at most.
 *
 * Threads: any.
 * Returns: 0: it was locked and is no more. HL_ENOTOWNER: nobody held it. HL_EUNKNOWN: no answer;
 * HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_lock_force_release(hl_lock *lock, hl_error *err);

/*
 * Does this owner (NULL: the calling thread) hold the lock now? No I/O: looks at the hold's
 * validity, which ends before the lease does on the server.
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
 * Makes an owner that is not a thread.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_owner_new(hl_client *client, hl_owner **ret_owner);

/*
 * Frees an owner; what it holds stays held (and is renewed) until the client is closed. NULL is
 * fine.
 *
 * Threads: any, when no call with this owner is running.
 * Returns: nothing.
 */
HL_API void hl_owner_free(hl_owner *owner);

/*
 * Makes a cancel: a switch that ends waits. It works once; make a new one for the next.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM.
 */
HL_API HL_MUST_CHECK int hl_cancel_new(hl_cancel **ret_cancel);

/*
 * Ends every wait that carries this cancel, now and later, with HL_ECANCELED; what such a wait may
 * have got is released.
 *
 * Threads: any, signal handlers included (async-signal-safe). NULL is fine.
 * Returns: nothing.
 */
HL_API void hl_cancel_fire(hl_cancel *cancel);

/*
 * Frees a cancel that no wait carries any more. NULL is fine.
 *
 * Threads: any.
 * Returns: nothing.
 */
HL_API void hl_cancel_free(hl_cancel *cancel);

/* The completion of an async call; err is NULL when code is 0, else filled, and valid during the
 * call only. */
typedef void (*hl_done_cb)(int code, const hl_error *err, void *arg);
/* The same of a call that counts something; count is 0 when code is negative. */
typedef void (*hl_count_cb)(int code, int64_t count, const hl_error *err, void *arg);
typedef void (*hl_inspect_cb)(int code, const hl_lock_info *info, const hl_error *err, void *arg);

/*
 * hl_lock_acquire_with without blocking; options->owner must be set. ret_busy and ret_token, when
 * given, must live until done ran, and are written just before. The handle and the owner may be
 * freed after the call.
 *
 * Threads: any; one owner by one flow at a time.
 * Returns: 0: done will run exactly once, with a code of hl_lock_acquire_with. Negative: it never
 * runs: HL_EINVAL, HL_ENOMEM, HL_EDEADLK (rw_lock.h), HL_ECLOSED, HL_EFORKED.
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
