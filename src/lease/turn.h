/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A turn: one visit to a name. It is entered with the name's mutex, decides, and collects what is
 * to be done; hli_turn_end() lets go of the mutex and does it. So no mutex is held across a write,
 * a wake-up or another mutex.
 */
#ifndef HLI_LEASE_TURN_H
#define HLI_LEASE_TURN_H

#include "lease/name.h"

struct hli_turn {
    struct hli_name *name;
    hli_ns now;
    struct hli_ops send;
    struct hli_waits finished;
    struct hli_tenure *watch,
        *unwatch; /* tell the watchdog of this one, or take that one from it */
    hli_ns watch_at;
    struct hli_contest *contest; /* with the two below */
    hli_ns timer_at;             /* HLI_NEVER: leave it as it is */
    bool wants_channel;
    bool distrusts;     /* the server answered READONLY */
    bool is_last_dying; /* a close may be waiting for it */
    STAILQ_HEAD(, hli_notice) notices;
    struct hli_tenures gone; /* references to be dropped */
};

void hli_turn_begin(struct hli_turn *turn, struct hli_name *name);
void hli_turn_end(struct hli_turn *turn);

/* With the turn's mutex: what is to be done at its end. */
void hli_turn_send(struct hli_turn *turn, struct hli_tenure *tenure,
                   struct hli_op *op); /* takes a reference for the op */
void hli_turn_finish(struct hli_turn *turn, struct hli_wait *wait, int code);
void hli_turn_watch(struct hli_turn *turn, struct hli_tenure *tenure, hli_ns at);
void hli_turn_unwatch(struct hli_turn *turn, struct hli_tenure *tenure);
void hli_turn_timer(struct hli_turn *turn, hli_ns at);
void hli_turn_notice(struct hli_turn *turn, struct hli_notice *notice);
void hli_turn_unref(struct hli_turn *turn, struct hli_tenure *tenure);

#endif
