/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The semaphore: a number of permits that threads, processes and Java programs take and give back.
 * Wire-compatible with Redisson's RSemaphore.
 *
 * Guarantees, while the server keeps its data: no more permits are taken than there are. A request
 * whose answer is lost takes, or gives back, once. Waiters of one client are served in the order of
 * their arrival: smaller requests do not overtake a larger one at the head. One request serves all
 * waiters at the head that fit. A lost message costs at most one poll period.
 *
 * Does not guarantee: any order between clients. Redis does not record which program has a permit:
 * a permit that a program holds when it dies never comes back. Where that matters, use permits with
 * leases (permits.h).
 *
 * A semaphore is an integer in Redis. A missing semaphore has no permits; a release creates it. The
 * limits of 1 to 2^31-1 permits are Java's.
 *
 * Ownership: freeing a handle gives nothing back. Several handles of one name are one semaphore.
 * Handles may be freed before or after the client is closed.
 */
#ifndef HIRELOCK_SEMAPHORE_H
#define HIRELOCK_SEMAPHORE_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_semaphore hl_semaphore;

/*
 * Makes a handle of the semaphore `name`, a C string of 1 to 512 bytes. No I/O.
 *
 * Threads: any.
 * Returns: as hl_lock_new.
 */
HL_API HL_MUST_CHECK int hl_semaphore_new(hl_client *client, const char *name,
                                          hl_semaphore **ret_semaphore, hl_error *err);

/*
 * Frees a handle; permits that were taken stay taken. NULL is fine.
 *
 * Threads: any, when no call on this handle is running.
 * Returns: nothing.
 */
HL_API void hl_semaphore_free(hl_semaphore *semaphore);

/*
 * The semaphore's name as it stands in Redis, with the client's prefix.
 *
 * Threads: any.
 * Returns: a NUL-terminated string that lives as long as the handle; NULL for NULL. *ret_length, if
 * given, is its length.
 */
HL_API const char *hl_semaphore_name(const hl_semaphore *semaphore, size_t *ret_length);

/*
 * Takes permits, from 1 to 2^31-1, all or none, waiting without end.
 *
 * Threads: any.
 * Returns: as hl_semaphore_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_semaphore_acquire(hl_semaphore *semaphore, int64_t permits,
                                              hl_error *err);

/*
 * Takes permits if they are available and no other call of this client waits.
 *
 * Threads: any.
 * Returns: as hl_semaphore_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_semaphore_try_acquire(hl_semaphore *semaphore, int64_t permits,
                                                  hl_error *err);

/*
 * Takes permits, waiting at most wait_ms (HL_NO_WAIT, HL_WAIT_FOREVER, or milliseconds).
 *
 * Threads: any.
 * Returns: as hl_semaphore_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_semaphore_acquire_for(hl_semaphore *semaphore, int64_t permits,
                                                  int64_t wait_ms, hl_error *err);

/*
 * Takes permits as the options say; NULL means the defaults (as hl_semaphore_acquire). Permits that
 * arrive after the wait has ended are given back.
 *
 * Threads: any.
 * Returns: 0: taken. HL_EBUSY: too few (no waiting). HL_ETIMEDOUT: the wait time is over.
 * HL_ECANCELED: options->cancel was fired, or the client was closed meanwhile. HL_EINVAL;
 * HL_ENOMEM. HL_ECONN, HL_EPROTO: no usable server when the wait time is over, or for
 * outage_timeout_ms, or (no waiting) at the last attempt to connect. HL_ESERVER: a refusal, at once
 * when it cannot pass (WRONGTYPE: the key is no number) or the call does not wait, and after
 * outage_timeout_ms when it may (LOADING, READONLY). HL_EDENIED: at once. HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_semaphore_acquire_with(hl_semaphore *semaphore, int64_t permits,
                                                   const hl_wait_options *options, hl_error *err);

/*
 * Gives permits back, from 1 to 2^31-1, and wakes waiters; creates the semaphore if there is none.
 * It does not matter which program took them. The call waits for the answer for outage_timeout_ms
 * at most, and repeats the request meanwhile.
 *
 * Threads: any.
 * Returns: 0: given back. HL_EINDOUBT: the request was sent, and no answer came: the permits may be
 * back or not. HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO (nothing was sent); HL_ESERVER (WRONGTYPE,
 * or more permits than 64 bits hold), HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API int hl_semaphore_release(hl_semaphore *semaphore, int64_t permits, hl_error *err);

/*
 * As hl_semaphore_release, but does not create a semaphore.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release; HL_ENOENT: there is none.
 */
HL_API int hl_semaphore_release_if_exists(hl_semaphore *semaphore, int64_t permits, hl_error *err);

/*
 * Creates the semaphore with so many permits, from 0 to 2^31-1, if there is none, and wakes
 * waiters. ttl_ms: the semaphore's time to live, which taking and giving back do not change; 0: for
 * ever.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release; HL_EEXIST: the semaphore exists, and stays as it is.
 */
HL_API HL_MUST_CHECK int hl_semaphore_try_set_permits(hl_semaphore *semaphore, int64_t permits,
                                                      int64_t ttl_ms, hl_error *err);

/*
 * Adds permits or, with a negative number, removes them, at most 2^31-1; creates the semaphore if
 * there is none. The number of permits may become negative, until enough are given back. The
 * semaphore's time to live stays (Redisson's own call drops it). 0 changes nothing.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release.
 */
HL_API HL_MUST_CHECK int hl_semaphore_add_permits(hl_semaphore *semaphore, int64_t permits,
                                                  hl_error *err);

/*
 * Takes all available permits, and returns their number. A negative number of permits becomes 0,
 * and is returned as it was.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release.
 */
HL_API HL_MUST_CHECK int hl_semaphore_drain(hl_semaphore *semaphore, int64_t *ret_permits,
                                            hl_error *err);

/*
 * The number of available permits: 0 if there is no semaphore; it may be negative after
 * hl_semaphore_add_permits with a negative number.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms),
 * HL_EPROTO, HL_ESERVER (WRONGTYPE), HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_semaphore_available(hl_semaphore *semaphore, int64_t *ret_permits,
                                                hl_error *err);

/*
 * hl_semaphore_acquire_with without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_semaphore_acquire_with. Negative: it
 * never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_semaphore_acquire_async(hl_semaphore *semaphore, int64_t permits,
                                                    const hl_wait_options *options, hl_done_cb done,
                                                    void *arg);

/*
 * hl_semaphore_release without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of the blocking call. Negative: it never
 * runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_semaphore_release_async(hl_semaphore *semaphore, int64_t permits,
                                                    hl_done_cb done, void *arg);

/*
 * hl_semaphore_release_if_exists without blocking.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release_async.
 */
HL_API HL_MUST_CHECK int hl_semaphore_release_if_exists_async(hl_semaphore *semaphore,
                                                              int64_t permits, hl_done_cb done,
                                                              void *arg);

/*
 * hl_semaphore_try_set_permits without blocking.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release_async.
 */
HL_API HL_MUST_CHECK int hl_semaphore_try_set_permits_async(hl_semaphore *semaphore,
                                                            int64_t permits, int64_t ttl_ms,
                                                            hl_done_cb done, void *arg);

/*
 * hl_semaphore_add_permits without blocking.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release_async.
 */
HL_API HL_MUST_CHECK int hl_semaphore_add_permits_async(hl_semaphore *semaphore, int64_t permits,
                                                        hl_done_cb done, void *arg);

/*
 * hl_semaphore_drain without blocking.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release_async.
 */
HL_API HL_MUST_CHECK int hl_semaphore_drain_async(hl_semaphore *semaphore, hl_count_cb done,
                                                  void *arg);

/*
 * hl_semaphore_available without blocking.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release_async.
 */
HL_API HL_MUST_CHECK int hl_semaphore_available_async(hl_semaphore *semaphore, hl_count_cb done,
                                                      void *arg);

#ifdef __cplusplus
}
#endif
#endif
