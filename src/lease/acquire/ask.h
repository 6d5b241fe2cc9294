/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Asking Redis for a name, for the first waiter; and the answers. */
#ifndef HLI_LEASE_ACQUIRE_ASK_H
#define HLI_LEASE_ACQUIRE_ASK_H

#include "lease/state/waiters.h"

/* Without waiters: ends the asking tenure, and releases what it may have got or may still get. Name
 * mutex. */
void hli_ask_abandon(struct hli_turn *turn);

/* If no owner of this process holds, asks the server for the waiters, now or at the planned time.
 * Name mutex. */
void hli_ask_plan(struct hli_turn *turn);

/* A request sent at `sent_at` served some waiters, and its answer says that the next waiter it
 * asked for must wait: gives that waiter a tenure that counts as having asked. Name mutex. */
void hli_ask_wait_on(struct hli_turn *turn, const struct hli_answer *answer, hli_ns sent_at);

/* The server cannot be reached, or refuses for now: ends the tries. A denial (HL_EDENIED) ends all
 * waits. Name mutex. */
void hli_ask_fail_for_now(struct hli_turn *turn, int code, const char *text);

/* Handle the answer of a tenure's `ask`: in a turn of its own; or in the caller's turn. */
void hli_ask_done(struct hli_op *op, const struct hli_answer *answer);
void hli_ask_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                      const struct hli_answer *answer);

#endif
