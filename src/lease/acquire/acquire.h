/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquiring: one call from its arguments to its result. A call of an owner without a hold joins the
 * name's waiters; a call of an owner with a hold is nested. Blocking and async calls differ only in
 * how they report the end.
 */
#ifndef HLI_LEASE_ACQUIRE_ACQUIRE_H
#define HLI_LEASE_ACQUIRE_ACQUIRE_H

#include "lease/calls/async.h"
#include "lease/state/waiters.h"

/* The arguments of an acquire. */
struct hli_acquire_spec {
    struct hli_name *name; /* borrowed, as the options */
    struct hli_acquire_mode mode;
    const hl_acquire_options *options; /* checked; an owner of NULL is the calling thread */
};

/* The entry to an acquire of any kind, blocking or async. Returns the code; of an async call with
 * 0, the completion runs exactly once. Errors: HL_EINVAL, HL_ENOMEM. The client has been entered.
 */
int hli_acquire_run(const struct hli_acquire_spec *spec, const struct hli_completion *completion);

/* May a hold have this lease time? Errors: HL_EINVAL. */
int hli_acquire_check_lease(int64_t lease_ms, hl_error *err);

/* The same of `what`, "lease_ms", for a lock that stands for at most `longest_ms`; 0: any. */
int hli_acquire_check_longest(const char *what, int64_t lease_ms, int64_t longest_ms,
                              hl_error *err);

/* Are the options in range? Errors: HL_EINVAL. */
int hli_acquire_check(const hl_acquire_options *options, hl_error *err);

/* The same, and prepares the call; nothing is sent. Errors: HL_EINVAL, HL_ENOMEM. */
int hli_acquire_init(struct hli_acquire *acquire, const struct hli_acquire_spec *spec,
                     hl_error *err);
void hli_acquire_deinit(struct hli_acquire *acquire);

/* For a blocking call, before it begins: if our last release granted the lock to another process,
 * calls sched_yield() once, so that the new holder runs first. */
void hli_acquire_yield_core(struct hli_name *name);

/* Begins an acquire that is a member of an acquire-all (acquire_all.h); it may have been begun
 * before. The result comes through the wait. */
void hli_acquire_start_part(struct hli_acquire *acquire);

/* The same, if its first request would go out now. The request is not sent but returned: the caller
 * sends it, alone or in a batch, or answers it by its `done`. It is NULL when memory is out, or
 * when an earlier release has to go first: then it asks by itself. False: not begun. */
bool hli_acquire_start_together(struct hli_acquire *acquire, struct hli_op **ret_op);

/* Withdraws an acquire without a result. False: it has a result. Name mutex. */
bool hli_acquire_withdraw(struct hli_turn *turn, struct hli_acquire *acquire);

/* After the wait is finished: checks the validity a second time, in the thread that reports the
 * end. Returns the code, or HLI_ASYNC_GOES_ON: the hold is over already, and the call waits on. */
int hli_acquire_settle(struct hli_acquire *acquire);

/* Fails an acquire, with the last busy answer as the reason. Name mutex. */
void hli_acquire_fail_busy(struct hli_turn *turn, struct hli_acquire *acquire, int code);

/* Fails an acquire whose wait time is over; or that had no answer for the outage timeout. The error
 * has the reason, if it is known. Name mutex. */
void hli_acquire_time_out(struct hli_turn *turn, struct hli_acquire *acquire);
void hli_acquire_fail_unheard(struct hli_turn *turn, struct hli_acquire *acquire);

/* The client is closed: HL_ECANCELED for all that wait on the name. */
void hli_acquire_cancel_all(struct hli_turn *turn);

#endif
