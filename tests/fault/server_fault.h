/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fixture of the tests of server faults: clients with short times. */
#ifndef HL_TEST_SERVER_FAULT_H
#define HL_TEST_SERVER_FAULT_H

#include <pthread.h>

#include "support/actor.h"
#include "support/events.h"
#include "support/handle.h"
#include "support/kit.h"

/* Short times, so that an outage is over soon; a lease of 9 s, which no quick test sees expire.
 * events may be NULL. */
static inline hl_client_options fault_options(struct events *events)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.connect_timeout_ms = slow_ms(5000);
    options.request_timeout_ms = slow_ms(500) + 1500;
    options.outage_timeout_ms = slow_ms(800) + 1200;
    options.watchdog_timeout_ms = slow_ms(3000) + 6000;
    options.poll_ms = slow_ms(600); /* a grant stands for four of these */
    options.backoff_min_ms = 20;
    options.backoff_max_ms = 100;
    options.on_event = events ? count_event : NULL;
    options.arg = events;
    return options;
}

static inline hl_client *open_impatient(struct events *events)
{
    hl_client_options options = fault_options(events);
    return open_client(&options);
}

#endif
