/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * How a call reports its end: to the caller that blocks for it, or later to a completion callback.
 * Each public call and its async twin are one function; its struct hli_completion says which of the
 * two is meant.
 */
#ifndef HLI_LEASE_CALLS_ASYNC_H
#define HLI_LEASE_CALLS_ASYNC_H

#include "base/ref.h"
#include "lease/calls/callbacks.h"
#include "lease/calls/wait.h"

#include <hirelock/command.h>
#include <hirelock/fence.h>

struct hli_completion {
    bool is_async;

    hl_error *err;      /* of a blocking call; may be NULL */
    int64_t *ret_count; /* may be NULL */
    hl_lock_info *ret_info;
    hl_reply **ret_reply;
    int *ret_codes; /* of a call on several locks, blocking or async; may be NULL */

    hl_done_cb done; /* of an async call: at most one of these is set */
    hl_count_cb counted;
    hl_token_cb token;
    hl_inspect_cb inspected;
    hl_reply_cb replied;
    void *arg;
};

#define HLI_BLOCKING(err_)                                                                         \
    &(struct hli_completion)                                                                       \
    {                                                                                              \
        .err = (err_)                                                                              \
    }
#define HLI_BLOCKING_COUNT(ret_, err_)                                                             \
    &(struct hli_completion)                                                                       \
    {                                                                                              \
        .err = (err_), .ret_count = (ret_)                                                         \
    }
#define HLI_ASYNC_CALL(member_, cb_, arg_)                                                         \
    &(struct hli_completion)                                                                       \
    {                                                                                              \
        .is_async = true, .member_ = (cb_), .arg = (arg_)                                          \
    }

/* The async part of a call, embedded in it. Its references keep the call alive: the caller's, which
 * becomes the completion's; the timer's; and those that the call itself takes, for a request in
 * flight. */
struct hli_async {
    HLI_PART
    struct hli_ref ref;
    struct hli_wait *wait; /* immutable once the call has begun, as all below */
    struct hli_completion completion;
    struct hli_callback callback;
    hl_error err; /* of the completion */

    struct hli_timer timer; /* checks the wait, and has a reference */
    atomic_bool has_timer;  /* the timer is in use */
    atomic_bool has_ended;  /* its completion has run, or is about to */

    /* Called when the wait is finished, before the completion. Returns the completion's code, or
     * HLI_ASYNC_GOES_ON if the call waits on. NULL: the wait's code. */
    int (*settle)(struct hli_async *async);
    /* Runs the user's completion. NULL: completion.done, if it is set. */
    void (*tell)(struct hli_async *async, int code, const hl_error *err);
    void (*freed)(struct hli_async *async); /* frees the call */
};

enum { HLI_ASYNC_GOES_ON = 1 };

void hli_async_init(struct hli_async *async, struct hli_wait *wait,
                    void (*freed)(struct hli_async *async));
void hli_async_ref(struct hli_async *async);
void hli_async_unref(struct hli_async *async);

/* Calls `start` and returns. With 0, the completion runs exactly once, from the callback queue.
 * Consumes the caller's reference in any case. Errors: HL_ENOMEM; then `start` was not called. */
int hli_async_begin(struct hli_async *async, void (*start)(struct hli_async *async));

/* The loop checks the call's deadline and cancel from now on, if it does not yet, and the call has
 * not ended. */
void hli_async_look_after(struct hli_async *async);

/* Begins an async call; or makes a blocking one, whose code it returns. For a call with `settle`.
 */
int hli_async_run(struct hli_async *async, void (*start)(struct hli_async *async));

/* The default `finished` of the wait; a call with its own `finished` ends it with this. */
void hli_async_finished(struct hli_wait *wait);

#endif
