/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* How long a lock lasts that the other side waits for: renewed by a watchdog, or until it ends. */
#include "redisson.h"

#include "support/actor.h"

enum { RENEWALS = 9 /* three leases and more */ };

static const char channel[] = "redisson_lock__channel:{stock}";
static const char not_locked[] = "java.lang.IllegalMonitorStateException: attempt to unlock lock";

/* A lease that a loaded machine renews in time. */
#define BRIEF_MS slow_ms(2000)

struct watch {
    int64_t last_ms;
    int renewals;
};

/* Each time that the key lasts longer than it did at the last look. */
static bool has_been_renewed(void *arg)
{
    struct watch *watch = arg;
    int64_t left_ms = redis_int(server, "PTTL stock");
    check(left_ms > 0);
    if (left_ms > watch->last_ms)
        watch->renewals++;
    watch->last_ms = left_ms;
    return watch->renewals > RENEWALS;
}

Law(watchdog_of_c, renews_while_java_waits_over_several_leases)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = BRIEF_MS));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = redisson_begin("t1", "lock.lock stock");
    expect_listening(channel, 1);
    check(wait_until(has_been_renewed, &(struct watch){0}, 60000));
    check(!redisson_is_done(waits));
    check(hl_lock_is_held(lock, NULL));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
}

Law(watchdog_of_java, renews_while_c_waits_over_several_leases)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    struct actor *waiter = actor_start();
    redisson_open("brief", BRIEF_MS);
    redisson_do("brief/t1", "lock.lock stock");
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_listening(channel, 1);
    check(wait_until(has_been_renewed, &(struct watch){0}, 60000));
    check(!actor_is_done(waiter));
    redisson_do("brief/t1", "lock.unlock stock");
    expect_ok(actor_end(waiter));
    expect_held_by(client, lock, 1);
}

Law(lease_of_c, is_over_for_java_that_waits)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    struct actor *holder = actor_start();
    expect_ok(actor_acquire(holder, lock, ACQUIRE(.lease_ms = 1000)));
    int waits = redisson_begin("t1", "lock.lock stock");
    redisson_end(waits);
    check(!actor_holds(holder, lock, NULL));
    expect_outcome(actor_release(holder, lock, NULL), HL_ELOST);
    expect_redisson("t1", "true", "lock.isHeldByCurrentThread stock");
    redisson_do("t1", "lock.unlock stock");
}

Law(lease_of_java, is_over_for_c_that_waits)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    expect_redisson("t1", "true", "lock.tryLock stock 0 1000");
    expect_ok(hl_lock_acquire_for(lock, 40000, NULL));
    expect_held_by(client, lock, 1);
    expect_redisson("t1", "false", "lock.isHeldByCurrentThread stock");
    expect_thrown(redisson_begin("t1", "lock.unlock stock"), not_locked);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
}

Law(lease_that_java_gives, ends_although_its_watchdog_renews_another_lock)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    redisson_open("brief", BRIEF_MS);
    redisson_do("brief/t1", "lock.lock other");
    redisson_do("brief/t1", "lock.lock stock 1000");
    expect_ok(hl_lock_acquire_for(lock, 40000, NULL));
    redisson_do("brief/t1", "lock.unlock other");
}

/* The holder of the one side dies, and is followed when its lease is over. */
Law(java_that_is_killed, is_followed_by_c_when_its_lease_ends)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    redisson_open_apart(BRIEF_MS);
    redisson_do("other/t1", "lock.lock stock");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisson_kill_apart();
    expect_ok(hl_lock_acquire_for(lock, 60000, NULL));
    expect_held_by(client, lock, 1);
}

Law(c_that_leaves_without_a_release, is_followed_by_java_when_its_lease_ends)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = BRIEF_MS));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = redisson_begin("t1", "lock.lock stock");
    expect_listening(channel, 1);
    close_client(client);
    redisson_end(waits);
    redisson_do("t1", "lock.unlock stock");
}
