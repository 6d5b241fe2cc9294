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

/* Sends what differs from Redis: a nested call's longer lease, or the hold count. */
void hli_deepen_go(struct hli_turn *turn, struct hli_tenure *tenure);

/* The answer to that, while the tenure is OWN. */
void hli_deepen_answered(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                         const struct hli_answer *answer);

#endif
