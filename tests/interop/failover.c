/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Nobody loses what it holds, and nobody waits until the lease's end. */
#include "failover.h"

#include "laws.h"

#include "support/actor.h"

enum { HEARS_SOON_MS = 8000 };

/* One master has both names, as long as no slot moves. */
static const char held_by_c[] = "stock", held_by_java[] = "pool";

static const struct lock_kind lock = {"lock", new_lock, java_listens};

static hl_client *open_client_that_outlasts_it(int64_t lease_ms)
{
    return open_client(CLIENT(.poll_ms = REDISSON_LEASE_MS, .watchdog_timeout_ms = lease_ms,
                              .outage_timeout_ms = slow_ms(60000)));
}

/* What a replica has of this connection's, it has of everybody's before. */
static void await_replica(void)
{
    redis_do(server, "SET mark:{%s} any", held_by_c);
    check(redis_int(server, "WAIT 1 0") >= 1);
    redis_do(server, "DEL mark:{%s}", held_by_c);
}

static void expect_c_is_woken(struct actor *waiter, hl_lock *wanted)
{
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "lock.unlock %s", held_by_java);
    expect_ok(actor_end(waiter));
    expect_woken(monotonic_ms(), before_ms);
    expect_redisson("t1", "false", "lock.tryLock %s", held_by_java);
    expect_ok(actor_release(waiter, wanted, NULL));
}

static bool java_hears(void *arg)
{
    (void)arg;
    return listeners("redisson_lock__channel:{stock}") == 1;
}

static bool java_hears_or_is_done(void *waits)
{
    return java_hears(NULL) || redisson_is_done(*(int *)waits);
}

static void expect_java_waits(int waits)
{
    check(wait_until(java_hears_or_is_done, &waits, REDISSON_LEASE_MS));
    check_msg(!redisson_is_done(waits), "Java waits no more: %s", redisson_end(waits));
}

/* Redisson asks nobody what it has missed until it is subscribed again. If it is not, the lease
 * that it has seen ends its wait. */
static void expect_java_is_served(int waits, hl_lock *held, bool hears)
{
    int64_t before_ms = monotonic_ms();
    check(hl_lock_is_held(held, NULL) && !redisson_is_done(waits));
    expect_ok(hl_lock_release(held, ERR));
    redisson_end(waits);
    if (hears)
        expect_woken(redisson_ended_ms(waits), before_ms);
    expect_outcome(hl_lock_try_acquire(held, NULL), HL_EBUSY);
    redisson_do("waiter", "lock.unlock %s", held_by_c);
}

void law_new_master(void (*change)(void), enum ear_of_java ear)
{
    hl_client *client = open_client_that_outlasts_it(ear == DEAF_BEHIND_IT ? BRIEF_MS : 0);
    hl_lock *held = new_lock(client, held_by_c), *wanted = new_lock(client, held_by_java);
    const struct redis_server *old = server = server_of(held_by_c);
    expect_ok(hl_lock_acquire(held, ERR));
    redisson_do("t1", "lock.lock %s", held_by_java);
    int waits = redisson_begin("waiter", "lock.lock %s", held_by_c);
    expect_java_waits(waits);
    struct actor *waiter = actor_start_acquire(wanted, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    java_listens(held_by_java, 1);
    await_replica();

    change();
    server = server_of(held_by_c);
    check(server != old && server_of(held_by_java) != old);
    check(!redisson_is_done(waits) && !actor_is_done(waiter));
    expect_c_is_woken(waiter, wanted);
    bool hears = ear == HEARS_BEHIND_IT && wait_until(java_hears, NULL, HEARS_SOON_MS);
    expect_java_is_served(waits, held, hears);
    if (!hears) {
        tell_figure("Redisson has not subscribed at the new master");
        redisson_close("java");
        redisson_open("java", 0);
    }
    expect_release_wakes_java(&lock, client, held_by_c);
    expect_unlock_wakes_c(&lock, client, held_by_c);
}
