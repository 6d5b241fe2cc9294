/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Holds: their begin, their times, and their end; and the end of a tenure. From RELEASING on
 * nothing of a tenure is held here; its release goes out with the turn's plan (release.c), until it
 * is answered or the lease is over by itself.
 */
#ifndef HLI_LEASE_HOLD_HOLD_H
#define HLI_LEASE_HOLD_HOLD_H

#include "lease/state/waiters.h"

/* The current tenure has the key: the waiter's owner gets a hold. A lease time counts from `from`.
 * The caller has set `renew_at`. Name mutex. */
void hli_hold_begin(struct hli_turn *turn, struct hli_acquire *acquire, hli_ns from);

/* Gives the owner a hold of one level, with the times and options of `said`. Name mutex. */
void hli_hold_set(struct hli_tenure *tenure, struct hl_owner *owner, const struct hli_hold *said);

/* Checks the validity a second time, before the owner's call returns. False: too late, and the
 * tenure is released. A hold that stands for several permits is accepted only when the others are
 * adopted. Name mutex. */
bool hli_hold_accept(struct hli_turn *turn, struct hli_tenure *tenure);

/* Takes the hold out of the counters and of its owner's count. Name mutex. */
void hli_hold_end(struct hli_tenure *tenure, hli_ns now);

/* Moves a tenure to RELEASING, and ends the hold that it has. Name mutex. */
void hli_releasing_begin(struct hli_turn *turn, struct hli_tenure *tenure);

/* Releases an orphan: a field of ours that a late command put into Redis and no tenure knows. Name
 * mutex. */
void hli_releasing_orphan(struct hli_turn *turn, uint64_t number);
void hli_releasing_orphan_at(struct hli_turn *turn, uint64_t number, hli_ns at); /* not before */

/* ENDED: out of the name, and its reference is dropped at the turn's end. Name mutex. */
void hli_releasing_end(struct hli_turn *turn, struct hli_tenure *tenure);

/* Does the watchdog renew it, or look at it, when that is due? Name mutex. */
bool hli_hold_is_renewed(const struct hli_tenure *tenure);

/* Do enough replicas have the hold, by the last answer? An event tells when they do no more;
 * returns if that is now. Name mutex. */
bool hli_hold_confirm(struct hli_turn *turn, struct hli_tenure *tenure, bool is_confirmed);

/* Its key may be gone, though nobody has told: a renewal looks by then. That of a hold with a lease
 * time makes no lease longer. Name mutex. */
void hli_hold_look_by(struct hli_tenure *tenure, hli_ns at);

/* News that the key may be gone: a renewal that is sent from now on looks, by `at`. Of a tenure
 * without a hold nothing is done. Name mutex. */
void hli_hold_doubt(struct hli_turn *turn, struct hli_tenure *tenure, hli_ns at);

/* When JEOPARDY is due; two renewals may fail before that. Name mutex. */
hli_ns hli_hold_jeopardy_at(const struct hli_tenure *tenure);

/* True if JEOPARDY is still to be reported: watched, accepted, not yet warned. Name mutex. */
bool hli_hold_is_warned(const struct hli_tenure *tenure);

/* When the watchdog is to visit the tenure next; and when it is to visit it while IDLE. Name mutex.
 */
hli_ns hli_hold_due(const struct hli_tenure *tenure);
hli_ns hli_hold_idle_due(const struct hli_tenure *tenure);

/* What a tenure needs to know of a hold that came with another tenure's request. */
struct hli_adoption {
    uint64_t number;
    struct hli_hold hold; /* the owner is borrowed */
    hli_ns sent_at;
    int64_t lease_ms;
    unsigned term; /* of that request (grace.h) */
};
struct hli_adoption hli_hold_adoption(const struct hli_tenure *from); /* name mutex */

/* Gives a NEW tenure that hold, as if it had asked itself; its name takes over the caller's
 * reference. False: the client is closed, and nothing is done. Without a mutex. */
bool hli_hold_adopt(struct hli_tenure *tenure, const struct hli_adoption *adoption);

/* Accepts the name's own hold once all others that came with its request are adopted; before that,
 * a close releases all of them by this one. False: it is lost. Without a mutex. */
bool hli_hold_stand_alone(struct hli_name *name);

/* What an owner has in the other half of a read-write lock. */
struct hli_beside {
    uint64_t number; /* of the tenure */
    unsigned term;   /* in which its server has given or confirmed it; 0: nothing makes it longer */
};

/* False: the owner certainly holds nothing there. Without a mutex. */
bool hli_hold_beside(const struct hli_name *name, const struct hl_owner *owner,
                     struct hli_beside *ret_beside);

#endif
