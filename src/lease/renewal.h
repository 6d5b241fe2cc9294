/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Renewals: up to a hundred holds in one script, and at most eight such batches in flight, so that
 * callers are not walled off behind a wave of them. The batches are made once; renewing needs no
 * memory but for the command's text.
 */
#ifndef HLI_LEASE_RENEWAL_H
#define HLI_LEASE_RENEWAL_H

#include "lease/name.h"

enum { HLI_RENEWAL_HOLDS = 100, HLI_RENEWAL_BATCHES = 8 };

struct hli_renewal {
    TAILQ_ENTRY(hli_renewal) link;             /* the watchdog's, while it is idle */
    hl_client *client;                         /* immutable, as done */
    void (*done)(struct hli_renewal *renewal); /* it is idle again; loop thread */
    struct hli_task task;
    struct hli_op op;
    hli_script_id script; /* of all that are in it, as the lease */
    int64_t lease_ms;
    size_t count;
    struct hli_renewal_item {
        struct hli_tenure *tenure; /* counted */
        hli_ns due;                /* when it was to be renewed, for the statistics */
    } item[HLI_RENEWAL_HOLDS];
};

TAILQ_HEAD(hli_renewals, hli_renewal);

/* When one hold is due, those that are due so soon after it go along: holds that were taken one
 * after the other would else be renewed one by one, at several times the server's cost. */
hli_ns hli_renewal_slack(const hl_client *client);

void hli_renewal_init(struct hli_renewal *renewal, hl_client *client,
                      void (*done)(struct hli_renewal *renewal));
void hli_renewal_deinit(struct hli_renewal *renewal);

/* Consumes the reference; false when it is full, or is for another lease. */
bool hli_renewal_add(struct hli_renewal *renewal, struct hli_tenure *tenure);

/* Any thread: the loop writes it. */
void hli_renewal_post(struct hli_renewal *renewal);

#endif
