/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A lease change: a call sets the end of a hold anew, by a request of its own. While that request
 * is under way, it is not known which end the server has, so the sooner one counts here. At most
 * one such call is under way for a hold. A release meanwhile always sends its request; the tenure
 * is not kept.
 */
#ifndef HLI_LEASE_HOLD_LEASE_CHANGE_H
#define HLI_LEASE_HOLD_LEASE_CHANGE_H

#include "lease/calls/call.h"
#include "lease/state/turn.h"

enum hli_lease_change_how {
    /* The server's lease never gets shorter, so that no copy of the request that comes late takes
     * anything away: a sooner end is kept here, and the key is released then. */
    HLI_LEASE_EXTEND,
    /* The server's lease is set, also to a shorter one. No renewal is begun meanwhile; for one that
     * was begun before, the request has to wait. */
    HLI_LEASE_SET,
    /* The request gives the hold back, unless the server says that it did not. */
    HLI_LEASE_RETURN,
};

struct hli_lease_change {
    enum hli_lease_change_how how;
    int64_t lease_ms; /* the lease that the server is asked for */
    bool is_watched;  /* afterwards the watchdog renews the hold, with that lease */

    unsigned replicas;         /* of the hold, which must have the new lease (replicas.h) */
    struct hli_tenure *tenure; /* counted, from begin to end; NULL: not begun */
    unsigned term;             /* in which the server has it (grace.h); set before the end */
    bool is_unconfirmed;       /* the request has run, and fails for want of replicas */
    bool was_watched;
    hli_ns ended; /* as hold.ends */
};

/* To be called before the request; the change's first three fields are set. Name mutex. Errors:
 * HL_EINVAL: another is under way; HL_ESERVER: the hold is final (grace.h); HL_ELOST, HL_ENOTOWNER:
 * it is not held. */
int hli_lease_change_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                           struct hli_lease_change *change);

/* Must the request wait: for a renewal under way, which would undo a sooner end if it ran later; or
 * for the one that brings the hold into a new term? No other renewal begins meanwhile. Without a
 * mutex. */
bool hli_lease_change_is_early(const struct hli_lease_change *change);

/* The request has ended with this code; with HL_OK, it was sent at `sent_at`. Returns the code for
 * the caller: HL_ELOST when the hold is lost meanwhile. Without a mutex. */
int hli_lease_change_end(struct hli_lease_change *change, int code, hli_ns sent_at);

/* A call for a new lease of one hold. */
struct hli_lease_update {
    struct hli_call call;
    struct hli_lease_change change;
};

/* Ends the change, if it has begun. For `settle` of a call that begins a hli_lease_update. */
void hli_lease_update_settle(struct hli_call *call, int code);

#endif
