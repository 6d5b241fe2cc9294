/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The semaphore: a number of permits that threads, processes and Java programs take and give back.
 * Wire-compatible with Redisson's RSemaphore.
 *
 * Guarantees, while the server keeps its data: no more permits are taken than there are. A request
 * whose answer is lost takes, or gives back, once. Waiters of one client are served in the order of
 * their arrival, and a big need at the head is not overtaken by small ones behind it; those that
 * fit are served by one request together. A lost message costs at most one poll period.
 *
 * Does not guarantee: any order between clients. And nobody knows who has taken a permit: one that
 * a program takes with it when it ends never comes back. Where that matters, use permits with
 * leases.
 *
 * A semaphore is an integer in Redis. One that is not there has no permits, and a release makes it.
 * What is said here of 1 to 2^31-1 permits are Java's limits.
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
 * Frees a handle; what is taken stays taken. NULL is fine.
 *
 * Threads: any, when no call on this handle is running.
 * Returns: nothing.
 */
HL_API void hl_semaphore_free(hl_semaphore *semaphore);

/*
 * The semaphore's name as it stands in Redis, with the client's prefix.
 *
 * Threads: any.
 * Returns: a string that lives as long as the handle; NULL for NULL.
 */
HL_API const char *hl_semaphore_name(const hl_semaphore *semaphore);

/*
 * Takes permits, from 1 to 2^31-1, all or none, waiting without end.
 *
 * Threads: any.
 * Returns: as hl_semaphore_acquire_with.
 */
HL_API HL_MUST_CHECK int hl_semaphore_acquire(hl_semaphore *semaphore, int64_t permits,
                                              hl_error *err);

/*
 * Takes permits if they are there, and nobody of this client waits before it.
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
 * Takes permits with what options say; NULL is the defaults (no waiting). Of the options wait_ms
 * and cancel are of use; any other that is set is HL_EINVAL, for there is no hold for it to speak
 * of. A wait that is over gives back what comes too late.
 *
 * Threads: any.
 * Returns: 0: taken. HL_EBUSY: too few (no waiting). HL_ETIMEDOUT: the wait time is over.
 * HL_ECANCELED: options->cancel was fired, or the client was closed meanwhile. HL_EINVAL;
 * HL_ENOMEM. HL_ECONN, HL_EPROTO: no usable server for the wait time or for outage_timeout_ms.
 * HL_ESERVER: a refusal, at once when it cannot pass (WRONGTYPE: the key is no number) and after
 * outage_timeout_ms when it may (LOADING, READONLY). HL_EDENIED: at once. HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_semaphore_acquire_with(hl_semaphore *semaphore, int64_t permits,
                                                   const hl_acquire_options *options,
                                                   hl_error *err);

/*
 * Gives permits back, from 1 to 2^31-1, and wakes waiters; makes the semaphore if there is none.
 * Whoever took them: a semaphore does not know. Waits for the answer for outage_timeout_ms at most,
 * and asks again meanwhile as often as it must.
 *
 * Threads: any.
 * Returns: 0: given back. HL_EUNKNOWN: it was sent, and no answer came: they are back, or are not.
 * HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO (nothing was sent); HL_ESERVER (WRONGTYPE, or more
 * permits than 64 bits hold), HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_semaphore_release(hl_semaphore *semaphore, int64_t permits, hl_error *err);

/*
 * The same if there is a semaphore; makes none.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release; HL_ENOTOWNER: there is none.
 */
HL_API int hl_semaphore_release_if_exists(hl_semaphore *semaphore, int64_t permits, hl_error *err);

/*
 * Makes the semaphore with so many permits, from 0 to 2^31-1, if there is none, and wakes waiters.
 * ttl_ms: how long it stands, with whatever is taken from it and given back; 0: for ever.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release; HL_EBUSY: there is one, and it stays as it is.
 */
HL_API HL_MUST_CHECK int hl_semaphore_try_set_permits(hl_semaphore *semaphore, int64_t permits,
                                                      int64_t ttl_ms, hl_error *err);

/*
 * Makes the semaphore bigger or, with a negative number, smaller, by at most 2^31-1; makes it if
 * there is none. It may have less than no permits then, until some are given back. Its time to live
 * stays (Redisson's own call drops it).
 *
 * Threads: any.
 * Returns: as hl_semaphore_release.
 */
HL_API HL_MUST_CHECK int hl_semaphore_add_permits(hl_semaphore *semaphore, int64_t permits,
                                                  hl_error *err);

/*
 * Takes all the permits there are, and says how many. Less than none becomes none, and is said as a
 * negative number.
 *
 * Threads: any.
 * Returns: as hl_semaphore_release.
 */
HL_API HL_MUST_CHECK int hl_semaphore_drain(hl_semaphore *semaphore, int64_t *ret_permits,
                                            hl_error *err);

/*
 * How many permits are there? 0 where there is no semaphore; negative after a negative add.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms),
 * HL_EPROTO, HL_ESERVER (WRONGTYPE), HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_semaphore_available(hl_semaphore *semaphore, int64_t *ret_permits,
                                                hl_error *err);

/*
 * hl_semaphore_acquire_with without blocking. The handle may be freed after the call.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_semaphore_acquire_with. Negative: it
 * never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_semaphore_acquire_async(hl_semaphore *semaphore, int64_t permits,
                                                    const hl_acquire_options *options,
                                                    hl_done_cb done, void *arg);

/*
 * hl_semaphore_release without blocking. The handle may be freed after the call.
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
