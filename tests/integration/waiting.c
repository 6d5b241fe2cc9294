/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Waiting: how long, in which order, and what wakes. */

#include "support/actor.h"
#include "support/kit.h"

#include <stdatomic.h>

enum { WAITERS = 6 };

static hl_client *holder, *waiter;
static hl_lock *held, *lock;

/* One client holds, another is to wait, and polls too seldom for it to matter. */
static void begin(void)
{
    holder = open_client(NULL);
    waiter = open_client(CLIENT(.poll_ms = 10000));
    held = new_lock(holder, "stock");
    lock = new_lock(waiter, "stock");
    expect_ok(hl_lock_acquire(held, NULL));
}

Law(waiting, not_at_all_is_answered_busy_at_once)
{
    begin();
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    check(strstr(err.text, "acquire 'stock': held by ") != NULL);
    check(strstr(err.text, hl_client_id(holder)) != NULL);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = HL_NO_WAIT), NULL), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(lock, HL_NO_WAIT, NULL), HL_EBUSY);
    check_int(stats_of(waiter).busy, 3);
    check_int(redis_int(server, "PUBSUB NUMPAT"), 0);
    check_int(redis_subscribers(server, "redisson_lock__channel:{stock}"), 0);
}

Law(waiting, ends_with_its_time_and_never_earlier)
{
    begin();
    static const int64_t times_ms[] = {30, 100, 2000};
    for (int i = 0; i < 3; i++) {
        hl_error err = HL_ERROR_INIT;
        int64_t before_ns = now_ns();
        expect_outcome(hl_lock_acquire_for(lock, times_ms[i], &err), HL_ETIMEDOUT);
        int64_t took_ns = now_ns() - before_ns;
        check(took_ns >= times_ms[i] * 1000000);
        check(took_ns < slow_ms(8000) * 1000000); /* the poll would take 10 s */
        if (times_ms[i] == 2000)                  /* else no answer may have come by then */
            check(strstr(err.text, "the wait time is over; held by ") != NULL);
    }
    check_int(stats_of(waiter).timeouts, 3);
    check_int(stats_of(waiter).waiters_now, 0);
}

Law(waiting, ends_with_the_release_long_before_the_poll)
{
    begin();
    struct actor *other = actor_start();
    for (int i = 0; i < 20; i++) {
        actor_begin_acquire(other, lock, ACQUIRE(.wait_ms = -1));
        expect_waiters(waiter, 1);
        check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 5000));
        int64_t before_ms = now_ms();
        expect_ok(hl_lock_release(held, NULL));
        expect_ok(actor_end(other));
        check(now_ms() - before_ms < slow_ms(8000));
        check(actor_holds(other, lock, NULL));
        expect_ok(actor_release(other, lock, NULL));
        expect_ok(hl_lock_acquire(held, NULL));
    }
}

Law(waiting, ends_by_the_poll_when_no_message_comes)
{
    begin();
    hl_lock *polled = new_lock(open_client(CLIENT(.poll_ms = 100)), "stock");
    struct actor *other = actor_start();
    actor_begin_acquire(other, polled, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 5000));
    redis_do(server, "DEL stock"); /* nothing is published */
    int64_t before_ms = now_ms();
    expect_ok(actor_end(other));
    check(now_ms() - before_ms < slow_ms(8000));
}

Law(waiting, ends_with_the_holders_expiry_which_no_message_announces)
{
    begin();
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_with(held, ACQUIRE(.lease_ms = slow_ms(200)), NULL));
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire(lock, NULL));
    check(now_ms() - before_ms < slow_ms(8000)); /* the poll would take 10 s */
}

static atomic_int turn;

struct in_line {
    hl_lock *lock;
    int place;
};

static void take_turn(void *arg)
{
    const struct in_line *in_line = arg;
    expect_ok(hl_lock_acquire(in_line->lock, NULL));
    check_int(atomic_fetch_add(&turn, 1), in_line->place);
    expect_ok(hl_lock_release(in_line->lock, NULL));
}

Law(waiting, is_served_in_the_order_of_arrival_within_a_process)
{
    begin();
    struct in_line in_line[WAITERS];
    struct actor *actor[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        in_line[i] = (struct in_line){lock, i};
        actor_begin(actor[i] = actor_start(), take_turn, &in_line[i]);
        expect_waiters(waiter, i + 1);
    }
    expect_ok(hl_lock_release(held, NULL));
    for (int i = 0; i < WAITERS; i++)
        actor_await(actor[i]);
    check_int(atomic_load(&turn), WAITERS);
}

Law(waiting, takes_one_subscription_however_many_wait)
{
    begin();
    hl_cancel *cancel = new_cancel();
    struct actor *actor[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        actor[i] = actor_start();
        actor_begin_acquire(actor[i], lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    }
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 5000));
    expect_waiters(waiter, WAITERS);
    check_int(redis_subscribers(server, "redisson_lock__channel:{stock}"), 1);
    hl_cancel_fire(cancel);
    for (int i = 0; i < WAITERS; i++)
        expect_outcome(actor_end(actor[i]), HL_ECANCELED);
}

Law(waiting, goes_on_for_the_others_when_the_first_gives_up)
{
    begin();
    struct actor *first = actor_start(), *second = actor_start();
    actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = slow_ms(3000)));
    expect_waiters(waiter, 1);
    actor_begin_acquire(second, lock, ACQUIRE(.wait_ms = -1));
    expect_waiters(waiter, 2);
    expect_outcome(actor_end(first), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(second));
    expect_held_by(waiter, lock, 1);
}

Law(waiting, with_a_time_ends_in_time_behind_an_owner_of_its_own_client)
{
    begin();
    struct actor *other = actor_start();
    expect_outcome(actor_acquire(other, held, ACQUIRE(.wait_ms = 100)), HL_ETIMEDOUT);
    check(actor_took_ms(other) >= 100 && actor_took_ms(other) < slow_ms(8000));
    check(strstr(actor_error(other), "another owner of this client") != NULL);
}

static bool has_its_lease(void *arg)
{
    return pttl_of(arg) > 50000;
}

Law(waiting, of_different_leases_gives_each_its_own)
{
    begin();
    struct actor *first = actor_start(), *second = actor_start();
    actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = -1, .lease_ms = 60000));
    expect_waiters(waiter, 1);
    actor_begin_acquire(second, lock, ACQUIRE(.wait_ms = -1, .lease_ms = 5000));
    expect_waiters(waiter, 2);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(first));
    check(wait_until(has_its_lease, lock, 5000)); /* granted for a claim first */
    expect_ok(actor_release(first, lock, NULL));
    expect_ok(actor_end(second));
    check(pttl_of(lock) <= 5000); /* not granted: asked for by the same client */
}

Law(waiting, leaves_no_trace_when_it_is_over)
{
    begin();
    expect_outcome(hl_lock_acquire_for(lock, 50, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(held, NULL));
    expect_free(held);
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
}

Law(busy_answer, says_who_holds_and_for_how_long)
{
    begin();
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(held, NULL));
    expect_held_by(holder, held, 2);
    expect_outcome(acquire_past(lock, ACQUIRE(), &info), HL_EBUSY);
    check(info.locked && !info.mine);
    check_int(info.hold_count, 2);
    check(info.lease_left_ms > 20000 && info.lease_left_ms <= 30000);
    check_str(info.owner, field_of(lock));
    info = (hl_lock_info)HL_LOCK_INFO_INIT;
    expect_outcome(acquire_past(lock, ACQUIRE(.wait_ms = slow_ms(2000)), &info), HL_ETIMEDOUT);
    check_int(info.hold_count, 2);
    check_str(info.owner, field_of(lock));
}

Law(busy_answer, knows_an_owner_of_its_own_client)
{
    begin();
    struct actor *other = actor_start();
    expect_outcome(actor_acquire(other, held, ACQUIRE(.wait_ms = HL_NO_WAIT)), HL_EBUSY);
    const hl_lock_info info = *actor_busy(other);
    check(info.locked && info.mine);
    check_int(info.hold_count, 1);
    check(info.lease_left_ms > 20000);
    check_str(info.owner, field_of(held));
}

Law(busy_answer, is_gone_from_the_next_error)
{
    begin();
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    check(err.busy.locked);
    check_int(err.busy.size, sizeof(hl_lock_info));
    expect_outcome(hl_lock_release(lock, &err), HL_ENOTOWNER);
    check(!err.busy.locked && err.busy.owner[0] == '\0');
}

Law(options, of_none_and_of_an_init_wait_without_end)
{
    begin();
    static const hl_acquire_options shared = HL_ACQUIRE_OPTIONS_INIT;
    const hl_wait_options wait = HL_WAIT_OPTIONS_INIT;
    check_int(shared.wait_ms, HL_WAIT_FOREVER);
    check_int(wait.wait_ms, HL_WAIT_FOREVER);
    struct actor *other = actor_start();
    actor_begin_acquire(other, lock, &shared);
    expect_waiters(waiter, 1);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(other));
}

Law(inspect, sees_what_another_thread_or_client_holds)
{
    begin();
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(held, &info, NULL));
    check(info.locked && info.mine && info.hold_count == 1);
    check_str(info.owner, field_of(held));
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    check(info.locked && !info.mine);
    check(info.lease_left_ms > 20000 && info.lease_left_ms <= 30000);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    check(!info.locked && !info.mine && info.hold_count == 0 && info.lease_left_ms == 0);
    check_str(info.owner, "");
}

Law(inspect, shortens_an_owner_that_a_stranger_wrote)
{
    begin();
    char field[101];
    hl_lock_info info = HL_LOCK_INFO_INIT;
    memset(field, 'f', 100);
    strcpy(field + 98, ":7");
    redis_do(server, "HSET strange %s 7", field);
    expect_ok(hl_lock_inspect(new_lock(waiter, "strange"), &info, NULL));
    check(info.locked && !info.mine);
    check_int(info.hold_count, 7);
    check_int(info.lease_left_ms, -1);
    check_int(strlen(info.owner), sizeof info.owner - 1);
    expect_outcome(hl_lock_inspect(lock, NULL, NULL), HL_EINVAL);
    info.size = 1;
    expect_outcome(hl_lock_inspect(lock, &info, NULL), HL_EINVAL);
}

Law(inspect, and_acquire_say_so_when_the_key_is_something_else)
{
    begin();
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_error err = HL_ERROR_INIT;
    redis_do(server, "SET thing x");
    hl_lock *thing = new_lock(waiter, "thing");
    expect_outcome(hl_lock_inspect(thing, &info, &err), HL_ESERVER);
    check(strstr(err.text, "WRONGTYPE") != NULL);
    expect_outcome(hl_lock_acquire(thing, &err), HL_ESERVER); /* at once */
    check(strstr(err.text, "acquire 'thing': WRONGTYPE") != NULL);
    check_str(redis_str(server, "GET thing"), "x");
}
