/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A wait: a call under way, with its deadline, its cancel and its one result. A blocking call
 * sleeps on the wait's gate. For an async call (async.h) a timer of the loop checks deadline and
 * cancel, and the result goes to the callbacks.
 */
#ifndef HLI_LEASE_CALLS_WAIT_H
#define HLI_LEASE_CALLS_WAIT_H

#include "base/gate.h"
#include "lease/calls/span.h"
#include "redis/loop.h"

#include <hirelock/lock.h>

#include <sys/queue.h>

struct hli_link;

struct hl_cancel {
    atomic_bool is_fired;
};

struct hli_wait {
    HLI_PART
    hl_client *client; /* borrowed: the call has a reference */
    hli_ns started;
    hli_ns deadline;                   /* of the caller's wait time */
    hl_cancel *cancel;                 /* borrowed, or NULL; cleared under client's waits mutex */
    const struct hli_span *span;       /* the same; a close of these clients is a cancel, too */
    TAILQ_ENTRY(hli_wait) cancel_link; /* client's waits mutex */

    /* Ends the call if its time is over or its cancel was fired. True while it goes on; then
     * check_at says when to call this again. */
    bool (*check)(struct hli_wait *wait, hli_ns now);
    bool (*awaits_message)(
        struct hli_wait *wait); /* can a message of the mailbox end it? NULL: no */
    hli_ns check_at;            /* of the thread that calls `check` */
    hli_ns first_check_at;      /* immutable */
    bool has_cancel;            /* immutable once it has begun */

    bool is_finished; /* guarded by the mutex of the object that is waited for, as the two below */
    int code;
    hl_error *err; /* borrowed from the caller, may be NULL; written on failure only */
    TAILQ_ENTRY(hli_wait) finish_link;

    struct hli_gate gate;                    /* of a blocking call, as the next */
    struct hli_link *link;                   /* its thread leads and listens there; NULL: nowhere */
    void (*finished)(struct hli_wait *wait); /* of a call without a blocked thread, else NULL */
    struct hli_timer *timer;                 /* of an async call: checks it; else NULL */
};

TAILQ_HEAD(hli_waits, hli_wait);

/* Starts the clock. wait_ms as in hl_acquire_options. */
void hli_wait_init(struct hli_wait *wait, hl_client *client, int64_t wait_ms, hl_error *err);

/* Attaches a cancel, which may be NULL, and the wait's span, which was set before;
 * hli_wait_detach() undoes it. If the cancel was fired before, the call's first check sees that. */
void hli_wait_attach(struct hli_wait *wait, hl_cancel *cancel);
void hli_wait_detach(struct hli_wait *wait);

/* Promises that this thread will block for the requests that it sends on this link from now on
 * (hli_link_lead_begin()). */
void hli_wait_lead(struct hli_wait *wait, struct hli_link *link);

/* Blocks until the wait is finished; returns its code. */
int hli_wait_block(struct hli_wait *wait);

/* Reports the end: opens the gate, or calls `finished`. Without a mutex; the wait may be freed
 * afterwards. */
void hli_wait_wake(struct hli_wait *wait);

/* Makes every wait whose cancel was fired check itself. Loop thread. */
void hli_waits_check(hl_client *client);

/* Only before the call has ended: afterwards the caller may have freed the cancel. */
bool hli_wait_is_cancelled(const struct hli_wait *wait);
/* The same for a check that may come late, while the completion runs: false after the detach. */
bool hli_wait_is_attached_and_cancelled(struct hli_wait *wait);
/* Of a cancelled wait: by its cancel or by a close, in words. */
const char *hli_wait_why_cancelled(const struct hli_wait *wait);

#endif
