/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Leading: a caller that blocks reads the connection itself while its request is in flight. It
 * delivers plain answers, which need no action of the loop: its own above all. It leaves any other
 * answer, and every error, to the loop, in order.
 */
#ifndef HLI_REDIS_LEAD_H
#define HLI_REDIS_LEAD_H

#include "base/gate.h"
#include "redis/conn.h"

/* This thread has the role: it reads until the gate is opened or nudged, the deadline comes, or the
 * loop takes the role. */
void hli_conn_lead(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline);

/* The same for the connections of these readers, as far as this thread has their roles. It leaves
 * each that has no request in flight any more, or whose role the loop takes. */
void hli_conns_lead(const struct hli_readers *readers, struct hli_gate *gate, hli_ns deadline);

/* Leads for messages, if no thread has the role. */
void hli_conn_listen(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline);

/* Busy polls of a leader before it sleeps: is the next one to be tried, and was the last one worth
 * it? After some polls in vain the next ones are skipped: a server that shares its core with the
 * leader cannot answer while the leader polls. */
bool hli_lead_polls(struct hli_lead_polling *polling);
void hli_lead_has_polled(struct hli_lead_polling *polling, bool was_worth_it);

#endif
