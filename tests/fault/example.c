/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fault test that tests/README.md writes step by step. */

#include "support/events.h"
#include "support/kit.h"

Law(example, a_deleted_lock_is_lost_and_no_renewal_brings_it_back)
{
    static struct events events; /* static: the client is closed behind the body */
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    redis_do(server, "DEL stock");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_free(lock);
}
