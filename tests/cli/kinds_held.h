/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One hold of each kind that is no plain lock, and a waiter, for commands that tell kinds apart:
 * "seats", "reads", "writes", "fenced" and "fair". */
#ifndef HL_TEST_KINDS_HELD_H
#define HL_TEST_KINDS_HELD_H

#include "support/actor.h"
#include "support/kit.h"

struct kinds_held {
    hl_permits *permits;
    hl_permit permit;
    hl_lock *fair;
    struct actor *waiter; /* for the fair lock */
};

static inline struct kinds_held kinds_take(hl_client *client, hl_client *other)
{
    struct kinds_held held = {.fair = new_kind(client, "fair", HL_LOCK_FAIR)};

    expect_ok(hl_permits_new(client, "seats", &held.permits, ERR));
    expect_ok(hl_permits_try_set_total(held.permits, 3, 0, ERR));
    expect_ok(hl_permits_acquire(held.permits, &held.permit, ERR));
    expect_ok(hl_lock_acquire(new_kind(client, "reads", HL_LOCK_READ), ERR));
    expect_ok(hl_lock_acquire(new_kind(other, "reads", HL_LOCK_READ), ERR));
    expect_ok(hl_lock_acquire(new_kind(client, "writes", HL_LOCK_WRITE), ERR));
    expect_ok(hl_lock_acquire(new_kind(client, "fenced", HL_LOCK_FENCED), ERR));
    expect_ok(hl_lock_acquire(held.fair, ERR));
    held.waiter = actor_start_acquire(new_kind(other, "fair", HL_LOCK_FAIR),
                                      ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_int(server, 1, 10000, "LLEN redisson_lock_queue:{fair}"));
    return held;
}

/* The fair lock has its waiter, and the permit is given back. */
static inline void kinds_pass_on(struct kinds_held *held)
{
    expect_ok(hl_lock_release(held->fair, ERR));
    expect_ok(actor_end(held->waiter));
    expect_ok(hl_permits_release(held->permits, &held->permit, ERR));
    hl_permits_free(held->permits);
}

#endif
