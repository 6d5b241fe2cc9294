/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The steps of a ballot: each event of a vote makes the next one. */
#ifndef HLI_LEASE_SEVERAL_BALLOT_STEPS_H
#define HLI_LEASE_SEVERAL_BALLOT_STEPS_H

#include "lease/several/ballot.h"

/* Formats of a Redlock's kind. Errors: HL_ENOMEM. */
int hli_ballot_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                       const struct hli_acquire_request *request);
int hli_ballot_release(const struct hli_tenure *tenure, struct hli_op *op,
                       const struct hli_release_request *release_request);

/* The hooks of a Redlock's kind (kind.h). */
extern const struct hli_quorum_hooks hli_ballot_hooks;

#endif
