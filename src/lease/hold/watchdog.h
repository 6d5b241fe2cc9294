/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: one thread and one heap of deadlines. It visits the tenures that are due, declares
 * jeopardy and loss by the clock alone, and hands renewals to the loop in batches. It does no I/O
 * and runs no user code, so neither a stuck loop nor a slow callback can hide a lease that ends.
 */
#ifndef HLI_LEASE_HOLD_WATCHDOG_H
#define HLI_LEASE_HOLD_WATCHDOG_H

#include "lease/state/tenure.h"
#include "redis/loop.h"

struct hli_watchdog;

/* Errors: HL_ENOMEM. */
int hli_watchdog_start(hl_client *client, struct hli_watchdog **ret_watchdog);
void hli_watchdog_stop(struct hli_watchdog *watchdog); /* joins the thread; batches in flight end by
                                                          themselves. NULL is fine */
void hli_watchdog_free(struct hli_watchdog *watchdog); /* stopped, and the loop too. NULL is fine */

/* The watchdog of the tenure's client visits it no later than `at`, and takes over the caller's
 * reference; or visits it no more. */
void hli_watchdog_wake_by(struct hli_tenure *tenure, hli_ns at);
void hli_watchdog_remove(struct hli_tenure *tenure);

/* Visits all tenures now: a thread that holds some has ended. */
void hli_watchdog_review(struct hli_watchdog *watchdog);

/* Posts the task to the loop behind the renewals that are due now; if they are very many, behind
 * the first ones. Does not post it if the watchdog is stopped before. */
void hli_watchdog_post_behind(struct hli_watchdog *watchdog, struct hli_task *task);

#endif
