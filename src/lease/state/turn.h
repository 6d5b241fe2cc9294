/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A turn: one visit to a name. hli_turn_begin() locks the name's mutex. The visitor changes the
 * name's state. hli_turn_end() derives what follows from the state (requests, the watchdog's next
 * visit, the timer), unlocks the mutex and does it. So no consequence can be forgotten, and no
 * mutex is held across a write, a wake-up or another mutex.
 */
#ifndef HLI_LEASE_STATE_TURN_H
#define HLI_LEASE_STATE_TURN_H

#include "lease/state/name.h"

enum { HLI_NO_MEMORY_MS = 10 }; /* how long to pause after a request that could not be written */

struct hli_turn {
    struct hli_name *name;
    hli_ns now;
    unsigned term; /* read before all that the turn decides (grace.h): its requests are for it */
    struct hli_ops send;
    struct hli_waits finished;
    struct hli_tenure *watch,
        *unwatch; /* the watchdog is to visit the first, and to forget the second */
    hli_ns watch_at;
    hli_ns timer_at; /* HLI_NEVER: leave it as it is */
    bool wants_channel;
    struct hli_tenure *changed, *acted; /* counted; what their kinds are to be told */
    hli_ns changed_until;
    bool is_last_releasing; /* the client's last release has ended; a close may wait for that */
    STAILQ_HEAD(, hli_callback) callbacks;
    struct hli_tenures gone;               /* references to be dropped */
    SLIST_HEAD(, hli_waiter_tag) untagged; /* of calls that have left the line */
};

void hli_turn_begin(struct hli_turn *turn, struct hli_name *name);
void hli_turn_end(struct hli_turn *turn);

/* Makes the plan now, for a caller that needs its result before the turn's end. */
void hli_turn_plan(struct hli_turn *turn);

/* With the turn's mutex: add something to be done at its end. */
void hli_turn_send(struct hli_turn *turn, struct hli_tenure *tenure,
                   struct hli_op *op); /* takes a reference for the op */
void hli_turn_ask(struct hli_turn *turn, struct hli_tenure *tenure,
                  enum hli_asking asking); /* the tenure's `ask`, which is formatted */
/* Takes this request out again, for a caller that sends it itself; NULL: the turn does not send it.
 * Others may stand before it: a name's repeated releases do. */
struct hli_op *hli_turn_take(struct hli_turn *turn, struct hli_op *op);
void hli_turn_finish(struct hli_turn *turn, struct hli_wait *wait, int code);
void hli_turn_watch(struct hli_turn *turn, struct hli_tenure *tenure, hli_ns at);
void hli_turn_unwatch(struct hli_turn *turn, struct hli_tenure *tenure);
void hli_turn_timer(struct hli_turn *turn, hli_ns at);
void hli_turn_listen(struct hli_turn *turn); /* to its channels; the name has a contention */
void hli_turn_tell(struct hli_turn *turn, struct hli_callback *callback);
void hli_turn_change(struct hli_turn *turn, struct hli_tenure *tenure,
                     hli_ns until);                                  /* the kind's `changed` */
void hli_turn_act(struct hli_turn *turn, struct hli_tenure *tenure); /* the quorum's `act` */
/* The tenure has ended, and the name has dropped it: the quorum's `act`, too. */
void hli_turn_unref(struct hli_turn *turn, struct hli_tenure *tenure);

#endif
