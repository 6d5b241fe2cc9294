/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* min_replicas behind Sentinel: the next master has what replicas confirmed, and its own replicas
 * are asked from then on. */

#include "support/actor.h"
#include "support/topologies.h"

static void two_replicas_up(void)
{
    trio_up_with(&(struct trio_options){.replicas = 2});
}

#define ReplicatedLaw(...)                                                                         \
    Test(sentinel_replicas, __VA_ARGS__, .init = two_replicas_up, .fini = server_down)

static hl_client *open_replicated(int min_replicas, int64_t timeout_ms, struct events *events)
{
    return open_client_at(
        trio_url(trio),
        CLIENT(.min_replicas = min_replicas, .replicas_timeout_ms = slow_ms(timeout_ms),
               .request_timeout_ms = slow_ms(60000), .outage_timeout_ms = slow_ms(60000),
               .watchdog_timeout_ms = slow_ms(120000), .on_event = count_event, .arg = events));
}

static void end_master(void)
{
    struct redis_server *old = trio_master(trio);

    redis_server_kill(old);
    server = trio_await_switch(trio, old);
}

static void expect_confirmed(hl_client *client, const char *name)
{
    hl_lock *lock = new_lock(client, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    check(redis_int(trio_replica(trio), "EXISTS %s", name) == 1);
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

/* Both replicas have it: so whichever becomes the master has it, too. */
ReplicatedLaw(keep_a_hold_over_a_failover_and_are_waited_for_after_it)
{
    static struct events events;
    hl_client *client = open_replicated(2, 1000, &events);
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;

    expect_ok(hl_lock_acquire(lock, ERR));
    end_master();
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    expect_held_by(client, lock, 1);
    expect_outcome(hl_lock_acquire(new_lock(client, "another"), &err), HL_EREPLICAS);
    check_has(err.text, "of 2 replicas");
    trio_await_whole(trio); /* the other replica follows the new master */
    hl_lock *one = new_lock_with(
        client, "one", &(hl_lock_options){.size = sizeof(hl_lock_options), .min_replicas = 1});
    expect_ok(hl_lock_acquire(one, ERR));
    check_int(redis_int(trio_replica(trio), "EXISTS one"), 1);
    expect_ok(hl_lock_release(one, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

/* A waiter whose WAIT was under way when the master died asks the new one. */
ReplicatedLaw(are_asked_again_at_the_next_master_for_an_acquire_that_waits_for_them)
{
    static struct events events;
    hl_client *client = open_replicated(HL_REPLICAS_MAJORITY, 20000, &events);
    hl_lock *lock = new_lock(client, "stock");

    expect_confirmed(client, "before");
    redis_do(trio_master(trio), "CLIENT PAUSE 600000 ALL");
    struct actor *actor = actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 1);
    end_master();
    expect_ok(actor_end(actor));
    expect_held_by(client, lock, 1);
    check_int(redis_int(trio_replica(trio), "EXISTS stock"), 1);
    expect_ok(actor_release(actor, lock, NULL));
    trio_await_whole(trio);
    for (int i = 0; i < 3; i++)
        expect_confirmed(client, "after");
}
