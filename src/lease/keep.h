/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Keeping: a tenure that goes from one owner of this process to the next without a word to the
 * server. By a pass, to who waits already; or by lingering, for who may come soon. Only as long as
 * the server has said a moment ago that nobody else waits. Name mutex, all of it.
 */
#ifndef HLI_LEASE_KEEP_H
#define HLI_LEASE_KEEP_H

#include "lease/acquire.h"

/* The longest lease of what lingers: so long it outlives its process. */
enum { HLI_LINGER_LEASE_MS = 5000 };

/* The hold is over: gives the tenure to the first waiter. False: it may not, or there is none. */
bool hli_keep_pass(struct hli_turn *turn, struct hli_tenure *tenure);

/* The hold is over, and nobody waits: keeps the tenure for linger_ms. False: it may not. */
bool hli_keep_linger(struct hli_turn *turn, struct hli_tenure *tenure, int64_t linger_ms);

/* Gives what lingers to the first waiter, or lets go of it when that one cannot have it so. False:
 * the waiter has to ask. */
bool hli_keep_resume(struct hli_turn *turn);

/* The same two for a thread that is alone, as far as nothing has to be sent or told: what lingers
 * becomes its hold, accepted already; and its hold lingers. False: go the long way. */
bool hli_keep_take_up(struct hli_tenure *tenure, struct hl_owner *owner,
                      const struct hli_acquire_way *way);
bool hli_keep_leave(struct hli_tenure *tenure);

/* The server's word whether somebody else waits. */
void hli_keep_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_answer *answer);

#endif
