/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A wait for the fair lock: by what it ends, and that it leaves no gap in the queue when it goes.
 */

#include <poll.h>

#include "fair_kit.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"

FairLaw(fair_wait, that_is_over_by_time_leaves_no_gap)
{
    begin();
    struct actor *first = wait_as(1, lock, slow_ms(6000)), *second = wait_as(2, lock, -1);
    struct actor *third = wait_as(3, lock, slow_ms(6000)), *fourth = wait_as(4, lock, -1);
    expect_outcome(actor_end(first), HL_ETIMEDOUT);
    expect_outcome(actor_end(third), HL_ETIMEDOUT);
    expect_queued(2);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(second));
    check(!actor_is_done(fourth));
    expect_ok(actor_release(second, lock, NULL));
    expect_turn(fourth, lock);
}

FairLaw(fair_wait, that_is_cancelled_leaves_no_gap)
{
    begin();
    hl_cancel *cancel = new_cancel();
    struct actor *first = actor_start();
    actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_queued(1);
    struct actor *second = wait_as(2, lock, -1);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(first), HL_ECANCELED);
    expect_queued(1);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(second, lock);
}

/* Its place was the head's, and the lock was free for it a moment ago. */
FairLaw(fair_wait, that_is_given_up_when_its_turn_comes_passes_it_on)
{
    begin();
    for (int i = 0; i < 30; i++) {
        hl_cancel *cancel = new_cancel();
        struct actor *first = actor_start();
        actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
        expect_queued(1);
        struct actor *second = wait_as(2, lock, -1);
        expect_ok(hl_lock_release(held, NULL));
        hl_cancel_fire(cancel);
        if (actor_end(first) == HL_OK)
            expect_ok(actor_release(first, lock, NULL));
        expect_turn(second, lock);
        actor_stop(first);
        actor_stop(second);
        expect_ok(hl_lock_acquire(held, NULL));
    }
}

FairLaw(fair_wait, of_a_client_that_is_closed_leaves_the_queue)
{
    begin();
    hl_client *closing = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *its = new_lock(closing, "stock");
    struct actor *first = wait_as(1, its, -1), *second = wait_as(2, lock, -1);
    close_client(closing);
    expect_outcome(actor_end(first), HL_ECANCELED);
    expect_queued(1);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(second, lock);
}

FairLaw(fair_wait, ends_by_the_poll_when_no_message_comes_and_in_order)
{
    begin();
    hl_client *polling = open_client(CLIENT(.poll_ms = slow_ms(1000)));
    hl_lock *polled = new_lock(polling, "stock");
    struct actor *first = wait_as(1, polled, -1), *second = wait_as(2, polled, -1);
    redis_do(server, "DEL stock"); /* nothing is published */
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    redis_do(server, "DEL stock");
    expect_ok(actor_end(second));
    expect_outcome(actor_release(first, polled, NULL), HL_ELOST);
    expect_ok(actor_release(second, polled, NULL));
}

FairLaw(fair_wait, ends_with_the_holders_expiry_which_no_message_announces)
{
    begin();
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_with(held, ACQUIRE(.lease_ms = slow_ms(300)), NULL));
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire(lock, NULL));
    check(now_ms() - before_ms < slow_ms(5000)); /* the poll would take 10 s */
}

FairLaw(fair_wait, goes_on_while_a_lock_rests)
{
    begin();
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_with(held, ACQUIRE(.min_hold_ms = slow_ms(300)), NULL));
    struct actor *actor = wait_as(1, lock, -1);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(actor, lock);
    check(actor_took_ms(actor) >= 0);
}

FairLaw(fair_wait, ends_with_a_forced_release_for_the_first_alone)
{
    begin();
    struct actor *first = wait_as(1, lock, -1), *second = wait_as(2, lock, -1);
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    expect_ok(actor_release(first, lock, NULL));
    expect_turn(second, lock);
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOENT);
}

/* Under another field, since no field is used twice. */
FairLaw(fair_wait, that_is_told_too_late_begins_anew)
{
    struct recorder told = RECORDER_INIT;
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_DISPATCH, .poll_ms = 100));
    hl_lock *its = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    hl_owner *owner = new_owner(client);
    hl_cancel *cancel = new_cancel();
    struct pollfd look = {.fd = hl_client_fd(client), .events = POLLIN};
    expect_ok(hl_lock_acquire_async(
        its, ACQUIRE(.wait_ms = -1, .lease_ms = 60, .owner = owner, .cancel = cancel), record_done,
        &told));
    check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
    check(redis_wait_int(server, 0, 5000, "EXISTS stock")); /* the caller sleeps past the lease */
    expect_ok(hl_lock_acquire(rivals, NULL));
    hl_client_dispatch(client);
    expect_queued(1);
    check_int(recorder_count(&told), 0);
    hl_cancel_fire(cancel); /* the same call still */
    while (recorder_count(&told) == 0) {
        check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
        hl_client_dispatch(client);
    }
    expect_story(&told, "done HL_ECANCELED");
    expect_queued(0);
}

FairLaw(fair_wait, of_one_owner_waits_once)
{
    begin();
    hl_owner *owner = new_owner(waiter);
    struct actor *first = actor_start(), *second = actor_start();
    actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = -1, .owner = owner));
    expect_queued(1);
    expect_outcome(actor_acquire(second, lock, ACQUIRE(.wait_ms = -1, .owner = owner)), HL_EINVAL);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(first));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
}

struct stopped_loop {
    struct hli_task task;
    struct hli_gate stopped, goes_on;
};

static void stop_loop(void *arg)
{
    struct stopped_loop *stop = arg;
    hli_gate_open(&stop->stopped);
    while (hli_gate_wait(&stop->goes_on, HLI_NEVER) != HLI_GATE_OPEN)
        continue;
}

/* The loop ends the subscription of the first wait. Here it can do so only when the second wait has
 * begun. */
FairLaw(fair_wait, of_an_owner_that_waited_before_hears_its_own_turn)
{
    char first[96];
    begin();
    struct stopped_loop stop = {.task = {.run = stop_loop, .arg = &stop}};
    struct actor *actor = wait_as(1, lock, slow_ms(6000));
    snprintf(first, sizeof first, "%s", queued(0));
    hli_loop_post(lock->handle.name->client->loop, &stop.task);
    while (hli_gate_wait(&stop.stopped, HLI_NEVER) != HLI_GATE_OPEN)
        continue;
    expect_outcome(actor_end(actor), HL_ETIMEDOUT);
    actor_begin_acquire(actor, lock, ACQUIRE(.wait_ms = -1));
    expect_waiters(waiter, 1);
    hli_gate_open(&stop.goes_on);
    struct deadline deadline = deadline_of_wait(5000);
    const char *second;
    while (strcmp(second = queued(0), first) == 0 || strcmp(second, "(nil)") == 0) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    expect_listens(second);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(actor, lock);
}

FairLaw(fair_wait, is_counted)
{
    begin();
    struct actor *first = wait_as(1, lock, -1), *second = wait_as(2, lock, slow_ms(6000));
    expect_waiters(waiter, 2);
    expect_outcome(actor_end(second), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(first, lock);
    hl_stats stats = stats_of(waiter);
    check_int(stats.waiters_now, 0);
    check_int(stats.timeouts, 1);
    check_int(stats.acquires, 1);
    check_int(stats.releases, 1);
    check_int(stats.holds_now, 0);
}
