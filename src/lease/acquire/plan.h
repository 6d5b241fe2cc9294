/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The plan: the requests and deadlines that follow from a name's state. Each turn ends with it, so
 * that code that changes the state need not know what has to be asked, released, shown or watched
 * because of the change.
 */
#ifndef HLI_LEASE_ACQUIRE_PLAN_H
#define HLI_LEASE_ACQUIRE_PLAN_H

#include "lease/state/turn.h"

/* The functions that the lower rooms call; each client gets the table when it is opened. */
extern const struct hli_engine hli_engine;

#endif
