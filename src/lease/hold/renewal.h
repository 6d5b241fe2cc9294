/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Renewals: up to a hundred holds in one script. The number of holds in flight on a link is
 * bounded, so that the requests of callers do not wait behind a wave of renewals; many small
 * batches may still be in flight together. The batches are allocated once for each link; a renewal
 * needs memory only for the command's text.
 */
#ifndef HLI_LEASE_HOLD_RENEWAL_H
#define HLI_LEASE_HOLD_RENEWAL_H

#include "lease/state/name.h"

enum {
    HLI_RENEWAL_HOLDS = 100,     /* in one batch */
    HLI_RENEWAL_BATCHES = 64,    /* on one link */
    HLI_RENEWAL_IN_FLIGHT = 800, /* holds, on one link */
};

struct hli_renewal {
    TAILQ_ENTRY(hli_renewal) link; /* the watchdog's, while it is idle */
    hl_client *client;             /* immutable, as queue and done */
    struct hli_renewal_queue *queue;
    /* Called after the answer. The tenures still in the batch were not renewed, and are to be
     * queued again. Loop thread. */
    void (*done)(struct hli_renewal *renewal);
    struct hli_task task; /* sends the batch, once the watchdog has posted it */
    struct hli_op op;
    struct hli_link *sent_to;
    hli_ns reclaims_until; /* by our clock: until then it is a reclaim (grace.h); 0: a renewal */
    unsigned confirmed;    /* so many replicas have the answer (replicas.h) */
    hl_reason reason;      /* of a renewal that fails */
    size_t count;          /* that were sent */
    STAILQ_HEAD(, hli_tenure) tenures; /* a reference each */
};

TAILQ_HEAD(hli_renewals, hli_renewal);

void hli_renewal_init(struct hli_renewal *renewal, hl_client *client,
                      struct hli_renewal_queue *queue, void (*done)(struct hli_renewal *renewal));
void hli_renewal_deinit(struct hli_renewal *renewal);

/* The group of holds that may share a request: those of one script and one lease. As a number that
 * sorts the queue: a group stands together, and the shortest lease comes first. For a tenure that
 * is to be renewed. */
int64_t hli_renewal_group(const struct hli_tenure *tenure);

/* Consumes the reference; false when it is full, or is for another group. */
bool hli_renewal_add(struct hli_renewal *renewal, struct hli_tenure *tenure);

/* Takes the first tenure left in the batch, with its reference; NULL when there is none. */
struct hli_tenure *hli_renewal_pop(struct hli_renewal *renewal);

#endif
