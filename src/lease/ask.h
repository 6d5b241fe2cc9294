/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Asking Redis for a name, on behalf of whoever waits first; and what the answers mean. */
#ifndef HLI_LEASE_ASK_H
#define HLI_LEASE_ASK_H

#include "lease/acquire.h"

/* Asks if somebody waits, nobody of this process holds, and no request is under way. Name mutex. */
void hli_ask_go(struct hli_turn *turn);

/* Some waiters were served by a request, sent then, whose answer says that the next one it asked
 * for has to wait: there is a tenure that has asked already. Name mutex. */
void hli_ask_wait_on(struct hli_turn *turn, const struct hli_answer *answer, hli_ns sent_at);

/* Nobody waits any more: what the tenure may have got, or may still get, is released. Name mutex.
 */
void hli_ask_abandon(struct hli_turn *turn);

/* Ends all waits with this. Name mutex. */
void hli_ask_fail_all(struct hli_turn *turn, int code, const char *text);

enum { HLI_NO_MEMORY_MS = 10 }; /* how long to pause after a request that could not be written */

/* Sends the tenure's `ask`, which is formatted; ask.c sorts the answer. Name mutex. */
void hli_ask_send(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking);

/* Does somebody wait who is to stand in the queue? Name mutex. */
bool hli_ask_queues(const struct hli_name *name);

#endif
