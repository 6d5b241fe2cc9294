/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Deepening: nested calls of a hold's owner, and the hold count in Redis. Name mutex, all of it. */
#ifndef HLI_LEASE_DEEPEN_H
#define HLI_LEASE_DEEPEN_H

#include "lease/acquire.h"

/* A nested call of the owner: done at once, or after an answer when the lease must become longer.
 */
void hli_deepen_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                      struct hli_acquire *acquire);

/* Sees to what differs from Redis: sends a nested call's longer lease at once, and lets the hold
 * count follow a moment later. */
void hli_deepen_go(struct hli_turn *turn, struct hli_tenure *tenure);

/* The moment is over: sends the count, if it still differs. */
void hli_deepen_show(struct hli_turn *turn, struct hli_tenure *tenure);

/* Would such a count be shown without anything being done about it now? */
bool hli_deepen_may_wait(const struct hli_tenure *tenure, uint32_t count);

/* The answer to that, while the tenure is OWN. */
void hli_deepen_answered(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                         const struct hli_answer *answer);

#endif
