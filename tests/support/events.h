/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Counts a client's events by kind, for tests that wait for an event. A test of their order uses a
 * recorder (recorder.h). */
#ifndef HL_TEST_EVENTS_H
#define HL_TEST_EVENTS_H

#include <hirelock/hirelock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { EVENT_KINDS = HL_EVENT_CHANNELS_DENIED + 1 };

struct events {
    atomic_int told[EVENT_KINDS];
    char reason[EVENT_KINDS][256];      /* of the last event; written before it is counted */
    _Atomic int64_t at_ns[EVENT_KINDS]; /* of the last event */
};

void count_event(const hl_event *event, void *events); /* for .on_event; .arg is the counts */

int events_told(struct events *events, hl_event_kind kind);
bool events_wait(struct events *events, hl_event_kind kind, int count, int64_t ms);

#endif
