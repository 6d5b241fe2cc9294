/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Counts of events. */

#include "events.h"

#include "test.h"

void count_event(const hl_event *event, void *events)
{
    struct events *all = events;
    snprintf(all->reason[event->kind], sizeof all->reason[0], "%s",
             event->reason ? event->reason : "");
    atomic_store(&all->at_ns[event->kind], now_ns());
    atomic_fetch_add(&all->told[event->kind], 1);
}

int events_told(struct events *events, hl_event_kind kind)
{
    return atomic_load(&events->told[kind]);
}

struct wish {
    struct events *events;
    hl_event_kind kind;
    int count;
};

static bool is_granted(void *arg)
{
    const struct wish *wish = arg;
    return events_told(wish->events, wish->kind) >= wish->count;
}

bool events_wait(struct events *events, hl_event_kind kind, int count, int64_t ms)
{
    return wait_until(is_granted, &(struct wish){events, kind, count}, ms);
}
