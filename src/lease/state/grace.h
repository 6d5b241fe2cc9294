/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The grace of a term (redis/term.h), as names and holds see it. After a failover or a restart the
 * server may lack what it gave before. So while the grace lasts no request is sent that takes what
 * is free, and each hold is brought into the new term by a renewal that may write it anew: it is
 * reclaimed. Until that is answered, the hold stands by its validity alone, and other requests
 * about it wait.
 */
#ifndef HLI_LEASE_STATE_GRACE_H
#define HLI_LEASE_STATE_GRACE_H

#include "lease/state/turn.h"

/* Does the client know of terms? Asked before each of these, so that a client without the option
 * pays for nothing. */
#define HLI_GRACE_IS_ON(client) ((client)->settings.failover_grace_ms > 0)

/* The term of the name's server now (hli_term.number), for a request that is decided now; 0 without
 * the option, and for a kind without a reclaim, whose names know no grace. */
unsigned hli_grace_term(const struct hli_name *name);

/* Until when nobody takes what is free; 0: from now on everybody may. By our clock. */
hli_ns hli_grace_until(const struct hli_name *name, hli_ns now);

/* Until when the server may write for a hold that it lost and that is valid until then, with the
 * margin for clocks that drift, or until the grace ends: by the server's clock, for a request that
 * may run late; 0: it may not. */
int64_t hli_grace_lasts_ms(const struct hli_name *name, hli_ns until, hli_ns now);

/* Has the server given or confirmed the hold in its present term? Name mutex. */
bool hli_grace_is_met(const struct hli_tenure *tenure);

/* The hold's link is up, or the hold began by an answer of an earlier one. If the term is new to
 * the hold, it is to be brought there now; or it is final, if less is left of it than the time for
 * which an old master may go on: that one might give the lock away meanwhile. Without a grace there
 * was no failover: the slot has moved. Name mutex. */
void hli_grace_meet(struct hli_turn *turn, struct hli_tenure *tenure);

/* May the server have lost a hold that is released, though nobody else can have it? No earlier copy
 * of its release may have run. Then the release may write for it until the grace is over, or
 * old_master_ms before its lease is. Name mutex. */
bool hli_grace_is_missed(const struct hli_tenure *tenure, hli_ns now);

/* The most that a hold with a lease of so many milliseconds may believe: after a failover its lock
 * is free when the grace is over, also if another client has given it for longer. */
int64_t hli_grace_at_most(const hl_client *client, int64_t lease_ms);

/* Why a hold that is final gets no longer lease: HL_ESERVER. */
#define HLI_GRACE_IS_FINAL                                                                         \
    "the server failed over when less than old_master_ms was left of the hold, which ends soon"

/* Is this lease, or minimum time, short enough for the grace? Errors: HL_EINVAL, with a text for
 * that option. */
int hli_grace_check(const hl_client *client, const char *what, int64_t ms, hl_error *err);

#endif
