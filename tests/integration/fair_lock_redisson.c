/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fair lock in one queue with Redisson's. */

#include "fair_java.h"

static const char java[] = JAVA_UUID "71", duke[] = JAVA_UUID "72";

/* Redisson's last waiter may leave our own key behind; that key expires by itself. */
static void check_gone_but_for_signs(void)
{
    check(redis_int(server, "PTTL " FAIR_SIGNS) != -1);
    redis_do(server, "DEL " FAIR_SIGNS);
    fair_check_gone();
}

#define JavaLaw(suite, name) FairLawWith(suite, name, fair_up, check_gone_but_for_signs)

/* Queued, subscribed, and asked once more. */
static redisContext *java_waits_as(const char *owner, int place)
{
    check(java_asks(owner) >= 0);
    redisContext *ear = fair_listens(owner);
    check(java_asks(owner) > 0);
    expect_queued(place);
    return ear;
}

JavaLaw(fair_java, waiters_and_ours_have_their_turns_in_one_order)
{
    begin();
    redisContext *first = java_waits_as(java, 1);
    struct actor *second = wait_as(2, lock, -1);
    redisContext *third = java_waits_as(duke, 3);
    struct actor *fourth = wait_as(4, lock, -1);
    expect_ok(hl_lock_release(held, NULL));
    java_is_told(first);
    check_int(java_asks(java), JAVA_HAS_IT);
    check_int(java_asks(java), JAVA_HAS_IT); /* nested */
    check_int(java_unlocks(java), 0);
    check(!actor_is_done(second));
    check_int(java_unlocks(java), 1);
    expect_ok(actor_end(second));
    check_int(java_tries(java), 1); /* busy */
    expect_ok(actor_release(second, lock, NULL));
    java_is_told(third);
    check_int(java_tries(java), 1); /* it is another one's turn */
    check_int(java_asks(duke), JAVA_HAS_IT);
    check(!actor_is_done(fourth));
    check_int(java_unlocks(duke), 1);
    expect_ok(actor_end(fourth));
    expect_ok(actor_release(fourth, lock, NULL));
    redisFree(first);
    redisFree(third);
}

JavaLaw(fair_java, holder_keeps_us_out_and_its_release_lets_the_head_in)
{
    begin();
    expect_ok(hl_lock_release(held, NULL));
    check_int(java_asks(java), JAVA_HAS_IT);
    check_int(redis_int(server, "DBSIZE"), 1);
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_outcome(acquire_past(lock, ACQUIRE(), &info), HL_EBUSY);
    check_str(info.owner, java);
    struct actor *first = wait_as(1, lock, -1), *second = wait_as(2, lock, -1);
    check_int(java_unlocks(java), 1);
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    expect_ok(actor_release(first, lock, NULL));
    expect_ok(actor_end(second));
    expect_ok(actor_release(second, lock, NULL));
}

JavaLaw(fair_java, waiter_that_vanished_is_passed_over)
{
    begin_polling(200);
    redisContext *first = java_waits_as(java, 1);
    redisContext *second = java_waits_as(duke, 2);
    struct actor *third = wait_as(3, lock, -1);
    redisFree(first);
    redisFree(second);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(third));
    expect_queued(0);
    expect_ok(actor_release(third, lock, NULL));
}

static redisContext *java_waits_behind_dead_ones(void)
{
    static const char dead[] = JAVA_UUID "7";
    char field[64];
    for (int i = 1; i <= 40; i++) {
        snprintf(field, sizeof field, "%s00%d", dead, i);
        check(java_asks(field) >= 0);
    }
    return java_waits_as(java, 41);
}

static void expect_java_turn(redisContext *living)
{
    java_is_told(living);
    expect_queued(1);
    check_int(java_asks(java), JAVA_HAS_IT);
    check_int(java_unlocks(java), 1);
    redisFree(living);
}

/* No process of ours is in the queue: after the one release nobody else would look. */
JavaLaw(fair_java, waiter_behind_dead_ones_is_told_after_one_release_of_ours)
{
    begin();
    redisContext *living = java_waits_behind_dead_ones();
    expect_ok(hl_lock_release(held, NULL));
    close_client(holder); /* or its program ends; the close waits for the release */
    expect_java_turn(living);
}

JavaLaw(fair_java, waiter_behind_dead_ones_is_told_after_a_force_release_of_ours)
{
    begin();
    redisContext *living = java_waits_behind_dead_ones();
    expect_ok(hl_lock_force_release(lock, NULL));
    close_client(waiter);
    expect_java_turn(living);
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
}

JavaLaw(fair_java, waiter_that_gives_up_leaves_us_our_place)
{
    begin();
    redisContext *first = java_waits_as(java, 1);
    struct actor *second = wait_as(2, lock, -1);
    redisContext *third = java_waits_as(duke, 3);
    check_int(java_gives_up(java), 1);
    redisFree(first);
    check(java_asks(duke) > 0); /* drops no waiter */
    expect_queued(2);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(second));
    check_int(java_tries(java), 1);
    expect_ok(actor_release(second, lock, NULL));
    java_is_told(third);
    check_int(java_asks(duke), JAVA_HAS_IT);
    check_int(java_unlocks(duke), 1);
    redisFree(third);
}

/* Redisson takes a wait of its own from all who stand behind, and then looks for the stale. */
JavaLaw(fair_java, turn_costs_our_waiters_behind_it_nothing)
{
    begin();
    redisContext *first = java_waits_as(java, 1);
    struct actor *second = wait_as(2, lock, -1), *third = wait_as(3, lock, -1);
    expect_ok(hl_lock_release(held, NULL));
    java_is_told(first);
    check_int(java_asks(java), JAVA_HAS_IT);
    check_int(java_unlocks(java), 1);
    expect_ok(actor_end(second));
    expect_queued(1);
    redisContext *again = java_waits_as(duke, 2);
    check_int(java_tries(java), 1);
    expect_queued(2);
    expect_ok(actor_release(second, lock, NULL));
    expect_ok(actor_end(third));
    expect_ok(actor_release(third, lock, NULL));
    java_is_told(again);
    check_int(java_asks(duke), JAVA_HAS_IT);
    check_int(java_unlocks(duke), 1);
    redisFree(first);
    redisFree(again);
}

/* By Redisson's own rule, without a client of ours. */
JavaLaw(fair_java, waiter_passes_over_a_dead_head_of_ours_soon)
{
    struct fair_waiter dead[2];
    fair_waiter_start(&dead[0], 600);
    fair_waiter_start(&dead[1], 600);
    begin();
    fair_waiter_queue(&dead[0], 1);
    fair_waiter_queue(&dead[1], 2);
    redisContext *ear = java_waits_as(java, 3);
    fair_waiter_kill(&dead[0]);
    fair_waiter_kill(&dead[1]);
    expect_ok(hl_lock_release(held, NULL));
    struct deadline deadline = deadline_of_wait(10000);
    while (java_asks(java) != JAVA_HAS_IT) {
        check_msg(!deadline_is_over(deadline), "it waits behind %s", queued(0));
        deadline_nap();
    }
    check_int(java_unlocks(java), 1);
    redisFree(ear);
}

/* Polls of 100 ms: a place of ours, and a head that lives, stand for five of them. */
enum { STAND_MS = 500 };

/* A newcomer that comes as late as it may after `asked_ms` leaves the head where it is. */
static void expect_head_stands(const char *head, int64_t asked_ms)
{
    check_int(java_tries_at(duke, asked_ms + STAND_MS - 1), 1);
    check_str(queued(0), head);
}

JavaLaw(fair_java, newcomers_never_drop_a_living_head_of_ours)
{
    begin_polling(100);
    struct actor *first = wait_as(1, lock, -1);
    char head[64];
    snprintf(head, sizeof head, "%s", queued(0));
    int64_t calls = redis_evalsha_calls(server);
    while (redis_evalsha_calls(server) < calls + 30) { /* three seconds, its end is one away */
        int64_t asked_ms = strtoll(redis_str(server, "HGET " FAIR_SIGNS " %s", head), NULL, 10);
        expect_head_stands(head, asked_ms);
        deadline_nap();
    }
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(first));
    expect_ok(actor_release(first, lock, NULL));
}

/* Redisson's own clients would drop it, as its end has come. */
JavaLaw(fair_java, head_that_lives_is_kept_by_our_waiters_behind_it)
{
    begin_polling(100);
    redisContext *ear = java_waits_as(java, 1);
    struct actor *second = wait_as(2, lock, -1);
    for (int i = 0; i < 10; i++) {
        redis_do(server, "ZADD " FAIR_ENDS " 1 %s", java);
        int64_t before_ms = redis_int(server, "HGET " FAIR_SIGNS " look"), look_ms = before_ms;
        for (struct deadline over = deadline_of_wait(10000); look_ms == before_ms; deadline_nap()) {
            check(!deadline_is_over(over));
            look_ms = redis_int(server, "HGET " FAIR_SIGNS " look");
        }
        expect_head_stands(java, look_ms);
    }
    redis_do(server, "ZADD " FAIR_ENDS " %lld %s", (long long)java_clock_ms() + 60000, java);
    expect_ok(hl_lock_release(held, NULL));
    java_is_told(ear);
    check_int(java_asks(java), JAVA_HAS_IT);
    check_int(java_unlocks(java), 1);
    expect_ok(actor_end(second));
    expect_ok(actor_release(second, lock, NULL));
    redisFree(ear);
}

/* For a second. On a busy machine it may need longer than that; then it loses its place, and all
 * begins anew. */
JavaLaw(fair_java, waiter_that_asks_before_it_listens_is_spared)
{
    begin();
    for (bool has_it = false; !has_it;) {
        int64_t before_ms = now_ms();
        check(java_asks(java) >= 0);
        struct actor *second = wait_as(2, lock, -1);
        expect_ok(hl_lock_release(held, NULL)); /* it cannot hear this */
        redisContext *ear = fair_listens(java);
        has_it = java_asks(java) == JAVA_HAS_IT;
        check(has_it || now_ms() - before_ms >= 1000);
        check_int(has_it ? java_unlocks(java) : java_gives_up(java), 1);
        expect_ok(actor_end(second));
        expect_ok(actor_release(second, lock, NULL));
        redisFree(ear);
        if (!has_it)
            expect_ok(hl_lock_acquire(held, NULL));
    }
}

JavaLaw(fair_java, force_unlock_of_ours_tells_its_waiter)
{
    begin();
    redisContext *ear = java_waits_as(java, 1);
    expect_ok(hl_lock_force_release(lock, NULL));
    java_is_told(ear);
    check_int(java_asks(java), JAVA_HAS_IT);
    check_int(java_unlocks(java), 1);
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    redisFree(ear);
}
