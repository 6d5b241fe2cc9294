/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: one thread and one heap of deadlines. It finds what is due, declares by the clock
 * alone what is in jeopardy or lost, and hands renewals to the loop in batches. It does no I/O and
 * runs no user code, so neither a stuck loop nor a slow callback can hide a lease that ends.
 */
#ifndef HLI_LEASE_WATCHDOG_H
#define HLI_LEASE_WATCHDOG_H

#include "lease/tenure.h"

struct hli_watchdog;

/* Errors: HL_ENOMEM. */
int hli_watchdog_start(hl_client *client, struct hli_watchdog **ret_watchdog);
void hli_watchdog_stop(struct hli_watchdog *watchdog); /* joins the thread; batches in flight end by
                                                          themselves. NULL is fine */
void hli_watchdog_free(struct hli_watchdog *watchdog); /* stopped, and the loop too. NULL is fine */

/* Looks at the tenure no later than this. */
void hli_watchdog_wake_by(struct hli_watchdog *watchdog, struct hli_tenure *tenure, hli_ns at);
void hli_watchdog_remove(struct hli_watchdog *watchdog, struct hli_tenure *tenure);

/* Looks at all of them now: a thread has ended that holds. */
void hli_watchdog_review(struct hli_watchdog *watchdog);

#endif
