/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fair lock: a waiter that is dead, stopped, or cut off holds up no other; a living waiter
 * keeps its place. */

#include "fair_kit.h"

enum { ROW = 4, LONG_ROW = 200, POLL_MS = 100 };

/* Redisson's rule alone would spare it for five minutes. */
FairLaw(fair_dead, head_is_passed_over_and_the_next_has_its_turn)
{
    struct fair_waiter dead;
    fair_waiter_start(&dead, 1000);
    begin_polling(1000);
    fair_waiter_queue(&dead, 1);
    struct actor *next = wait_as(2, lock, -1);
    fair_waiter_kill(&dead);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(next, lock);
    check_msg(actor_took_ms(next) < slow_ms(10000), "%d ms", (int)actor_took_ms(next));
}

FairLaw(fair_dead, heads_in_a_row_are_passed_over_together)
{
    struct fair_waiter dead[ROW];
    for (int i = 0; i < ROW; i++)
        fair_waiter_start(&dead[i], 1000);
    begin_polling(1000);
    for (int i = 0; i < ROW; i++)
        fair_waiter_queue(&dead[i], i + 1);
    struct actor *next = wait_as(ROW + 1, lock, -1);
    for (int i = 0; i < ROW; i++)
        fair_waiter_kill(&dead[i]);
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(next, lock);
    check_msg(now_ms() - before_ms < slow_ms(5000), "%d ms", (int)(now_ms() - before_ms));
}

/* Waiters that asked so many ms from now, by the server's clock, and do not listen. */
static void long_row_asked(int ms)
{
    redis_do(server, "EVAL %s 2 " FAIR_SIGNS " " FAIR_ENDS " %d %d",
             "local time = redis.call('TIME') "
             "local now = time[1] * 1000 + math.floor(time[2] / 1000) "
             "for i = 1, ARGV[1] do "
             "  local field = '0a1b2c3d-0000-4000-8000-1234567890ab:' .. i "
             "  redis.call('ZADD', KEYS[2], 'NX', now + 600000 + i, field) "
             "  redis.call('HSET', KEYS[1], field, "
             "    string.format('%.0f:300000', now + ARGV[2])) "
             "end",
             LONG_ROW, ms);
}

/* They all have asked a moment ago when the lock is released. */
FairLaw(fair_dead, waiters_in_a_long_row_go_in_few_looks_and_the_next_has_its_turn)
{
    begin_polling(60000);
    for (int i = 1; i <= LONG_ROW; i++)
        redis_do(server, "RPUSH " FAIR_QUEUE " 0a1b2c3d-0000-4000-8000-1234567890ab:%d", i);
    long_row_asked(600000);
    struct actor *next = wait_as(LONG_ROW + 1, lock, -1);
    long_row_asked(0);
    int64_t calls = redis_evalsha_calls(server);
    expect_ok(hl_lock_release(held, NULL));
    while (!actor_is_done(next)) {
        check(redis_evalsha_calls(server) - calls < LONG_ROW / 20);
        deadline_nap();
    }
    expect_turn(next, lock);
}

FairLaw(fair_dead, waiters_go_while_the_lock_is_held_wherever_they_stand)
{
    struct fair_waiter first, third;
    fair_waiter_start(&first, 1000);
    fair_waiter_start(&third, 1000);
    begin_polling(POLL_MS);
    fair_waiter_queue(&first, 1);
    struct actor *second = wait_as(2, lock, -1);
    fair_waiter_queue(&third, 3);
    fair_waiter_kill(&first);
    fair_waiter_kill(&third);
    expect_queued(1);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(second, lock);
}

FairLaw(fair_dead, waiters_alone_do_not_keep_a_newcomer_out)
{
    struct fair_waiter dead[2];
    fair_waiter_start(&dead[0], 1000);
    fair_waiter_start(&dead[1], 1000);
    begin_polling(1000);
    fair_waiter_queue(&dead[0], 1);
    fair_waiter_queue(&dead[1], 2);
    fair_waiter_kill(&dead[0]);
    fair_waiter_kill(&dead[1]);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_for(lock, slow_ms(10000), NULL));
    expect_ok(hl_lock_release(lock, NULL));
}

/* The release has counted its listeners, and the next waiter does not count them again at once. */
FairLaw(fair_dead, head_keeps_out_no_waiter_that_comes_right_after_a_look)
{
    begin_polling(60000);
    redis_do(server, "RPUSH " FAIR_QUEUE " 00000000-0000-0000-0000-000000000000:1");
    redis_do(server, "ZADD " FAIR_ENDS " 99999999999999 00000000-0000-0000-0000-000000000000:1");
    expect_ok(hl_lock_release(held, NULL));
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), NULL));
    check(now_ms() - before_ms < slow_ms(10000));
    expect_ok(hl_lock_release(lock, NULL));
}

FairLaw(fair_dead, holder_is_followed_by_the_head_when_its_lease_is_over)
{
    struct fair_waiter dead;
    fair_waiter_start(&dead, 1000);
    begin();
    expect_ok(hl_lock_release(held, NULL));
    process_tell(dead.process, FAIR_GO);
    fair_waiter_expect_turn(&dead);
    struct actor *first = wait_as(1, lock, -1), *second = wait_as(2, lock, -1);
    fair_waiter_kill(&dead);
    redis_do(server, "PEXPIRE stock %d", (int)slow_ms(1000));    /* as if it were long ago */
    redis_do(server, "PUBLISH " FAIR_CHANNEL "%s 0", queued(0)); /* it asks, and is told so */
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    expect_ok(actor_release(first, lock, NULL));
    expect_turn(second, lock);
}

/* It listens still, as far as the server knows, but does not ask. */
FairLaw(fair_stopped, waiter_is_passed_over_and_queues_again)
{
    struct fair_waiter still;
    fair_waiter_start(&still, POLL_MS);
    begin_polling(POLL_MS);
    fair_waiter_queue(&still, 1);
    struct actor *next = wait_as(2, lock, -1);
    process_stop(still.process);
    expect_queued(1);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(next));
    process_continue(still.process);
    expect_queued(1);
    expect_ok(actor_release(next, lock, NULL));
    fair_waiter_expect_turn(&still);
    fair_waiter_end(&still);
}

/* The head is another one's, listens, and does not come: the others ask at their polls. */
FairLaw(fair_silent, head_that_does_not_come_makes_no_waiter_spin)
{
    static const char head[] = "0a1b2c3d-0000-4000-8000-1234567890ab:71";
    begin_polling(1000);
    redisContext *ear = fair_listens(head);
    redis_do(server, "ZADD " FAIR_ENDS " 9e12 %s", head);
    redis_do(server, "RPUSH " FAIR_QUEUE " %s", head);
    struct actor *actor[ROW];
    for (int i = 0; i < ROW; i++)
        actor[i] = wait_as(i + 2, lock, -1);
    expect_ok(hl_lock_release(held, NULL));
    uint64_t before = stats_of(waiter).commands;
    struct deadline deadline = deadline_in(4000); /* four polls of four waiters */
    while (!deadline_is_over(deadline)) {
        check_int(redis_int(server, "EXISTS stock"), 0);
        deadline_nap();
    }
    wait_stat(waiter, commands, before + ROW);
    uint64_t asked = stats_of(waiter).commands - before;
    check_msg(asked >= ROW && asked < 100 * (uint64_t)slow_ms(1), "%d", (int)asked);
    redisFree(ear); /* now it is dead */
    for (int i = 0; i < ROW; i++)
        expect_turn(actor[i], lock);
}

/* Many polls long, and no waiter is taken for dead. */
FairLaw(fair_living, waiters_keep_their_places_however_long_they_wait)
{
    char first[64];
    begin_polling((int)slow_ms(1000));
    struct actor *actor[ROW];
    for (int i = 0; i < ROW; i++)
        actor[i] = wait_as(i + 1, lock, -1);
    snprintf(first, sizeof first, "%s", redis_str(server, "LRANGE " FAIR_QUEUE " 0 0"));
    char all[512];
    snprintf(all, sizeof all, "%s", redis_str(server, "LRANGE " FAIR_QUEUE " 0 -1"));
    int64_t calls = redis_evalsha_calls(server);
    while (redis_evalsha_calls(server) < calls + 7 * ROW) /* a place stands for five */
        deadline_nap();
    check_str(redis_str(server, "LRANGE " FAIR_QUEUE " 0 -1"), all);
    expect_ok(hl_lock_release(held, NULL));
    for (int i = 0; i < ROW; i++)
        expect_turn(actor[i], lock);
}

/* It asks again at once; its channel is the same. */
FairLaw(fair_living, waiter_keeps_its_place_over_a_short_cut)
{
    begin_polling(1000);
    struct actor *first = wait_as(1, lock, -1);
    hl_client *other = open_client(NULL);
    struct actor *second = actor_start();
    actor_begin_acquire(second, new_lock(other, "stock"), ACQUIRE(.wait_ms = -1));
    expect_queued(2);
    expect_listens(queued(0));
    expect_listens(queued(1));
    char all[256];
    snprintf(all, sizeof all, "%s", redis_str(server, "LRANGE " FAIR_QUEUE " 0 -1"));
    check(redis_kill_clients(server, REDIS_NORMAL) + redis_kill_clients(server, REDIS_PUBSUB) >= 2);
    wait_stat(waiter, reconnects, 1);
    expect_listens(queued(0));
    check_str(redis_str(server, "LRANGE " FAIR_QUEUE " 0 -1"), all);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    expect_ok(actor_release(first, lock, NULL));
    expect_ok(actor_end(second));
}

static void take_turn(void *arg)
{
    hl_lock *of = arg;
    expect_ok(hl_lock_acquire(of, NULL));
    expect_ok(hl_lock_release(of, NULL));
}

/* Served in whatever order. */
static void row_begin(struct actor *actor[ROW])
{
    begin_polling(200);
    for (int i = 0; i < ROW; i++) {
        actor_begin(actor[i] = actor_start(), take_turn, lock);
        expect_queued(i + 1);
    }
}

static void row_end(struct actor *actor[ROW])
{
    for (int i = 0; i < ROW; i++)
        actor_await(actor[i]);
}

static void appending_up(void)
{
    setenv("HL_TEST_HANDLE", "fair", 1);
    server_up_with(&(struct redis_options){.appendonly = true});
}

FairLawWith(fair_living, waiters_are_served_by_a_server_that_was_restarted, appending_up,
            fair_check_gone)
{
    struct actor *actor[ROW];
    row_begin(actor);
    redis_server_restart(server);
    expect_queued(ROW);
    wait_stat(holder, reconnects, 1);
    expect_ok(hl_lock_release(held, NULL));
    row_end(actor);
}

FairLaw(fair_living, waiters_of_a_server_that_forgot_all_queue_anew)
{
    struct actor *actor[ROW];
    row_begin(actor);
    redis_do(server, "FLUSHALL");
    row_end(actor);
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
}
