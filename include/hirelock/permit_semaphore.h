/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The permit semaphore: a number of permits that all threads of all processes and Java programs
 * with the same name on the same Redis share; each permit that is out has an id and a lease.
 * Wire-compatible with Redisson's RPermitExpirableSemaphore.
 *
 * Guarantees, while the server keeps its data and its clock is steady: never more permits are out
 * than there are, and hl_permit_semaphore_is_held() never says yes outside the permit's time on the
 * server. A permit without a lease time is renewed by the watchdog until it is released, so the
 * permits of a process that died come back when their leases are over. One with a lease time comes
 * back by itself: permits of a lease of a minute, never released, are a limit of so many a minute.
 *
 * Does not guarantee: an order among those who wait; what hl_lock does not guarantee either
 * (lock.h).
 *
 * Permits. The id is what a permit is known by: any thread may release it, and any process, by its
 * 32 hex digits, which Redisson shows and takes too. To this process its own permits are holds:
 * they are renewed, told as lost, and abandoned when their owner's thread ends. The owner (lock.h)
 * is the thread that acquired, or options->owner; one owner may have any number of permits.
 *
 * The semaphore begins with hl_permit_semaphore_try_set_permits(), _set_permits() or
 * _add_permits(), here or in Java; before, there is none to be had. It stays in Redis until it is
 * deleted. Setting, adding and deleting wait for a server and its answer for outage_timeout_ms at
 * most.
 *
 * Ownership: freeing a handle does not release its permits. Handles may be freed before or after
 * the client is closed.
 */
#ifndef HIRELOCK_PERMIT_SEMAPHORE_H
#define HIRELOCK_PERMIT_SEMAPHORE_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_permit_semaphore hl_permit_semaphore;

/* 32 lower-case hex digits, as Redisson shows them, and a NUL. */
typedef struct hl_permit {
    char id[33];
} hl_permit;

enum {
    HL_PERMITS_AT_ONCE = 1000 /* the most that one call acquires */
};

/* The most permits that a semaphore may have: Redisson counts them in 32 bits. */
#define HL_PERMITS_MAX INT64_C(2147483647)

/*
 * Makes a handle of the semaphore `name`, a C string. No I/O; nothing is created in Redis.
 *
 * Threads: any.
 * Returns: as hl_lock_new.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_new(hl_client *client, const char *name,
                                                 hl_permit_semaphore **ret_semaphore,
                                                 hl_error *err);

/*
 * Frees a handle; permits stay out. NULL is fine.
 *
 * Threads: any, when no call on this handle is running.
 * Returns: nothing.
 */
HL_API void hl_permit_semaphore_free(hl_permit_semaphore *semaphore);

/*
 * The semaphore's name as it stands in Redis, with the client's prefix.
 *
 * Threads: any.
 * Returns: a NUL-terminated string that lives as long as the handle; NULL for NULL. *ret_length, if
 * given, is its length.
 */
HL_API const char *hl_permit_semaphore_name(const hl_permit_semaphore *semaphore,
                                            size_t *ret_length);

/*
 * Acquires a permit, waiting without end; renewed by the watchdog until released.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_acquire(hl_permit_semaphore *semaphore,
                                                     hl_permit *ret_permit, hl_error *err);

/*
 * Acquires a permit if one is available; never waits for one.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_try_acquire(hl_permit_semaphore *semaphore,
                                                         hl_permit *ret_permit, hl_error *err);

/*
 * Acquires a permit, waiting at most wait_ms (HL_NO_WAIT, HL_WAIT_FOREVER, or milliseconds).
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_acquire_for(hl_permit_semaphore *semaphore,
                                                         int64_t wait_ms, hl_permit *ret_permit,
                                                         hl_error *err);

/*
 * Acquires a permit with all that options say; NULL is the defaults (no waiting). With a lease_ms
 * it is not renewed and comes back after so long. min_hold_ms must be 0. In ret_busy hold_count is
 * how many permits are available, and lease_left_ms when enough will have expired (-1: unknown).
 *
 * Threads: any; one owner may have several calls under way.
 * Returns: 0: the permit is held, and was valid just before the return. HL_EBUSY: none is available
 * (no waiting). HL_ETIMEDOUT: the wait time is over. HL_ECANCELED: options->cancel was fired, or
 * the client was closed meanwhile. HL_ELOST: it was held, and was lost before the call returned:
 * its thread did not run for longer than a lease, or the client was closed. HL_EINVAL; HL_ENOMEM.
 * HL_ECONN, HL_EPROTO: no usable server for the wait time or for outage_timeout_ms. HL_ESERVER: a
 * refusal, at once when it cannot pass (WRONGTYPE: the key is something else) and after
 * outage_timeout_ms when it may (LOADING, OOM, READONLY). HL_EDENIED: at once. HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_acquire_with(hl_permit_semaphore *semaphore,
                                                          const hl_acquire_options *options,
                                                          hl_permit *ret_permit, hl_error *err);

/*
 * Acquires `count` permits, 1 to HL_PERMITS_AT_ONCE, all or none. Each is a permit of its own from
 * then on.
 *
 * Threads: any; one owner may have several calls under way.
 * Returns: as hl_permit_semaphore_acquire_with; ret_permits has room for `count`.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_acquire_many(hl_permit_semaphore *semaphore,
                                                          size_t count,
                                                          const hl_acquire_options *options,
                                                          hl_permit *ret_permits, hl_error *err);

/*
 * Gives a permit back and wakes those who wait. One of this client's is released as a lock is: the
 * call waits at most request_timeout_ms, and then it is repeated behind until the server answers or
 * its lease is over. Any other, by its id, is one request, repeated until it is answered or
 * outage_timeout_ms is over.
 *
 * Threads: any.
 * Returns: 0: given back. HL_ENOTOWNER: no permit of this id is out; nothing was changed. HL_ELOST:
 * it had expired, or was lost to this client (HL_ENOTOWNER a lease time later, when that is
 * forgotten). HL_EUNKNOWN: no answer in time; of one of this client's: it is no longer held for
 * this process. HL_EINVAL: NULL, or no id of 32 hex digits. HL_ENOMEM: nothing was sent. HL_ECONN,
 * HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_permit_semaphore_release(hl_permit_semaphore *semaphore, const hl_permit *permit,
                                       hl_error *err);

/*
 * Does this client hold the permit now? No I/O: looks at its validity, which ends before its lease
 * does on the server.
 *
 * Threads: any.
 * Returns: true only while it is valid; false for permits of others, for NULL, closed and forked
 * handles.
 */
HL_API bool hl_permit_semaphore_is_held(const hl_permit_semaphore *semaphore,
                                        const hl_permit *permit);

/*
 * How long the permit is still valid for this client if nothing renews it. No I/O.
 *
 * Threads: any.
 * Returns: milliseconds, rounded down; 0 when it is not held.
 */
HL_API int64_t hl_permit_semaphore_validity_ms(const hl_permit_semaphore *semaphore,
                                               const hl_permit *permit);

/*
 * Sets when a permit ends: lease_ms from now, sooner or later than it would. 0, of a permit of this
 * client: it is renewed by the watchdog from now on. Until the answer is there, and after
 * HL_EUNKNOWN, the shorter of both times counts here.
 *
 * Threads: any; one call for one permit at a time.
 * Returns: 0: so it ends. HL_ENOTOWNER: no permit of this id is out. HL_ELOST: it had expired, or
 * is lost to this client. HL_EUNKNOWN: no answer. HL_EINVAL: NULL, no id of 32 hex digits, lease_ms
 * neither from 10 to 10^11 nor (of a permit of this client) 0, or another such call is under way;
 * HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed meanwhile);
 * HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_update_lease(hl_permit_semaphore *semaphore,
                                                          const hl_permit *permit, int64_t lease_ms,
                                                          hl_error *err);

/*
 * Asks the server how long a permit lasts, whoever holds it: *ret_ms is -1 for one without an end
 * (Redisson's without a lease time).
 *
 * Threads: any.
 * Returns: 0; HL_ENOTOWNER: no permit of this id is out; HL_ELOST: it had expired. HL_EINVAL;
 * HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms), HL_EPROTO, HL_ESERVER,
 * HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_lease_left(hl_permit_semaphore *semaphore,
                                                        const hl_permit *permit, int64_t *ret_ms,
                                                        hl_error *err);

/*
 * Asks the server how many permits are available; below 0 while more are out than there are, as
 * after hl_permit_semaphore_set_permits() with fewer. 0 for a semaphore that is not there.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms),
 * HL_EPROTO, HL_ESERVER (WRONGTYPE: the key is something else), HL_EDENIED; HL_ECANCELED (closed
 * meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_available(hl_permit_semaphore *semaphore,
                                                       int64_t *ret_count, hl_error *err);

/*
 * Asks the server how many permits are out.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_available.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_acquired(hl_permit_semaphore *semaphore,
                                                      int64_t *ret_count, hl_error *err);

/*
 * Asks the server how many permits there are, available and out.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_available.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_total(hl_permit_semaphore *semaphore,
                                                   int64_t *ret_count, hl_error *err);

/*
 * Sets how many permits there are, 0 to HL_PERMITS_MAX, if the semaphore is not there yet.
 *
 * Threads: any.
 * Returns: 0: so many there are. HL_EBUSY: it is there already; nothing was changed. HL_EUNKNOWN:
 * no answer; HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED
 * (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_try_set_permits(hl_permit_semaphore *semaphore,
                                                             int64_t count, hl_error *err);

/*
 * Sets how many permits there are, 0 to HL_PERMITS_MAX, those that are out included. What is out
 * stays out; of fewer permits than that, none is available until enough have come back.
 *
 * Threads: any.
 * Returns: 0: so many there are. HL_EUNKNOWN: no answer; HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO,
 * HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_set_permits(hl_permit_semaphore *semaphore,
                                                         int64_t count, hl_error *err);

/*
 * Makes permits more, or fewer with a negative number.
 *
 * Threads: any.
 * Returns: 0: done. HL_EUNKNOWN: no answer, and it is not sent again: a second time would add
 * twice. HL_EINVAL (also: more than HL_PERMITS_MAX would be available); HL_ENOMEM; HL_ECONN,
 * HL_EPROTO, HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_add_permits(hl_permit_semaphore *semaphore,
                                                         int64_t more, hl_error *err);

/*
 * Deletes the semaphore, permits that are out included: they are told as lost with their next
 * renewal. Who waits goes on waiting, until it is there again.
 *
 * Threads: any.
 * Returns: 0: deleted. HL_ENOTOWNER: it was not there. HL_EUNKNOWN: no answer; HL_EINVAL;
 * HL_ENOMEM; HL_ECONN, HL_EPROTO, HL_ESERVER (WRONGTYPE: the key is something else), HL_EDENIED;
 * HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_permit_semaphore_delete(hl_permit_semaphore *semaphore, hl_error *err);

/* The completion of an async acquire: as many permits as were asked for, or NULL when code is
 * negative; valid during the call only, as err is. */
typedef void (*hl_permit_cb)(int code, const hl_permit *permits, const hl_error *err, void *arg);

/*
 * hl_permit_semaphore_acquire_many without blocking; options->owner must be set. ret_busy, when
 * given, must live until done ran. The handle and the owner may be freed after the call. Several
 * are not renewed before done runs: if that is later than their lease, the call waits on.
 *
 * Threads: any; one owner may have several calls under way.
 * Returns: 0: done will run exactly once, with a code of hl_permit_semaphore_acquire_with.
 * Negative: it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_acquire_async(hl_permit_semaphore *semaphore,
                                                           size_t count,
                                                           const hl_acquire_options *options,
                                                           hl_permit_cb done, void *arg);

/*
 * hl_permit_semaphore_release without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permit_semaphore_release. Negative: it
 * never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_release_async(hl_permit_semaphore *semaphore,
                                                           const hl_permit *permit, hl_done_cb done,
                                                           void *arg);

/*
 * hl_permit_semaphore_update_lease without blocking.
 *
 * Threads: any; one call for one permit at a time.
 * Returns: 0: done will run exactly once, with a code of hl_permit_semaphore_update_lease.
 * Negative: it never runs: HL_EINVAL, HL_ENOMEM, HL_ELOST, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_update_lease_async(hl_permit_semaphore *semaphore,
                                                                const hl_permit *permit,
                                                                int64_t lease_ms, hl_done_cb done,
                                                                void *arg);

/*
 * hl_permit_semaphore_lease_left without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permit_semaphore_lease_left. Negative:
 * it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_lease_left_async(hl_permit_semaphore *semaphore,
                                                              const hl_permit *permit,
                                                              hl_count_cb done, void *arg);

/*
 * hl_permit_semaphore_available without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permit_semaphore_available. Negative:
 * it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_available_async(hl_permit_semaphore *semaphore,
                                                             hl_count_cb done, void *arg);

/*
 * hl_permit_semaphore_acquired without blocking.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_available_async.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_acquired_async(hl_permit_semaphore *semaphore,
                                                            hl_count_cb done, void *arg);

/*
 * hl_permit_semaphore_total without blocking.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_available_async.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_total_async(hl_permit_semaphore *semaphore,
                                                         hl_count_cb done, void *arg);

/*
 * hl_permit_semaphore_try_set_permits without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_permit_semaphore_try_set_permits.
 * Negative: it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_try_set_permits_async(hl_permit_semaphore *semaphore,
                                                                   int64_t count, hl_done_cb done,
                                                                   void *arg);

/*
 * hl_permit_semaphore_set_permits without blocking.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_try_set_permits_async, with a code of
 * hl_permit_semaphore_set_permits.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_set_permits_async(hl_permit_semaphore *semaphore,
                                                               int64_t count, hl_done_cb done,
                                                               void *arg);

/*
 * hl_permit_semaphore_add_permits without blocking.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_try_set_permits_async, with a code of
 * hl_permit_semaphore_add_permits.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_add_permits_async(hl_permit_semaphore *semaphore,
                                                               int64_t more, hl_done_cb done,
                                                               void *arg);

/*
 * hl_permit_semaphore_delete without blocking.
 *
 * Threads: any.
 * Returns: as hl_permit_semaphore_try_set_permits_async, with a code of hl_permit_semaphore_delete.
 */
HL_API HL_MUST_CHECK int hl_permit_semaphore_delete_async(hl_permit_semaphore *semaphore,
                                                          hl_done_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
