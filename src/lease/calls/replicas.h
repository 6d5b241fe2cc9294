/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Replicas: how many of them must have what a request wrote before it counts. Such a number is that
 * of hli_op.replicas: 0, a number, HLI_OP_MAJORITY, or both.
 */
#ifndef HLI_LEASE_CALLS_REPLICAS_H
#define HLI_LEASE_CALLS_REPLICAS_H

#include "lease/calls/client.h"
#include "redis/op.h"

enum { HLI_REPLICAS_TEXT = 96 };

/* Is this a valid min_replicas? Errors: HL_EINVAL. */
int hli_replicas_check(int min_replicas, hl_error *err);

/* A handle's min_replicas as a number for requests; 0 takes the client's. */
unsigned hli_replicas_of(const hl_client *client, int min_replicas);

/* Writes why a request that has run is not confirmed: "1 of 2 replicas have it after 200 ms".
 * Returns the error's code. */
int hli_replicas_write(const hl_client *client, const struct hli_op *op,
                       const struct hli_answer *answer, char text[HLI_REPLICAS_TEXT]);

#endif
