/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The permit semaphore: a number of permits that all threads of all processes and Java programs
 * with the same name on the same Redis share; each permit that is out has an id and a lease.
 * Wire-compatible with Redisson's RPermitExpirableSemaphore.
 *
 * Guarantees, while the server keeps its data and its clock is steady: never more permits are out
 * than the semaphore has, and hl_permits_is_held() never says yes outside the permit's time on the
 * server. The watchdog renews a permit without a lease time until its release, so the permits of a
 * process that died come back when their leases are over. A permit with a lease time comes back by
 * itself: permits with a lease of a minute that are never released make a rate limit of so many a
 * minute.
 *
 * Does not guarantee: an order among waiters; nor what hl_lock does not guarantee (lock.h).
 *
 * Permits. Any thread of any process may release a permit by its id, 32 hex digits, which Redisson
 * shows and takes too. The permits of this client are holds: they are renewed, reported as lost,
 * and abandoned when their owner's thread ends. The owner (lock.h) is the thread that acquired, or
 * options->owner; one owner may have any number of permits.
 *
 * hl_permits_try_set_total(), hl_permits_set_total() or hl_permits_add(), or the same call in Java,
 * creates the semaphore; before that no permit is available. Without a time to live it stays in
 * Redis until it is deleted. Setting, adding and deleting wait for a server and its answer for
 * outage_timeout_ms at most.
 *
 * Ownership: freeing a handle does not release its permits. Handles may be freed before or after
 * the client is closed.
 */
#ifndef HIRELOCK_PERMITS_H
#define HIRELOCK_PERMITS_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_permits hl_permits;

/* 32 lower-case hex digits, as Redisson shows them, and a NUL. */
typedef struct hl_permit {
    char id[33];
} hl_permit;

enum {
    HL_PERMITS_MAX_PER_CALL = 1000 /* the most permits of one acquire or release */
};

/* The most permits that a semaphore may have: Redisson counts them in 32 bits. */
#define HL_PERMITS_MAX INT64_C(2147483647)

/*
 * Makes a handle of the semaphore `name`, a C string. No I/O; creates nothing in Redis.
 *
 * Threads: any.
 * Returns: as hl_lock_new; HL_EINVAL also for a name wholly in braces ("{x}"), which would share
 * the keys of "x".
 */
HL_API HL_MUST_CHECK int hl_permits_new(hl_client *client, const char *name,
                                        hl_permits **ret_semaphore, hl_error *err);

/*
 * Frees a handle; permits stay out. NULL is fine.
 *
 * Threads: any, when no call on this handle is running.
 * Returns: nothing.
 */
HL_API void hl_permits_free(hl_permits *semaphore);

/*
 * The semaphore's name as it stands in Redis, with the client's prefix.
 *
 * Threads: any.
 * Returns: a NUL-terminated string that lives as long as the handle; NULL for NULL. *ret_length, if
 * given, is its length.
 */
HL_API const char *hl_permits_name(const hl_permits *semaphore, size_t *ret_length);

/*
 * Acquires a permit, waiting without end; the watchdog renews it until its release.
 *
 * Threads: any.
 * Returns: as hl_permits_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_permits_acquire(hl_permits *semaphore, hl_permit *ret_permit,
                                            hl_error *err);

/*
 * Acquires a permit if one is available; never waits for one.
 *
 * Threads: any.
 * Returns: as hl_permits_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_permits_try_acquire(hl_permits *semaphore, hl_permit *ret_permit,
                                                hl_error *err);

/*
 * Acquires a permit, waiting at most wait_ms (HL_NO_WAIT, HL_WAIT_FOREVER, or milliseconds).
 *
 * Threads: any.
 * Returns: as hl_permits_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_permits_acquire_for(hl_permits *semaphore, int64_t wait_ms,
                                                hl_permit *ret_permit, hl_error *err);

/*
 * Acquires a permit as the options say; NULL means the defaults (as hl_permits_acquire). With a
 * lease_ms the permit is not renewed, and comes back after that time. min_hold_ms must be 0.
 *
 * Threads: any; one owner may have several calls under way.
 * Returns: 0: the permit is held, and was valid just before the return. HL_EBUSY: none is available
 * (no waiting). HL_ETIMEDOUT: the wait time is over. HL_ECANCELED: options->cancel was fired, or
 * the client was closed meanwhile. HL_ELOST: the permit was lost before the call returned: its
 * thread did not run for longer than a lease, or the client was closed. HL_EINVAL; HL_ENOMEM.
 * HL_ECONN, HL_EPROTO: no usable server when the wait time is over, or for outage_timeout_ms, or
 * (no waiting) at the last attempt to connect. HL_ESERVER: a refusal, at once when it cannot pass
 * (WRONGTYPE: the key is something else) or the call does not wait, and after outage_timeout_ms
 * when it may (LOADING, OOM, READONLY). HL_EDENIED: at once. HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_acquire_with(hl_permits *semaphore,
                                                 const hl_acquire_options *options,
                                                 hl_permit *ret_permit, hl_error *err);

/*
 * Acquires `count` permits, 1 to HL_PERMITS_MAX_PER_CALL, all or none. From then on each permit has
 * its own lease and release.
 *
 * Threads: any; one owner may have several calls under way.
 * Returns: as hl_permits_acquire_with; ret_permits has room for `count`.
 */
HL_API HL_MUST_CHECK int hl_permits_acquire_many(hl_permits *semaphore, size_t count,
                                                 const hl_acquire_options *options,
                                                 hl_permit *ret_permits, hl_error *err);

/*
 * Gives a permit back and wakes waiters. A permit of this client is released as a lock is: the call
 * waits at most request_timeout_ms, and the release is then repeated in the background until the
 * server answers or the lease is over. For a permit of another client, known by its id, the call
 * repeats one request until the server answers or outage_timeout_ms is over.
 *
 * Threads: any.
 * Returns: 0: given back. HL_ENOENT: no permit of this id is out; nothing was changed. HL_ELOST: it
 * had expired, or this client had lost it (HL_ENOENT a lease time later, when the client has
 * forgotten it). HL_EINDOUBT: no answer in time, or a second copy of the request found no permit;
 * for a permit of this client the hold is over. HL_EINVAL: NULL, or no id of 32 hex digits.
 * HL_ENOMEM: nothing was sent. HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_permits_release(hl_permits *semaphore, const hl_permit *permit, hl_error *err);

/*
 * Gives `count` permits back, 1 to HL_PERMITS_MAX_PER_CALL, all or none, by one request, and wakes
 * waiters. The permits may be this client's or other clients', each given once. The call repeats
 * the request until the server answers or outage_timeout_ms is over; meanwhile none of the permits
 * counts as held.
 *
 * Threads: any; one call for one permit at a time.
 * Returns: 0: all are given back. HL_EINDOUBT: no answer, or a second copy of the request found
 * none of them; this process holds none of them any more, and the client releases its own in the
 * background, one by one. After any other code no permit is given back, each is held as before, and
 * err names the permit that caused the failure: HL_ENOENT: no permit of its id is out. HL_ELOST: it
 * had expired, or this client had lost it. HL_EINVAL: NULL, a count out of range, no id of 32 hex
 * digits, a permit that is given twice, or another call for it is under way. HL_ENOMEM; HL_ECONN,
 * HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_permits_release_many(hl_permits *semaphore, const hl_permit *permits, size_t count,
                                   hl_error *err);

/*
 * True if this client holds the permit now. No I/O: the answer is the permit's validity, which ends
 * before the lease does on the server.
 *
 * Threads: any.
 * Returns: true only while it is valid; false for permits of others, for NULL, closed and forked
 * handles.
 */
HL_API bool hl_permits_is_held(const hl_permits *semaphore, const hl_permit *permit);

/*
 * How long the permit is still valid for this client if nothing renews it. No I/O.
 *
 * Threads: any.
 * Returns: milliseconds, rounded down; 0 when it is not held.
 */
HL_API int64_t hl_permits_validity_ms(const hl_permits *semaphore, const hl_permit *permit);

/*
 * Sets the end of a permit: lease_ms from now, sooner or later than before. With 0, for a permit of
 * this client only, the watchdog renews the permit from now on. Until the server has answered, and
 * after HL_EINDOUBT, this client treats the earlier of the two ends as the end.
 *
 * Threads: any; one call for one permit at a time.
 * Returns: 0: the permit has its new end. HL_ENOENT: no permit of this id is out. HL_ELOST: it had
 * expired, or this client has lost it. HL_EINDOUBT: no answer. HL_EINVAL: NULL, no id of 32 hex
 * digits, lease_ms neither from 10 to 10^11 nor (of a permit of this client) 0, or another such
 * call is under way; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_update_lease(hl_permits *semaphore, const hl_permit *permit,
                                                 int64_t lease_ms, hl_error *err);

/*
 * Asks the server how long a permit of any client lasts: *ret_ms is -1 for a permit without an end
 * (Redisson's without a lease time).
 *
 * Threads: any.
 * Returns: 0; HL_ENOENT: no permit of this id is out; HL_ELOST: it had expired. HL_EINVAL;
 * HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms), HL_EPROTO, HL_ESERVER,
 * HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_lease_left(hl_permits *semaphore, const hl_permit *permit,
                                               int64_t *ret_ms, hl_error *err);

/*
 * Asks the server how many permits are available; below 0 while more are out than the total, as
 * after hl_permits_set_total() with a smaller number. 0 for a missing semaphore.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms),
 * HL_EPROTO, HL_ESERVER (WRONGTYPE: the key is something else), HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_available(hl_permits *semaphore, int64_t *ret_count,
                                              hl_error *err);

/*
 * Asks the server how many permits are out.
 *
 * Threads: any.
 * Returns: as hl_permits_available.
 */
HL_API HL_MUST_CHECK int hl_permits_acquired(hl_permits *semaphore, int64_t *ret_count,
                                             hl_error *err);

/*
 * Asks the server for the total of permits, available and out.
 *
 * Threads: any.
 * Returns: as hl_permits_available.
 */
HL_API HL_MUST_CHECK int hl_permits_total(hl_permits *semaphore, int64_t *ret_count, hl_error *err);

/*
 * Creates the semaphore with a total of `count` permits, 0 to HL_PERMITS_MAX, if there is none.
 * ttl_ms, at most 10^11: its time to live; 0: for ever. It stands until then, and in any case until
 * a minute after the end of its last permit, which each acquire and renewal prolongs. If it exists
 * with a time to live, that gets at least as long as ttl_ms, so that a call before each use keeps
 * it. (Permits that Redisson acquires or prolongs do not prolong it.)
 *
 * Threads: any.
 * Returns: 0: created. HL_EEXIST: the semaphore exists; its total was not changed. HL_EINDOUBT: no
 * answer; HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_try_set_total(hl_permits *semaphore, int64_t count,
                                                  int64_t ttl_ms, hl_error *err);

/*
 * Sets the total of permits, 0 to HL_PERMITS_MAX, permits that are out included. Permits that are
 * out stay out; if they are more than the new total, none is available until enough have come back.
 * ttl_ms, at most 10^11: its time to live from now on, as of hl_permits_try_set_total; 0: the one
 * that it has, and for ever if it is new.
 *
 * Threads: any.
 * Returns: 0: done. HL_EINDOUBT: no answer; HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER,
 * HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_set_total(hl_permits *semaphore, int64_t count, int64_t ttl_ms,
                                              hl_error *err);

/*
 * Raises the total of permits, or lowers it with a negative number; creates the semaphore if there
 * is none. 0 changes nothing.
 *
 * Threads: any.
 * Returns: 0: done. HL_EINDOUBT: no answer; the request is not repeated, since a second copy would
 * add twice. HL_EINVAL (also: more than HL_PERMITS_MAX would be available); HL_ENOMEM; HL_ECONN,
 * HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_add(hl_permits *semaphore, int64_t more, hl_error *err);

/*
 * Deletes the semaphore and its permits that are out; their holders notice at the next renewal. A
 * waiting call goes on waiting until the semaphore is created again.
 *
 * Threads: any.
 * Returns: 0: deleted. HL_ENOENT: there was none. HL_EINDOUBT: no answer; HL_EINVAL; HL_ENOMEM;
 * HL_ECONN, HL_EPROTO, HL_ESERVER (WRONGTYPE: the key is something else), HL_EDENIED; HL_ECANCELED
 * (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_permits_delete(hl_permits *semaphore, hl_error *err);

/* The completion of an async acquire. `permits` has `count` permits, as many as were requested;
 * when code is negative, it is NULL, and count is 0. It is valid during the call only, as err is.
 */
typedef void (*hl_permit_cb)(int code, const hl_permit *permits, size_t count, const hl_error *err,
                             void *arg);

/*
 * hl_permits_acquire_with without blocking: hl_permits_acquire_many_async of one permit.
 *
 * Threads: any; one owner may have several calls under way.
 * Returns: as hl_permits_acquire_many_async.
 */
HL_API HL_MUST_CHECK int hl_permits_acquire_async(hl_permits *semaphore,
                                                  const hl_acquire_options *options,
                                                  hl_permit_cb done, void *arg);

/*
 * hl_permits_acquire_many without blocking; options->owner must be set. Several permits are not
 * renewed before done runs; if done would run after their lease, the call goes on waiting.
 *
 * Threads: any; one owner may have several calls under way.
 * Returns: 0: done will run exactly once, with a code of hl_permits_acquire_with.
 * Negative: it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_acquire_many_async(hl_permits *semaphore, size_t count,
                                                       const hl_acquire_options *options,
                                                       hl_permit_cb done, void *arg);

/*
 * hl_permits_release without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permits_release. Negative: it
 * never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_release_async(hl_permits *semaphore, const hl_permit *permit,
                                                  hl_done_cb done, void *arg);

/*
 * hl_permits_release_many without blocking; permits are copied.
 *
 * Threads: any; one call for one permit at a time.
 * Returns: 0: done will run exactly once, with a code of hl_permits_release_many.
 * Negative: it never runs, and nothing was changed: HL_EINVAL, HL_ENOENT, HL_ELOST, HL_ENOMEM,
 * HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_release_many_async(hl_permits *semaphore,
                                                       const hl_permit *permits, size_t count,
                                                       hl_done_cb done, void *arg);

/*
 * hl_permits_update_lease without blocking.
 *
 * Threads: any; one call for one permit at a time.
 * Returns: 0: done will run exactly once, with a code of hl_permits_update_lease.
 * Negative: it never runs: HL_EINVAL, HL_ENOMEM, HL_ELOST, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_update_lease_async(hl_permits *semaphore,
                                                       const hl_permit *permit, int64_t lease_ms,
                                                       hl_done_cb done, void *arg);

/*
 * hl_permits_lease_left without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permits_lease_left. Negative:
 * it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_lease_left_async(hl_permits *semaphore, const hl_permit *permit,
                                                     hl_count_cb done, void *arg);

/*
 * hl_permits_available without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permits_available. Negative:
 * it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_available_async(hl_permits *semaphore, hl_count_cb done,
                                                    void *arg);

/*
 * hl_permits_acquired without blocking.
 *
 * Threads: any.
 * Returns: as hl_permits_available_async.
 */
HL_API HL_MUST_CHECK int hl_permits_acquired_async(hl_permits *semaphore, hl_count_cb done,
                                                   void *arg);

/*
 * hl_permits_total without blocking.
 *
 * Threads: any.
 * Returns: as hl_permits_available_async.
 */
HL_API HL_MUST_CHECK int hl_permits_total_async(hl_permits *semaphore, hl_count_cb done, void *arg);

/*
 * hl_permits_try_set_total without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permits_try_set_total.
 * Negative: it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permits_try_set_total_async(hl_permits *semaphore, int64_t count,
                                                        int64_t ttl_ms, hl_done_cb done, void *arg);

/*
 * hl_permits_set_total without blocking.
 *
 * Threads: any.
 * Returns: as hl_permits_try_set_total_async, with a code of
 * hl_permits_set_total.
 */
HL_API HL_MUST_CHECK int hl_permits_set_total_async(hl_permits *semaphore, int64_t count,
                                                    int64_t ttl_ms, hl_done_cb done, void *arg);

/*
 * hl_permits_add without blocking.
 *
 * Threads: any.
 * Returns: as hl_permits_try_set_total_async, with a code of
 * hl_permits_add.
 */
HL_API HL_MUST_CHECK int hl_permits_add_async(hl_permits *semaphore, int64_t more, hl_done_cb done,
                                              void *arg);

/*
 * hl_permits_delete without blocking.
 *
 * Threads: any.
 * Returns: as hl_permits_try_set_total_async, with a code of hl_permits_delete.
 */
HL_API HL_MUST_CHECK int hl_permits_delete_async(hl_permits *semaphore, hl_done_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
