/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A poll: a ballot's attempt at all masters, for one request of the engine. By the thread that
 * makes the ballot's steps. */
#ifndef HLI_LEASE_SEVERAL_POLL_H
#define HLI_LEASE_SEVERAL_POLL_H

#include "lease/several/ballot.h"

/* The step of a tenure that asks. */
void hli_poll_step(struct hli_ballot *ballot);

/* Asks the masters that have no vote for the ballot, all at once. */
void hli_poll_ask(struct hli_ballot *ballot);

/* The engine's request has this answer. That may end the tenure, or send the next request. */
void hli_poll_answer(struct hli_ballot *ballot, const struct hli_answer *answer);

#endif
