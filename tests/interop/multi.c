/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_multi_lock and RMultiLock, whose members are ordinary locks of both sides. In a cluster each
 * is at another node. */
#include "redisson.h"
#include "stock.h"

#include "support/actor.h"

enum { RUN_MS = 4000, MEMBERS = 3 };

static const char *const members[MEMBERS] = {"a", "b", "c"};

static hl_lock *new_multi(hl_client *client)
{
    hl_lock *lock[MEMBERS], *multi = NULL;
    for (int i = 0; i < MEMBERS; i++)
        lock[i] = new_lock(client, members[i]);
    expect_ok(hl_multi_lock_new(lock, MEMBERS, NULL, &multi, NULL));
    return keep_lock(multi);
}

static void expect_all(const char *outcome, const char *who)
{
    for (int i = 0; i < MEMBERS; i++)
        expect_redisson(who, outcome, "lock.isLocked %s", members[i]);
}

EverywhereLaw(multi_lock, of_c_keeps_java_from_all_members_and_from_each)
{
    hl_lock *multi = new_multi(open_client(NULL));
    expect_ok(hl_lock_acquire(multi, NULL));
    expect_all("true", "t1");
    expect_redisson("t1", "false", "multi.tryLock a,b,c");
    for (int i = 0; i < MEMBERS; i++)
        expect_redisson("t1", "false", "lock.tryLock %s", members[i]);
    int waits = redisson_begin("t1", "multi.tryLock c,b,a 30000 -1");
    expect_listening("redisson_lock__channel:{c}", 1);
    expect_ok(hl_lock_release(multi, NULL));
    check_str(redisson_end(waits), "true");
    expect_outcome(hl_lock_try_acquire(multi, NULL), HL_EBUSY);
    redisson_do("t1", "multi.unlock a,b,c");
    expect_ok(hl_lock_try_acquire(multi, NULL));
}

EverywhereLaw(multi_lock, of_c_waits_for_the_one_member_that_java_holds)
{
    hl_client *client = open_client_that_hardly_polls();
    hl_lock *multi = new_multi(client);
    struct actor *waiter = actor_start();
    redisson_do("t1", "lock.lock b");
    expect_outcome(hl_lock_try_acquire(multi, NULL), HL_EBUSY);
    expect_redisson("t1", "false", "lock.isLocked a");
    expect_redisson("t1", "false", "lock.isLocked c");
    actor_begin_acquire(waiter, multi, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_listening("redisson_lock__channel:{b}", 1);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "lock.unlock b");
    expect_ok(actor_end(waiter));
    expect_woken(monotonic_ms(), before_ms);
    expect_all("true", "t1");
    expect_ok(actor_release(waiter, multi, NULL));
    expect_all("false", "t1");
}

EverywhereLaw(multi_lock, of_javas_waits_for_the_one_member_that_c_holds)
{
    hl_lock *lock = new_lock(open_client(NULL), "b");
    hl_lock *multi = new_multi(open_client(NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = redisson_begin("t1", "multi.lock a,b,c");
    expect_listening("redisson_lock__channel:{b}", 1);
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(multi, NULL), HL_EBUSY);
    redisson_do("t1", "multi.unlock a,b,c");
    expect_ok(hl_lock_try_acquire(multi, NULL));
}

static struct stock_result serve_beside_java(const char *javas_members)
{
    hl_lock *multi = new_multi(open_client(NULL));
    struct stock_result result =
        stock_run(&(struct stock_team){"multi", javas_members, {multi}, RUN_MS});
    check(result.c.turns > 0);
    return result;
}

/* That of C: of the names, or in a cluster of their slots. */
EverywhereLaw(multi_locks, of_both_sides_in_one_order_take_turns)
{
    struct stock_result result = serve_beside_java(servers_kind == CLUSTER ? "b,c,a" : "a,b,c");
    check(result.java.turns > 20 && result.c.turns > 20);
}

/* Each waits for what the other holds, until Java gives up for a while, after 1.5 s a member. */
RedissonLaw(multi_locks, of_both_sides_in_opposite_orders_do_not_stand_still)
{
    check(serve_beside_java("c,b,a").java.turns > 0);
}

/* A second server, at which C and Java have a client each. */
static struct redis_server *second;

static hl_lock *new_multi_at_two(const char *first_name, const char *second_name)
{
    second = redis_server_start(&(struct redis_options){.tcp = true});
    redisson_do("-", "open second %s 0", redis_server_url(second));
    hl_lock *lock[] = {new_lock(open_client(NULL), first_name),
                       new_lock(open_client_at(redis_server_url(second), NULL), second_name)};
    hl_lock *multi = NULL;
    expect_ok(hl_multi_lock_new(lock, 2, NULL, &multi, NULL));
    return keep_lock(multi);
}

static void end_second(void)
{
    check_int(redis_int(second, "DBSIZE"), 0);
    redisson_close("second");
    redis_server_stop(second);
}

RedissonLaw(multi_lock, over_two_servers_is_redissons_over_two_clients)
{
    hl_lock *multi = new_multi_at_two("a", "b");
    expect_ok(hl_lock_acquire(multi, NULL));
    expect_redisson("t1", "true", "lock.isLocked a");
    expect_redisson("second/t1", "true", "lock.isLocked b");
    expect_redisson("t1", "false", "servers.tryLock java:a,second:b");
    int waits = redisson_begin("t1", "servers.tryLock java:a,second:b 30000 -1");
    expect_listening("redisson_lock__channel:{a}", 1);
    expect_ok(hl_lock_release(multi, NULL));
    check_str(redisson_end(waits), "true");
    expect_outcome(hl_lock_try_acquire(multi, NULL), HL_EBUSY);
    redisson_do("t1", "servers.unlock java:a,second:b");
    expect_ok(hl_lock_try_acquire(multi, NULL));
    expect_ok(hl_lock_release(multi, NULL));
    end_second();
}

RedissonLaw(multi_lock, over_two_servers_waits_for_the_member_that_java_holds)
{
    hl_lock *multi = new_multi_at_two("a", "b");
    redisson_do("second/t1", "lock.lock b");
    expect_outcome(hl_lock_try_acquire(multi, NULL), HL_EBUSY);
    check(redis_wait_int(server, 0, 10000, "EXISTS a")); /* given back behind the call */
    expect_redisson("t1", "false", "lock.isLocked a");
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(second, "redisson_lock__channel:{b}", 1, 5000));
    expect_redisson("t1", "true", "lock.isLocked a");
    redisson_do("second/t1", "lock.unlock b");
    expect_ok(actor_end(waiter));
    expect_redisson("t1", "false", "servers.tryLock java:a,second:b");
    expect_ok(actor_release(waiter, multi, NULL));
    end_second();
}

/* One name at both: Java takes the servers in the order in which they are given, C in its own. */
RedissonLaw(multi_locks, of_both_sides_over_two_servers_take_turns)
{
    hl_lock *multi = new_multi_at_two("a", "a");
    struct stock_result result =
        stock_run(&(struct stock_team){"servers", "java:a,second:a", {multi}, RUN_MS});
    check(result.java.turns > 0 && result.c.turns > 0);
    end_second();
}
