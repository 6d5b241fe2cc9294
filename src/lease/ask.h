/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Asking Redis for a name, on behalf of whoever waits first; and what the answers mean. */
#ifndef HLI_LEASE_ASK_H
#define HLI_LEASE_ASK_H

#include "lease/acquire.h"

/* Asks if somebody waits, nobody of this process holds, and no request is under way. Name mutex. */
void hli_ask_go(struct hli_turn *turn);

/* Nobody waits any more: what the tenure may have got, or may still get, is released. Name mutex.
 */
void hli_ask_abandon(struct hli_turn *turn);

/* Sends what differs from Redis: a nested call's longer lease, or the hold count. Name mutex. */
void hli_ask_deepen(struct hli_turn *turn, struct hli_tenure *tenure);

/* Ends all waits with this. Name mutex. */
void hli_ask_fail_all(struct hli_turn *turn, int code, const char *text);

/* On the loop thread. */
void hli_ask_on_message(struct hli_name *name);
void hli_ask_on_confirmed(struct hli_name *name);
void hli_ask_on_timer(struct hli_name *name);
void hli_ask_on_link_up(struct hli_name *name);
void hli_ask_on_link_failed(struct hli_name *name, const hl_error *err);

#endif
