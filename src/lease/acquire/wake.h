/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Waking: the events from outside that make a name act: a message, a confirmed subscription, one
 * that has moved to another node, its timer. All of it on the loop thread, with a reference on the
 * name.
 */
#ifndef HLI_LEASE_ACQUIRE_WAKE_H
#define HLI_LEASE_ACQUIRE_WAKE_H

#include "lease/state/turn.h"

/* True when an ACQUIRE is sent because of the message. */
bool hli_wake_on_message(struct hli_name *name);
void hli_wake_on_yield(struct hli_name *name);
void hli_wake_on_confirmed(struct hli_name *name);
void hli_wake_on_moved(struct hli_name *name);
void hli_wake_on_timer(struct hli_name *name);

/* Sets the timer that ends a subscription without waiters. Name mutex; any thread. */
void hli_wake_plan(struct hli_turn *turn);

/* On the loop thread: the `starved` timer's function; every name is visited. */
void hli_client_wake_timerless(void *client);

#endif
