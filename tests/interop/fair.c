/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_fair_lock and RFairLock: one queue of waiters of both. */
#include "laws.h"
#include "stock.h"

#include "support/actor.h"
#include "support/kinds.h"
#include "support/process.h"

/* Java's waiters are told to stay in the queue for five minutes. */
enum { JAVA_PLACE_MS = 300000, RUN_MS = 4000 };

static hl_lock *new_fair(hl_client *client, const char *name)
{
    hl_lock *lock = NULL;
    expect_ok(fair_lock_new(client, name, NULL, &lock, NULL));
    return keep_lock(lock);
}

static void expect_queue(const char *name, int n)
{
    struct redis_server *node = server_of(name);
    check_msg(redis_wait_int(node, n, 20000, "LLEN redisson_lock_queue:{%s}", name),
              "in the queue: %s", redis_str(node, "LRANGE redisson_lock_queue:{%s} 0 -1", name));
}

static const struct lock_kind fair = {"fair", new_fair, expect_queue};

LawsOfWaking(fair) LawsOfLeases(fair) LawOfWatchdogs(RedissonLaw, fair) LawsOfReentry(fair)

    /* ---- Order ---- */

    static struct actor *c_queues(hl_lock *lock, int place)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_queue("stock", place);
    return actor;
}

static int java_queues(const char *who, int place)
{
    int waits = redisson_begin(who, "fair.lock stock");
    expect_queue("stock", place);
    return waits;
}

EverywhereLaw(queue, of_both_sides_is_served_in_the_order_of_arrival)
{
    hl_lock *lock[] = {new_fair(open_client(NULL), "stock"), new_fair(open_client(NULL), "stock")};
    redisson_do("t0", "fair.lock stock");
    struct actor *c1 = c_queues(lock[0], 1);
    int j1 = java_queues("t1", 2);
    struct actor *c2 = c_queues(lock[1], 3);
    struct actor *c3 = c_queues(lock[0], 4);
    int j2 = java_queues("t2", 5);

    redisson_do("t0", "fair.unlock stock");
    expect_ok(actor_end(c1));
    check(!redisson_is_done(j1));
    expect_ok(actor_release(c1, lock[0], NULL));
    redisson_end(j1);
    check(!actor_is_done(c2));
    redisson_do("t1", "fair.unlock stock");
    expect_ok(actor_end(c2));
    check(!actor_is_done(c3));
    expect_ok(actor_release(c2, lock[1], NULL));
    expect_ok(actor_end(c3));
    check(!redisson_is_done(j2));
    expect_ok(actor_release(c3, lock[0], NULL));
    redisson_end(j2);
    redisson_do("t2", "fair.unlock stock");
    expect_free(lock[0]);
    expect_queue("stock", 0);
}

RedissonLaw(call_without_waiting, never_overtakes_a_waiter_of_either_side)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fair(client, "stock");
    hl_lock *free_of_c = new_fair(open_client(NULL), "stock");
    redisson_open_apart(BRIEF_MS);
    redisson_do("other/t1", "fair.lock stock");
    struct actor *waiter = c_queues(lock, 1);
    redisson_do("other/t1", "fair.unlock stock");
    expect_redisson("t1", "false", "fair.tryLock stock");
    expect_outcome(hl_lock_try_acquire(free_of_c, NULL), HL_EBUSY);
    expect_ok(actor_end(waiter));
}

/* ---- Waiters that leave ---- */

EverywhereLaw(waiter_that_gives_up, leaves_its_place_to_the_next_waiter)
{
    hl_lock *lock = new_fair(open_client_that_hardly_polls(), "stock");
    redisson_do("t0", "fair.lock stock");
    int gives_up = redisson_begin("t1", "fair.tryLock stock %d -1", (int)slow_ms(6000));
    expect_queue("stock", 1);
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, ACQUIRE(.wait_ms = slow_ms(4000)));
    expect_queue("stock", 2);
    int waits = java_queues("t2", 3);
    expect_outcome(actor_end(actor), HL_ETIMEDOUT);
    check_str(redisson_end(gives_up), "false");
    expect_queue("stock", 1);
    int64_t before_ms = monotonic_ms();
    redisson_do("t0", "fair.unlock stock");
    redisson_end(waits);
    expect_woken(redisson_ended_ms(waits), before_ms);
}

EverywhereLaw(head_of_the_queue, that_is_a_killed_java_is_skipped_by_c)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fair(client, "stock");
    redisson_open_apart(0);
    redisson_do("t0", "fair.lock stock");
    java_queues("other/t1", 1);
    struct actor *waiter = c_queues(lock, 2);
    redisson_kill_apart();
    int64_t before_ms = monotonic_ms();
    redisson_do("t0", "fair.unlock stock");
    expect_ok(actor_end(waiter));
    expect_woken(monotonic_ms(), before_ms);
    expect_ok(actor_release(waiter, lock, NULL));
}

/* Redisson keeps its own dead waiters for five minutes; beside clients of ours they go sooner. */
RedissonLaw(head_of_the_queue, that_is_a_killed_java_does_not_keep_another_java_out_beside_c)
{
    hl_lock *lock = new_fair(open_client(NULL), "stock");
    redisson_open_apart(0);
    expect_ok(hl_lock_acquire(lock, NULL));
    java_queues("other/t1", 1);
    int waits = java_queues("t1", 2);
    redisson_kill_apart();
    struct actor *waiter = c_queues(lock, 3);
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
    check(redisson_ended_ms(waits) - before_ms < JAVA_PLACE_MS / 10);
    redisson_do("t1", "fair.unlock stock");
    expect_ok(actor_end(waiter));
}

static void wait_for_ever(struct process *self, void *arg)
{
    (void)self;
    (void)arg;
    hl_lock *lock = new_fair(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
}

EverywhereLaw(head_of_the_queue, that_is_a_killed_c_is_skipped_by_java)
{
    redisson_open("brief", BRIEF_MS);
    redisson_do("brief/t0", "fair.lock stock");
    struct process *process = process_start(wait_for_ever, NULL);
    expect_queue("stock", 1);
    int waits = java_queues("brief/t1", 2);
    process_kill(process);
    int64_t before_ms = monotonic_ms();
    redisson_do("brief/t0", "fair.unlock stock");
    redisson_end(waits);
    expect_woken(redisson_ended_ms(waits), before_ms);
    process_finish(process, 1000);
}

/* ---- All at once ---- */

EverywhereLaw(stock, that_threads_of_both_sides_serve_in_turn_loses_nothing)
{
    hl_client *client = open_client(NULL);
    struct stock_result result = stock_run(&(struct stock_team){
        "fair", "stock", {new_fair(client, "stock"), new_fair(client, "stock")}, RUN_MS});
    /* How many turns depends on how fast each side comes back to the queue. */
    check(result.c.handovers > 0 && result.java.handovers > 0);
}
