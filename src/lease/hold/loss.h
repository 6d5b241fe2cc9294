/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Losing a hold: the one place that declares it over before its release. */
#ifndef HLI_LEASE_HOLD_LOSS_H
#define HLI_LEASE_HOLD_LOSS_H

#include "lease/state/turn.h"

/* Moves OWN to LOST; an event reports it to the owner, and HL_ELOST its later calls. `reason` is a
 * constant string. The loss of an IDLE tenure is not reported; its release removes what a late
 * command may have left. Name mutex. */
void hli_loss_declare(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason);

/* Writes the text of HL_ELOST: why and when the hold was lost, if known, and the advice. Name
 * mutex. */
enum { HLI_LOSS_SIZE = 160 };
#define HLI_LOSS_ADVICE ": release it once for each level, then acquire again"
void hli_loss_write(const struct hli_tenure *tenure, hli_ns now, const char *advice,
                    char text[HLI_LOSS_SIZE]);

/* Ends a nested call of a hold that is lost. Name mutex. */
void hli_loss_fail(struct hli_turn *turn, struct hli_acquire *acquire,
                   const struct hli_tenure *tenure);

/* Is the validity of a tenure over that is held or kept? Declares it if so. Name mutex. */
bool hli_loss_by_time(struct hli_turn *turn, struct hli_tenure *tenure);

/* The watchdog's visit to a tenure that is due or nearly due, and out of its heap: declares
 * jeopardy or loss by the clock alone. True: the tenure is to be renewed. */
bool hli_loss_check(struct hli_tenure *tenure);

#endif
