/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Reentering: nested calls of a hold's owner, and the hold count in Redis. Name mutex, all of it.
 */
#ifndef HLI_LEASE_HOLD_REENTER_H
#define HLI_LEASE_HOLD_REENTER_H

#include "lease/state/waiters.h"

/* Nests a call of the hold's owner: at once, or after an answer when the lease must become longer.
 */
void hli_reenter_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                       struct hli_acquire *acquire);

/* Undoes a nested call of a multi-lock acquire that failed: its level, and its change of the hold's
 * end. Name mutex. */
void hli_reenter_undo(struct hli_tenure *tenure, const struct hli_acquire *acquire);

/* Of a mode that needs replicas: has a nested call nothing to ask them for? */
bool hli_reenter_has_replicas(const struct hli_hold *hold, const struct hli_acquire_mode *mode);

/* Sends what Redis does not have yet: a nested call's longer lease at once, the hold count a moment
 * later. */
void hli_reenter_plan(struct hli_turn *turn);

/* May this count reach Redis later, without any action now? */
bool hli_reenter_may_wait(const struct hli_tenure *tenure, uint32_t count);

/* Takes the answer to a REENTER or COUNT, while the tenure is OWN. False: the key is gone. */
bool hli_reenter_answered(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                          const struct hli_answer *answer);

#endif
