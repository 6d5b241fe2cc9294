/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* An attempt of a ballot at all masters, for one request of the engine. By the thread that
 * makes the ballot's steps. */
#ifndef HLI_LEASE_SEVERAL_ATTEMPT_H
#define HLI_LEASE_SEVERAL_ATTEMPT_H

#include "lease/several/ballot.h"

/* The step of a tenure that asks. */
void hli_attempt_step(struct hli_ballot *ballot);

/* Asks the masters that have no vote for the ballot, all at once. */
void hli_attempt_ask(struct hli_ballot *ballot);

/* The engine's request has this answer. That may end the tenure, or send the next request. */
void hli_attempt_answer(struct hli_ballot *ballot, const struct hli_answer *answer);

#endif
