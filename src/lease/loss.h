/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Losing a hold: the one place that declares it over before its release. */
#ifndef HLI_LEASE_LOSS_H
#define HLI_LEASE_LOSS_H

#include "lease/turn.h"

/* OWN becomes LOST; its owner is told by an event, and by HL_ELOST. `reason` is a constant string.
 * Name mutex. */
void hli_loss_declare(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason);

/* Is the validity of a tenure over that is held or kept? Declares it if so. Name mutex. */
bool hli_loss_by_time(struct hli_turn *turn, struct hli_tenure *tenure);

/* The server says that the key of a tenure that is held or kept is not there any more. Name mutex.
 */
void hli_loss_of_key(struct hli_turn *turn, struct hli_tenure *tenure);

/* The watchdog's look at a tenure that is due, or nearly: declares jeopardy or loss by the clock
 * alone. Returns when to look again, HLI_NEVER when never; and whether it is to be renewed. */
hli_ns hli_loss_look(struct hli_tenure *tenure, bool *ret_renew);

#endif
