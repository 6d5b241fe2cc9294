/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A voter: the name of a client for its master in a Redlock (struct hli_voter in state/name.h). It
 * tells the Redlock's name what happens at its master. The hooks of its kind (kind.h). */
#ifndef HLI_LEASE_SEVERAL_VOTER_H
#define HLI_LEASE_SEVERAL_VOTER_H

#include "lease/state/turn.h"

void hli_voter_changed(struct hli_tenure *vote, hli_ns until);
void hli_voter_heard(struct hli_name *voter);

#endif
