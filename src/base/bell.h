/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The bells: how a signal handler reaches every client's loop. hl_cancel_fire() may run in a signal
 * handler, so it can take no mutex and walk no list that others change: it rings all bells, and
 * each loop looks at its own waits.
 *
 * A bell is never freed, only hung again by a later client, so a ringer may hold a pointer to one
 * at any time.
 */
#ifndef HLI_BASE_BELL_H
#define HLI_BASE_BELL_H

#include <stdbool.h>

struct hli_bell;

/* Ringing writes to this eventfd (borrowed). Errors: NULL when memory is out. */
struct hli_bell *hli_bell_hang(int eventfd);

/* After it returns nobody writes to the eventfd any more. */
void hli_bell_take_down(struct hli_bell *bell);

/* Was it rung since the last call? */
bool hli_bell_was_rung(struct hli_bell *bell);

/* Async-signal-safe. */
void hli_bell_ring_all(void);

/* In a forked child: the bells are the parent's. */
void hli_bell_forget_all(void);

#endif
