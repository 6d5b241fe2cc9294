/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The Redlock on five masters: it excludes, waits, is renewed and is released as any lock. */

#include "support/actor.h"
#include "support/events.h"
#include "support/masters.h"
#include "support/process.h"
#include "support/recorder.h"

MastersLaw(redlock, is_at_all_masters_with_a_value_for_each_while_it_is_held)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    check(hl_lock_is_held(lock, NULL));
    check_int(hl_lock_hold_count(lock, NULL), 1);
    expect_masters_with("stock", 5);
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, ERR));
    check(strncmp(info.owner, hl_client_id(clients[0]), 36) == 0);
    check_int(masters_held_by("stock", info.owner), 5);
    check_int(masters_with_value("stock", redis_str(server, "GET stock")), 1);
    expect_ok(hl_lock_release(lock, ERR));
    check(!hl_lock_is_held(lock, NULL));
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, excludes_owners_of_this_process_and_of_others)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *mine = new_redlock(clients, "stock");
    hl_lock *other = new_redlock(open_masters(NULL), "stock");
    struct actor *thread = actor_start();
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(mine, ERR));
    wait_stat(clients[0], votes, 5); /* it returned with the third */
    expect_outcome(hl_lock_try_acquire(other, ERR), HL_EBUSY);
    expect_outcome(actor_acquire(thread, mine, ACQUIRE(.wait_ms = HL_NO_WAIT)), HL_EBUSY);
    expect_outcome(acquire_past(other, ACQUIRE(.wait_ms = HL_NO_WAIT), &busy), HL_EBUSY);
    check_int(masters_held_by("stock", busy.owner), 5);
    expect_outcome(hl_lock_acquire_for(other, slow_ms(200), ERR), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(mine, ERR));
    expect_ok(hl_lock_acquire(other, ERR));
    expect_ok(hl_lock_release(other, ERR));
}

MastersLaw(redlock, tells_how_the_masters_voted)
{
    hl_lock *lock = new_redlock(open_masters(NULL), "stock");
    hl_error err = HL_ERROR_INIT;
    for (int i = 2; i < 5; i++) /* those that are asked first say yes */
        redis_do(masters.server[i], "SET stock another PX 60000");
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    check_has(err.text, "acquire 'stock': 3 of 5 masters said no");
    check_str(err.busy.owner, "another");
    check_int(masters_with_value("stock", "another"), 3);
    expect_masters_with("stock", 3); /* what it got was given back */
    for (int i = 2; i < 5; i++)
        redis_do(masters.server[i], "DEL stock");
    expect_ok(hl_lock_try_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

MastersLaw(redlock, is_taken_with_a_majority_and_says_that_it_is_narrow)
{
    static struct events events;
    hl_client **clients = open_masters(CLIENT(.on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    redis_do(masters.server[0], "SET stock another PX 60000");
    redis_do(masters.server[3], "SET stock another PX 60000");
    expect_ok(hl_lock_try_acquire(lock, ERR));
    check(events_wait(&events, HL_EVENT_NARROW, 1, 10000));
    check_str(events.reason[HL_EVENT_NARROW], "no master to spare");
    check_int(stats_of(clients[0]).narrow, 1);
    check_int(stats_of(clients[0]).votes, 3);
    check_int(stats_of(clients[0]).votes_refused, 2);
    expect_ok(hl_lock_release(lock, ERR));
    check_int(masters_with_value("stock", "another"), 2);
    expect_masters_with("stock", 2);
}

MastersLaw(redlock, is_renewed_at_each_master)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 0; i < 5; i++)
        wait_stat(clients[i], renewals, 4);
    check(hl_lock_is_held(lock, NULL));
    check_int(masters_with("stock"), 5);
    expect_ok(hl_lock_release(lock, ERR));
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, ends_with_its_lease_time)
{
    static struct events events;
    hl_client **clients = open_masters(CLIENT(.on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .lease_ms = slow_ms(500)), ERR));
    check(hl_lock_validity_ms(lock, NULL) <= slow_ms(500));
    check(events_wait(&events, HL_EVENT_LOST, 1, 10000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, wakes_waiters_of_other_processes_by_a_message)
{
    hl_lock *mine = new_redlock(open_masters(NULL), "stock");
    hl_client **others = open_masters(NULL);
    hl_lock *other = new_redlock_of(others, 5, "stock",
                                    REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY,
                                            .vote_timeout_ms = slow_ms(2000), .retry_min_ms = 60000,
                                            .retry_max_ms = 60000));
    expect_ok(hl_lock_acquire(mine, ERR));
    struct actor *thread = actor_start_acquire(other, ACQUIRE(.wait_ms = -1));
    for (int i = 0; i < 5; i++)
        check(redis_wait_subscribers(masters.server[i], "hirelock_redlock:{stock}", 1, 10000));
    expect_ok(hl_lock_release(mine, ERR));
    expect_ok(actor_end(thread));
    expect_ok(actor_release(thread, other, NULL));
}

MastersLaw(redlock, finds_the_release_of_a_program_that_tells_nobody)
{
    hl_lock *lock = new_redlock(open_masters(NULL), "stock");
    for (int i = 0; i < 5; i++)
        redis_do(masters.server[i], "SET stock another PX 60000");
    struct actor *thread = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    for (int i = 0; i < 5; i++)
        check(redis_wait_subscribers(masters.server[i], "hirelock_redlock:{stock}", 1, 10000));
    for (int i = 0; i < 5; i++)
        redis_do(masters.server[i], "DEL stock");
    expect_ok(actor_end(thread));
    expect_ok(actor_release(thread, lock, NULL));
}

MastersLaw(redlock, serves_waiters_of_a_process_in_their_order)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_redlock(clients, "stock");
    struct actor *first, *second;
    expect_ok(hl_lock_acquire(lock, ERR));
    first = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    expect_waiters(clients[0], 1);
    second = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    expect_waiters(clients[0], 2);
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    expect_ok(actor_release(first, lock, NULL));
    expect_ok(actor_end(second));
    expect_ok(actor_release(second, lock, NULL));
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, does_not_nest_unless_asked_to)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *flat = new_redlock(clients, "flat");
    hl_lock *deep = new_redlock_of(clients, 5, "deep",
                                   REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY | HL_REDLOCK_NESTS,
                                           .vote_timeout_ms = slow_ms(2000)));
    expect_ok(hl_lock_acquire(flat, ERR));
    expect_outcome(hl_lock_acquire(flat, ERR), HL_EDEADLK);
    expect_ok(hl_lock_release(flat, ERR));
    expect_ok(hl_lock_acquire(deep, ERR));
    expect_ok(hl_lock_acquire(deep, ERR));
    check_int(hl_lock_hold_count(deep, NULL), 2);
    expect_ok(hl_lock_release(deep, ERR));
    check(hl_lock_is_held(deep, NULL));
    expect_masters_with("deep", 5);
    expect_ok(hl_lock_release(deep, ERR));
    expect_outcome(hl_lock_release(deep, ERR), HL_ENOTOWNER);
    expect_masters_with("deep", 0);
}

MastersLaw(redlock, is_cancelled_while_it_waits_and_leaves_nothing)
{
    hl_lock *mine = new_redlock(open_masters(NULL), "stock");
    hl_client **others = open_masters(NULL);
    hl_lock *other = new_redlock(others, "stock");
    hl_cancel *cancel = new_cancel();
    expect_ok(hl_lock_acquire(mine, ERR));
    struct actor *thread = actor_start_acquire(other, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_waiters(others[0], 1);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(thread), HL_ECANCELED);
    expect_ok(hl_lock_release(mine, ERR));
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, works_with_owners_and_completions)
{
    static struct recorder recorder = RECORDER_INIT;
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_redlock(clients, "stock");
    hl_owner *owner = new_owner(clients[0]);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = -1, .owner = owner), record_done,
                                    &recorder));
    expect_story(&recorder, "done HL_OK");
    check(hl_lock_is_held(lock, owner));
    check(!hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release_async(lock, owner, record_done, &recorder));
    expect_story(&recorder, "done HL_OK, done HL_OK");
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, rests_for_its_shortest_hold)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .min_hold_ms = 60000), ERR));
    wait_stat(clients[0], votes, 5);
    expect_ok(hl_lock_release(lock, ERR));
    check_int(masters_with("stock"), 5);
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_EBUSY);
}

MastersLaw(redlock, is_lost_when_most_of_its_keys_are_taken_away)
{
    static struct events events;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 0; i < 3; i++)
        redis_do(masters.server[i], "SET stock another PX 600000");
    check(events_wait(&events, HL_EVENT_LOST, 1, 10000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    check_int(stats_of(clients[0]).losses, 1);
    check_int(stats_of(clients[1]).losses, 0);
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    check_int(masters_with_value("stock", "another"), 3);
    expect_masters_with("stock", 3);
}

MastersLaw(redlock, asks_a_master_anew_that_has_lost_its_key)
{
    static struct events events;
    hl_client **clients = open_masters(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_masters_with("stock", 5);
    for (int round = 0; round < 2; round++) { /* all together they are a majority */
        redis_do(masters.server[2 * round], "DEL stock");
        redis_do(masters.server[2 * round + 1], "DEL stock");
        expect_masters_with("stock", 5);
    }
    check(hl_lock_is_held(lock, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(lock, ERR));
    expect_masters_with("stock", 0);
}

MastersLaw(redlock, is_inspected_and_force_released_at_all_masters)
{
    hl_client **clients = open_masters(NULL), **others = open_masters(NULL);
    hl_lock *lock = new_redlock(clients, "stock"), *other = new_redlock(others, "stock");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, ERR));
    check(!info.locked);
    expect_outcome(hl_lock_force_release(other, ERR), HL_ENOENT);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_inspect(lock, &info, ERR));
    check(info.locked && info.mine);
    check_int(masters_held_by("stock", info.owner), 5);
    check(info.lease_left_ms > 0);
    expect_ok(hl_lock_inspect(other, &info, ERR));
    check(info.locked && !info.mine);
    expect_ok(hl_lock_force_release(lock, ERR));
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_ok(hl_lock_try_acquire(other, ERR));
    expect_ok(hl_lock_release(other, ERR));
}

MastersLaw(redlock, is_inspected_without_blocking)
{
    static struct recorder recorder = RECORDER_INIT;
    hl_lock *lock = new_redlock(open_masters(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_inspect_async(lock, record_info, &recorder));
    check(recorder_wait_says(&recorder, "mine 1"));
    expect_ok(hl_lock_force_release_async(lock, record_done, &recorder));
    check(recorder_wait_says(&recorder, "done HL_OK"));
    expect_masters_with("stock", 0);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
}

MastersLaw(redlock, keeps_its_keys_when_its_client_closes)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .lease_ms = 60000), ERR));
    wait_stat(clients[0], votes, 5);
    close_client(clients[0]);
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ECLOSED);
    check_int(masters_with("stock"), 5);
}

MastersLaw(redlock, gives_its_keys_back_when_its_client_closes_if_asked_to)
{
    hl_client **clients = open_masters(CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_masters_with("stock", 5);
    close_client(clients[0]);
    expect_masters_with("stock", 0);
}

static void close_one_by_one(unsigned flags)
{
    static struct events events;
    hl_client **clients = open_masters(CLIENT(.flags = flags, .watchdog_timeout_ms = SHORT_MS,
                                              .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_masters_with("stock", 5);
    close_client(clients[1]);
    close_client(clients[4]);
    check(events_wait(&events, HL_EVENT_NARROW, 1, 10000));
    check(hl_lock_is_held(lock, NULL));
    close_client(clients[2]);
    check(events_wait(&events, HL_EVENT_LOST, 1, 10000));
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ECLOSED);
    check_has(err.text, "only 2 of 5 masters voted (the client is closed)");
}

MastersLaw(redlock, goes_on_without_a_client_that_closes)
{
    close_one_by_one(0);
}

MastersLaw(redlock, goes_on_without_a_client_that_closes_and_releases)
{
    close_one_by_one(HL_CLIENT_RELEASE_ON_CLOSE);
}

/* Nobody has released them, and the close ends both in one turn of the name. */
MastersLaw(redlock, ends_with_several_lost_holds_when_its_client_closes)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_redlock(clients, "stock");
    for (int lost = 1; lost <= 3; lost++) {
        expect_ok(
            hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .owner = new_owner(clients[0])), ERR));
        wait_stat(clients[0], votes, 5 * lost);
        for (size_t i = 0; i < masters.count; i++)
            redis_do(masters.server[i], "DEL stock");
        wait_stat(clients[0], losses, lost);
    }
    close_client(clients[0]);
    expect_masters_with("stock", 0);
}

static void use_in_child(struct process *self, void *arg)
{
    hl_lock *lock = arg;
    (void)self;
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EFORKED);
    expect_outcome(hl_lock_release(lock, NULL), HL_EFORKED);
    expect_outcome(hl_lock_inspect(lock, &(hl_lock_info)HL_LOCK_INFO_INIT, NULL), HL_EFORKED);
    expect_outcome(hl_lock_force_release(lock, NULL), HL_EFORKED);
    hl_lock_free(lock);
}

MastersLaw(redlock, is_the_parents_in_a_forked_child)
{
    hl_lock *lock = new_redlock(open_masters(NULL), "stock");
    hl_lock *free_lock = new_redlock(open_masters(NULL), "free");
    expect_ok(hl_lock_acquire(lock, ERR));
    struct process *child = process_start(use_in_child, lock);
    check_int(process_finish(child, 10000), 0);
    child = process_start(use_in_child, free_lock);
    check_int(process_finish(child, 10000), 0);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    expect_masters_with("stock", 0);
}

static hl_lock *new_narrow_redlock(hl_client *const *clients, const char *name)
{
    for (int i = 0; i < 2; i++)
        redis_do(masters.server[i], "SET %s another PX 600000", name);
    return new_redlock_of(
        clients, 5, name,
        REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY, .vote_timeout_ms = slow_ms(2000)));
}

/* The completion, which says that the lock is held, has not run. What comes later at other clients
 * has been told by then. */
MastersLaw(redlock, says_that_it_is_narrow_to_one_who_knows_of_the_hold)
{
    static struct recorder told = RECORDER_INIT;
    hl_client **clients = open_masters(CLIENT(.flags = HL_CLIENT_DISPATCH));
    hl_client **others = open_masters(NULL);
    hl_lock *lock = new_narrow_redlock(clients, "stock");
    hl_owner *owner = new_owner(clients[0]);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), record_done, &told));
    wait_stat(clients[0], votes, 3);
    hl_lock *other = new_narrow_redlock(others, "other");
    expect_ok(hl_lock_acquire(other, ERR));
    wait_stat(others[0], narrow, 1);
    check_int(stats_of(clients[0]).narrow, 0);
    struct deadline deadline = deadline_of_wait(10000);
    while (hl_client_dispatch(clients[0]) >= 0 && stats_of(clients[0]).narrow == 0 &&
           !deadline_is_over(deadline))
        deadline_nap();
    check_int(stats_of(clients[0]).narrow, 1);
    expect_story(&told, "done HL_OK");
    expect_ok(hl_lock_release(other, ERR));
}

enum { HOUR_MS = 3600000 };

/* Looked at for the waiters of its own process, as any hold. */
MastersLaw(redlock, that_is_taken_away_at_all_masters_goes_to_the_next_of_its_process)
{
    static struct events events;
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = HOUR_MS, .poll_ms = 50,
                                              .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    struct actor *next = actor_start();
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(clients[0], votes, 5);
    actor_begin_acquire(next, lock, ACQUIRE(.wait_ms = slow_ms(20000)));
    expect_waiters(clients[0], 1);
    for (int i = 0; i < 5; i++)
        redis_do(masters.server[i], "DEL stock");
    expect_ok(actor_end(next));
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_ok(actor_release(next, lock, NULL));
}

/* One master tells the client of its vote, and that looks at its other votes. */
MastersLaw(redlock, with_a_lease_time_hears_that_it_was_taken_away_by_force)
{
    static struct events events;
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = HOUR_MS, .poll_ms = HOUR_MS,
                                              .on_event = count_event, .arg = &events));
    hl_lock *lock = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = HOUR_MS), ERR));
    wait_stat(clients[0], votes, 5);
    expect_ok(hl_lock_force_release(new_redlock(open_masters(NULL), "stock"), ERR));
    check(events_wait(&events, HL_EVENT_LOST, 1, 20000));
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
}
