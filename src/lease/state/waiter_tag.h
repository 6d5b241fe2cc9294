/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A waiter's tag: who waits for a lock, for people and for `hirelock deadlocks`: since when, and
 * host, process and thread. With HL_CLIENT_HOLDER_INFO a call that has been in the line for a
 * second writes it to a key of its own beside the lock, writes it again while it waits, and removes
 * it when it leaves the line. Nobody waits for these requests, and a failure is silent.
 *
 * The tag outlives its call until the last of its requests is answered.
 */
#ifndef HLI_LEASE_STATE_WAITER_TAG_H
#define HLI_LEASE_STATE_WAITER_TAG_H

#include "base/ref.h"
#include "lease/state/waiters.h"

struct hli_waiter_tag {
    struct hli_ref ref;               /* the call's, later the removal's; and one for a write */
    hl_client *client;                /* counted, immutable */
    unsigned slot, lane;              /* the name's; written while no write is in flight */
    atomic_bool is_in_flight;         /* a write */
    atomic_bool is_refused;           /* it may not be written here */
    atomic_bool is_over;              /* the call has left the line: no write is sent any more */
    struct hli_op write, removal;     /* the second is formatted with the first write */
    SLIST_ENTRY(hli_waiter_tag) link; /* in a turn's list */
};

/* When a call that begins to wait at this time is to be shown. */
hli_ns hli_waiter_tag_first_at(hli_ns started);

/* The call is in the line, and its tag_at has come: makes a write ready, which the caller sends
 * without the mutex. NULL: none is to be sent now. Name mutex. */
struct hli_waiter_tag *hli_waiter_tag_plan(struct hli_acquire *acquire, hli_ns now);
void hli_waiter_tag_send(struct hli_waiter_tag *tag);

/* The call has left the line: removes the tag. Without a mutex. */
void hli_waiter_tag_end(struct hli_waiter_tag *tag);

#endif
