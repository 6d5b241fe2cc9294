/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a release has come to. Name mutex. */
#ifndef HLI_LEASE_HOLD_RELEASE_OUTCOME_H
#define HLI_LEASE_HOLD_RELEASE_OUTCOME_H

#include "lease/state/turn.h"

/* Ends a call of release with an error. */
void hli_release_fail(struct hli_turn *turn, struct hli_wait *wait, int code, const char *text);

/* Tells the call that released this tenure, if one waits; reports the failure of a posted release.
 */
void hli_release_tell(struct hli_turn *turn, struct hli_tenure *tenure, int code, const char *text);

/* The script has answered. {1, ...}: the field held the lock until now; {0}: it holds nothing.
 * Tells the call, and notes which waiters come next. Returns if the field held the lock. */
bool hli_release_outcome(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_answer *answer);

#endif
