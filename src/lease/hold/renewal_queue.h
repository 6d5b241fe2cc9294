/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The queue for renewals: holds that wait for a batch, and the batches. Each link has a queue of
 * its own, so that a server that does not answer delays no renewals at other servers. All queues
 * are guarded by the watchdog's mutex.
 */
#ifndef HLI_LEASE_HOLD_RENEWAL_QUEUE_H
#define HLI_LEASE_HOLD_RENEWAL_QUEUE_H

#include "lease/hold/renewal.h"

/* When holds of a slot, with this lease, are due next. */
struct hli_renewal_moment {
    _Atomic(hli_ns) at;
    _Atomic(int64_t) lease_ms;
};

struct hli_renewal_queue {
    SLIST_ENTRY(hli_renewal_queue) next;
    const struct hli_link *link;        /* immutable, as moments, once it is not NULL */
    struct hli_renewal_moment *moments; /* of each slot of a cluster, or NULL; owned */
    /* Tenures by their group, a reference each: those of this round, and of the next, for groups
     * that have had their turn. So none is overtaken twice, however many are late. */
    struct hli_heap ready, later;
    int64_t turn; /* the group that had the last turn of this round */
    struct hli_renewals idle;
    size_t in_flight; /* holds */
    struct hli_renewal batch[HLI_RENEWAL_BATCHES];
};

void hli_renewal_queue_init(struct hli_renewal_queue *queue, hl_client *client,
                            void (*done)(struct hli_renewal *renewal));
void hli_renewal_queue_set_link(struct hli_renewal_queue *queue, const struct hli_link *link,
                                bool is_for_cluster);
void hli_renewal_queue_deinit(struct hli_renewal_queue *queue); /* nothing waits */

/* Takes over the caller's reference. */
void hli_renewal_queue_add(struct hli_renewal_queue *queue, struct hli_tenure *tenure);

/* The first that waits, with its reference; NULL when there is none. */
struct hli_tenure *hli_renewal_queue_pop(struct hli_renewal_queue *queue);

/* Is there a hold for a batch, a batch for it, and room for a whole one in flight? */
bool hli_renewal_queue_may_send(const struct hli_renewal_queue *queue);

/* Fills an idle batch; NULL when none may be sent. */
struct hli_renewal *hli_renewal_queue_fill(struct hli_renewal_queue *queue);

/* The batch has been answered, and has no tenures any more. */
void hli_renewal_queue_take_back(struct hli_renewal *renewal);

#endif
