/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The latch: a call closes it with a count, and it opens when that has been counted down to 0; then
 * its waiters go on. Threads, processes and Java programs share it. Wire-compatible with Redisson's
 * RCountDownLatch.
 *
 * Guarantees, while the server keeps its data: no wait ends before the latch was open. A request
 * whose answer is lost counts once. A lost message, or a reconnect, costs a waiter at most one poll
 * period. A latch that is deleted wakes its waiters (Redisson's own delete does not).
 *
 * An open latch may be closed again, with a new count. A waiter that has not asked the server in
 * between waits for the second count, too.
 *
 * Ownership: several handles of one name are one latch. Handles may be freed before or after the
 * client is closed.
 */
#ifndef HIRELOCK_LATCH_H
#define HIRELOCK_LATCH_H

#include <hirelock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_latch hl_latch;

/*
 * Makes a handle of the latch `name`, a C string of 1 to 512 bytes. No I/O. Redisson puts braces
 * around any name in its channel, so a name with a "{" would have key and channel
 * in different cluster slots, and is refused; the client's name_prefix counts too.
 *
 * Threads: any.
 * Returns: as hl_lock_new; HL_EINVAL also for a name with a "{".
 */
HL_API HL_MUST_CHECK int hl_latch_new(hl_client *client, const char *name, hl_latch **ret_latch,
                                      hl_error *err);

/*
 * Frees a handle; the latch stays. NULL is fine.
 *
 * Threads: any, when no call on this handle is running.
 * Returns: nothing.
 */
HL_API void hl_latch_free(hl_latch *latch);

/*
 * The latch's name as it stands in Redis, with the client's prefix.
 *
 * Threads: any.
 * Returns: a NUL-terminated string that lives as long as the handle; NULL for NULL. *ret_length, if
 * given, is its length.
 */
HL_API const char *hl_latch_name(const hl_latch *latch, size_t *ret_length);

/*
 * Closes the latch, with a count from 1 to 2^63-1, if it is open. Waits for the answer for
 * outage_timeout_ms at most.
 *
 * Threads: any.
 * Returns: 0: closed. HL_EEXIST: it was closed before, and its count stays. HL_EINDOUBT: it was
 * sent, and no answer came. HL_EINVAL; HL_ENOMEM; HL_ECONN, HL_EPROTO (nothing was sent);
 * HL_ESERVER, HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_latch_try_set_count(hl_latch *latch, int64_t count, hl_error *err);

/*
 * Counts down by one; at 0 the latch opens and its waiters wake. An open latch stays open.
 *
 * Threads: any.
 * Returns: as hl_latch_try_set_count, but never HL_EEXIST; HL_ESERVER also for WRONGTYPE (the key
 * is no number).
 */
HL_API int hl_latch_count_down(hl_latch *latch, hl_error *err);

/*
 * The count that is left; 0 for an open latch.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL; HL_ENOMEM; HL_ECONN (also without an answer for outage_timeout_ms),
 * HL_EPROTO, HL_ESERVER (WRONGTYPE), HL_EDENIED; HL_ECANCELED (closed meanwhile); HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_latch_count(hl_latch *latch, int64_t *ret_count, hl_error *err);

/*
 * Opens the latch, whatever its count, and wakes its waiters.
 *
 * Threads: any.
 * Returns: as hl_latch_count_down; HL_ENOENT: it was open.
 */
HL_API int hl_latch_delete(hl_latch *latch, hl_error *err);

/*
 * Waits without end until the latch is open.
 *
 * Threads: any.
 * Returns: as hl_latch_await_with.
 */
HL_API HL_MUST_CHECK int hl_latch_await(hl_latch *latch, hl_error *err);

/*
 * Waits until the latch is open, at most wait_ms (HL_NO_WAIT, HL_WAIT_FOREVER, or milliseconds).
 *
 * Threads: any.
 * Returns: as hl_latch_await_with.
 */
HL_API HL_MUST_CHECK int hl_latch_await_for(hl_latch *latch, int64_t wait_ms, hl_error *err);

/*
 * Waits until the latch is open, as the options say; NULL means the defaults (as hl_latch_await).
 *
 * Threads: any.
 * Returns: 0: it was open after the call began. HL_EBUSY: it is closed (no waiting). HL_ETIMEDOUT:
 * the wait time is over. HL_ECANCELED: options->cancel was fired, or the client was closed
 * meanwhile. HL_EINVAL; HL_ENOMEM. HL_ECONN, HL_EPROTO: no usable server when the wait time is
 * over, or for outage_timeout_ms, or (no waiting) at the last attempt to connect. HL_ESERVER,
 * HL_EDENIED; HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_latch_await_with(hl_latch *latch, const hl_wait_options *options,
                                             hl_error *err);

/*
 * hl_latch_try_set_count without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of the blocking call. Negative: it never
 * runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_latch_try_set_count_async(hl_latch *latch, int64_t count,
                                                      hl_done_cb done, void *arg);

/*
 * hl_latch_count_down without blocking.
 *
 * Threads: any.
 * Returns: as hl_latch_try_set_count_async.
 */
HL_API HL_MUST_CHECK int hl_latch_count_down_async(hl_latch *latch, hl_done_cb done, void *arg);

/*
 * hl_latch_count without blocking.
 *
 * Threads: any.
 * Returns: as hl_latch_try_set_count_async.
 */
HL_API HL_MUST_CHECK int hl_latch_count_async(hl_latch *latch, hl_count_cb done, void *arg);

/*
 * hl_latch_delete without blocking.
 *
 * Threads: any.
 * Returns: as hl_latch_try_set_count_async.
 */
HL_API HL_MUST_CHECK int hl_latch_delete_async(hl_latch *latch, hl_done_cb done, void *arg);

/*
 * hl_latch_await_with without blocking.
 *
 * Threads: any.
 * Returns: as hl_latch_try_set_count_async.
 */
HL_API HL_MUST_CHECK int hl_latch_await_async(hl_latch *latch, const hl_wait_options *options,
                                              hl_done_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
