/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Leading: a caller that blocks reads the connection itself while its request is in flight. It
 * tells those answers that need nothing of the loop, its own above all; anything else, and every
 * trouble, it leaves to the loop as it found it, in order.
 */
#ifndef HLI_REDIS_LEAD_H
#define HLI_REDIS_LEAD_H

#include "base/thread.h"
#include "redis/conn.h"

/* This thread was given the role: it reads until the gate is opened or poked, the deadline comes,
 * or the loop takes over. */
void hli_conn_lead(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline);

/* How a leader polls busily before it sleeps. After some polls in vain it leaves it be for a while:
 * the server may have no core to itself, and then they only keep it from answering. */
bool hli_lead_polls(struct hli_lead_polling *polling);
void hli_lead_has_polled(struct hli_lead_polling *polling, bool was_worth_it);

#endif
