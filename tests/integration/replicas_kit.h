/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Clients and locks that ask for replicas. */
#ifndef HL_TEST_REPLICAS_KIT_H
#define HL_TEST_REPLICAS_KIT_H

#include "support/actor.h"
#include "support/events.h"
#include "support/replicas.h"

/* Of a client that waits for its one replica for so long. */
#define FOR_MS(ms, ...)                                                                            \
    CLIENT(.min_replicas = 1, .replicas_timeout_ms = (ms), .request_timeout_ms = slow_ms(40000),   \
           .outage_timeout_ms = slow_ms(60000), __VA_ARGS__)
#define WAITING ACQUIRE(.wait_ms = HL_WAIT_FOREVER)
#define REPLICATED(...) FOR_MS(slow_ms(1000), __VA_ARGS__)
#define IMPATIENT(...) FOR_MS(slow_ms(300), __VA_ARGS__) /* is to find too few */
#define PATIENT(...) FOR_MS(slow_ms(15000), __VA_ARGS__) /* something is to happen meanwhile */

static inline hl_lock *new_asking(hl_client *client, const char *name, int min_replicas)
{
    return new_lock_with(
        client, name,
        &(hl_lock_options){.size = sizeof(hl_lock_options), .min_replicas = min_replicas});
}

#endif
