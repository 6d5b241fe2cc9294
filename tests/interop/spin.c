/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_spin_lock and RSpinLock, whose releases publish nothing; and beside them locks that listen. */
#include "laws.h"

#include "support/actor.h"
#include "support/kinds.h"

static hl_lock *new_spin(hl_client *client, const char *name)
{
    hl_lock *lock = NULL;
    expect_ok(spin_lock_new(client, name, NULL, &lock, NULL));
    return keep_lock(lock);
}

static hl_lock *new_listening(hl_client *client)
{
    hl_lock *lock = NULL;
    const hl_lock_options options = {.size = sizeof options,
                                     .flags = HL_LOCK_SUBSCRIBE,
                                     .backoff_min_ms = 60000,
                                     .backoff_max_ms = 60000};
    expect_ok(spin_lock_new(client, "stock", &options, &lock, NULL));
    return keep_lock(lock);
}

static bool are_made(void *arg)
{
    const int64_t *calls = arg;
    return redis_evalsha_calls(server) >= *calls;
}

/* No client listens, but one asks again and again. */
static void java_spins(const char *name, int n)
{
    (void)name;
    int64_t calls = redis_evalsha_calls(server) + 3 * (int64_t)n;
    check(wait_until(are_made, &calls, 20000));
}

static const struct lock_kind spin = {"spin", new_spin, java_spins};

LawsOfWaking(spin) LawsOfLeases(spin) LawOfWatchdogs(RedissonLaw, spin) LawsOfReentry(spin)

    EverywhereLaw(spin_lock_that_listens, hears_a_lock_of_javas)
{
    hl_client *client = open_client_that_hardly_polls();
    hl_lock *lock = new_listening(client);
    struct actor *waiter = actor_start();
    redisson_do("t1", "lock.lock stock");
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    java_listens("stock", 1);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "lock.unlock stock");
    expect_ok(actor_end(waiter));
    expect_woken(monotonic_ms(), before_ms);
}

RedissonLaw(lock_of_c, that_waits_for_a_spin_lock_of_javas_finds_out_by_its_poll)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    struct actor *waiter = actor_start();
    redisson_do("t1", "spin.lock stock");
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 1);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "spin.unlock stock");
    expect_ok(actor_end(waiter));
    expect_woken(monotonic_ms(), before_ms);
    expect_ok(actor_release(waiter, lock, NULL));
}

RedissonLaw(spin_lock_of_javas, that_waits_for_a_lock_of_c_gets_it)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = redisson_begin("t1", "spin.lock stock");
    java_spins("stock", 1);
    check(!redisson_is_done(waits));
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
    redisson_do("t1", "spin.unlock stock");
}
