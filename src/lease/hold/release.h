/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Releasing: one level of a hold, and the release requests of all tenures that are over. */
#ifndef HLI_LEASE_HOLD_RELEASE_H
#define HLI_LEASE_HOLD_RELEASE_H

#include "lease/state/turn.h"

/* How a handle releases. */
struct hli_release_mode {
    bool is_posted;          /* the call does not wait for the answer */
    bool is_silent;          /* it publishes no message */
    int64_t retain_ms;       /* retained so long for the next owner of this client; 0: not */
    struct hli_write *write; /* borrowed: what the release writes; then it is neither posted nor
                                kept. NULL: nothing */
};

/* A call of release that waits for its answer, for one request timeout at most. */
struct hli_release_wait {
    HLI_PART
    struct hli_wait wait;
    struct hli_name *name; /* borrowed from the call */
    char problem[128];     /* name mutex: why there is no answer yet */
};

/* Releases one level of the owner's hold; the result comes through the wait. With ret_op, a request
 * that may go into a batch is not sent: the caller sends it, or answers it by its `done`. It is
 * NULL when there is no request, or it was sent. */
void hli_release_start(struct hli_name *name, struct hl_owner *owner,
                       const struct hli_release_mode *mode, struct hli_wait *wait,
                       struct hli_op **ret_op);

/* The call waits no longer: HL_EINDOUBT; the release goes on in the background. Name mutex. */
void hli_release_leave(struct hli_turn *turn, struct hli_wait *wait);

/* Sends the releases that are due, again if need be; ends tenures whose lease is over by itself.
 * Name mutex. */
void hli_release_plan(struct hli_turn *turn);

/* The link is up again: makes all unanswered releases due. Name mutex. */
void hli_release_on_link_up(struct hli_turn *turn);

/* Must a new tenure wait for the answer of a release before it asks? By then the server has handed
 * the lock to the next waiter. Behind a posted release it asks at once, unless Redisson's waiters
 * listen: a plain release is a race, and they would lose it. Name mutex. */
bool hli_release_blocks_ask(const struct hli_name *name);

/* An ACQUIRE that was in flight when the tenure was released is answered: the release that waited
 * for the answer goes out. stood: the hold was not over when that ACQUIRE ran. Name mutex. */
void hli_release_behind(struct hli_turn *turn, struct hli_tenure *tenure, bool stood);

/* The client is closed, and its link too: nothing more will be answered. Name mutex. */
void hli_release_end_all(struct hli_turn *turn);

#endif
