/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Holds: how one begins, goes deeper, and is given up. */
#ifndef HLI_LEASE_HOLD_H
#define HLI_LEASE_HOLD_H

#include "lease/acquire.h"

/* The current tenure has the key: the waiter becomes its owner. Its own lease time counts from
 * then; `renew_at` is set. Name mutex. */
void hli_hold_begin(struct hli_turn *turn, struct hli_acquire *acquire, hli_ns from);

/* The owner has one level of the tenure, as `said` describes it. Name mutex. */
void hli_hold_take(struct hli_tenure *tenure, struct hl_owner *owner, const struct hli_hold *said);

/* The owner has looked again. False: too late, and the tenure is let go. Name mutex. */
bool hli_hold_accept(struct hli_turn *turn, struct hli_tenure *tenure);

/* It no longer counts as held: for the counters, and for the owner. Name mutex. */
void hli_hold_end(struct hli_tenure *tenure, hli_ns now);

/* Does the watchdog renew it now? Name mutex. */
bool hli_hold_is_renewed(const struct hli_tenure *tenure);

/* When its owner is to be warned: two renewals may fail before. Name mutex. */
hli_ns hli_hold_jeopardy_at(const struct hli_tenure *tenure);

/* Is anybody to be warned then? Not who has been, nor who was not told yet that he has it. Name
 * mutex. */
bool hli_hold_is_warned(const struct hli_tenure *tenure);

/* When the watchdog is to look at it next, now and when it lingers. Name mutex. */
hli_ns hli_hold_due(const struct hli_tenure *tenure);
hli_ns hli_hold_idle_due(const struct hli_tenure *tenure);

/* A hold that came with another one's request: what its tenure needs to know of that. */
struct hli_adoption {
    uint64_t number;
    struct hli_hold hold; /* the owner is borrowed */
    hli_ns sent_at;
    int64_t lease_ms;
};
struct hli_adoption hli_hold_adoption(const struct hli_tenure *from); /* name mutex */

/* The tenure, NEW and in nobody's hands, holds as if it had asked itself; its name has the caller's
 * reference from now on. False: the client is closed, and nothing is done. Without a mutex. */
bool hli_hold_adopt(struct hli_tenure *tenure, const struct hli_adoption *adoption);

#endif
