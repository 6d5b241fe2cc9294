/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Waking: the events that come from outside and make a name move: a message, a confirmed
 * subscription, its timer, the link. All of it on the loop thread, with a reference on the name.
 */
#ifndef HLI_LEASE_WAKE_H
#define HLI_LEASE_WAKE_H

#include "lease/name.h"

/* True when it is asked for now, for that reason. */
bool hli_wake_on_message(struct hli_name *name);
void hli_wake_on_courtesy(struct hli_name *name);
void hli_wake_on_confirmed(struct hli_name *name);
void hli_wake_on_timer(struct hli_name *name);
void hli_wake_on_link_up(struct hli_name *name);
/* It could not come up; a denial ends all waits. */
void hli_wake_on_link_failed(struct hli_name *name, const hl_error *err);

#endif
