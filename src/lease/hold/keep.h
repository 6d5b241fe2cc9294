/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Keeping: a tenure goes from one owner of this process to the next without a request. A pass gives
 * it to a waiter; a retained tenure (IDLE) waits for an owner that may come soon. Both only while
 * the server's word that nobody else waits is fresh. Name mutex, all of it.
 */
#ifndef HLI_LEASE_HOLD_KEEP_H
#define HLI_LEASE_HOLD_KEEP_H

#include "lease/state/waiters.h"

/* The longest lease of a retained tenure: so long its key outlives a process that dies. */
enum { HLI_RETAIN_LEASE_MS = 5000 };

/* At the end of a hold: gives the tenure to the first waiter. False: not allowed, or no waiter. */
bool hli_keep_pass(struct hli_turn *turn, struct hli_tenure *tenure);

/* At the end of a hold without waiters: retains the tenure for retain_ms. False: not allowed. */
bool hli_keep_retain(struct hli_turn *turn, struct hli_tenure *tenure, int64_t retain_ms);

/* The plan of an IDLE tenure: gives it to the first waiter, or releases it: when that waiter needs
 * more than it has, when another process waits, or when its time is over. */
void hli_keep_plan(struct hli_turn *turn);

/* The same two steps for a thread without competition, when nothing has to be sent or reported: a
 * retained tenure becomes the thread's hold, accepted at once; a hold's tenure is retained. False:
 * take the usual way. */
bool hli_keep_resume_fast(struct hli_tenure *tenure, struct hl_owner *owner,
                          const struct hli_acquire_mode *mode);
bool hli_keep_retain_fast(struct hli_tenure *tenure, int64_t retain_ms);

/* Takes the answer of a KEEP, which says whether another process waits. False: the key is gone. */
bool hli_keep_answered(struct hli_tenure *tenure, const struct hli_answer *answer);

#endif
