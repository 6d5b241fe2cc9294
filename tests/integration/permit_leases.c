/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Leases of permits: renewed, run out, set anew, lost, and left by a process that died. */

#include "permits.h"

#include "support/process.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

/* No client gives it back, no message says that it has come back, and no poll comes in time. */
Law(permit_lease, that_runs_out_gives_the_permit_to_a_waiter)
{
    hl_client *waiting = open_client(CLIENT(.poll_ms = slow_ms(60000)));
    hl_permits *gate = set_gate(open_client(NULL), 1), *theirs = new_gate(waiting);
    hl_permit permit = take_with(gate, ACQUIRE(.lease_ms = slow_ms(3000)));
    struct taking taking;
    taking_begin(&taking, theirs, 1, ACQUIRE(.wait_ms = slow_ms(20000)));
    expect_waiters(waiting, 1);
    check(is_held(gate, permit));
    expect_outcome(taking_end(&taking), HL_OK);
    check(!is_held(gate, permit) && is_held(theirs, taking.permits[0]));
    expect_counts(gate, 0, 1);
}

/* The second to expire is the one that makes it two. */
Law(permit_lease, serves_several_permits_when_the_last_one_comes)
{
    hl_client *waiting = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = set_gate(open_client(NULL), 3);
    struct taking taking;
    take_with(gate, ACQUIRE(.lease_ms = slow_ms(60000)));
    take_with(gate, ACQUIRE(.lease_ms = slow_ms(300)));
    take_with(gate, ACQUIRE(.lease_ms = slow_ms(600)));
    taking_begin(&taking, new_gate(waiting), 2, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_outcome(taking_end(&taking), HL_OK);
    expect_counts(gate, 0, 3);
}

Law(permit_lease, is_renewed_until_the_permit_is_given_back)
{
    enum { MANY = 150 }; /* more than one batch */
    static hl_permit permit[MANY];
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(2000)));
    hl_permits *gate = set_gate(client, MANY);
    expect_ok(hl_permits_acquire_many(gate, MANY, NULL, permit, NULL));
    wait_stat(client, renewals, (MANY * 4));
    for (int i = 0; i < MANY; i++)
        check(is_held(gate, permit[i]));
    expect_counts(gate, 0, MANY);
    for (int i = 0; i < MANY; i++)
        expect_ok(give_back(gate, permit[i]));
    expect_counts(gate, MANY, 0);
    uint64_t renewals = stats_of(client).renewals;
    hl_permit last = take_one(gate);
    wait_stat(client, renewals, renewals + 2);
    check(is_held(gate, last) && stats_of(client).losses == 0);
}

Law(permit_lease, of_its_own_is_not_renewed_and_ends_as_lost)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 1);
    int64_t before_ms = now_ms(), left = 0;
    hl_permit permit = take_with(gate, ACQUIRE(.lease_ms = slow_ms(3000)));
    expect_ok(hl_permits_lease_left(gate, &permit, &left, NULL));
    check(left > 0 && left <= slow_ms(3000));
    expect_story(&told, "LOST expired");
    check(now_ms() - before_ms >= slow_ms(3000) - slow_ms(3000) / 50 - 5);
    check_int(stats_of(client).renewals, 0);
    expect_outcome(give_back(gate, permit), HL_ELOST);
    check(redis_wait_int(server, 0, 5000, "ZCARD " IDS));
    expect_counts(gate, 1, 0);
}

/* A program that takes permits for a time and never gives them back keeps nothing of them. */
Law(permit_lease, that_is_over_is_forgotten)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, 2);
    hl_permit permit = take_with(gate, ACQUIRE(.lease_ms = slow_ms(50)));
    struct deadline deadline = deadline_of_wait(5000);
    wait_stat(client, losses, 1);
    int rc = give_back(gate, take_with(gate, ACQUIRE(.lease_ms = slow_ms(50))));
    check(rc == HL_OK || rc == HL_ELOST || rc == HL_ENOENT); /* forgotten too, by then */
    /* Known here it is lost; and then it is forgotten. */
    while (hl_permits_update_lease(gate, &permit, 100, NULL) == HL_ELOST) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    expect_outcome(give_back(gate, permit), HL_ENOENT);
    check_int(stats_of(client).holds_now, 0);
}

Law(permit_lease, is_bounded_by_max_hold)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(3000), .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 1);
    hl_permit permit = take_with(gate, ACQUIRE(.max_hold_ms = slow_ms(1500)));
    expect_story(&told, "LOST max_hold");
    check(!is_held(gate, permit));
    check(redis_wait_int(server, 1, 5000, "EVAL %s 1 gate",
                         "local time = redis.call('TIME') return redis.call('ZCOUNT', '" IDS
                         "', 0, time[1] * 1000)")); /* it expires: nothing renews it */
    expect_counts(gate, 1, 0);
}

Law(permit_lease, may_be_set_anew)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(6000)));
    hl_permits *gate = set_gate(client, 2);
    int64_t left = 0;
    hl_permit permit = take_with(gate, ACQUIRE(.lease_ms = slow_ms(10000)));
    expect_ok(hl_permits_update_lease(gate, &permit, slow_ms(60000), NULL));
    expect_ok(hl_permits_lease_left(gate, &permit, &left, NULL));
    check(left > slow_ms(30000) && left <= slow_ms(60000));
    check(hl_permits_validity_ms(gate, &permit) > slow_ms(30000));
    expect_ok(hl_permits_update_lease(gate, &permit, slow_ms(20000), NULL)); /* sooner */
    expect_ok(hl_permits_lease_left(gate, &permit, &left, NULL));
    check(left > 0 && left <= slow_ms(20000));
    check(hl_permits_validity_ms(gate, &permit) <= left);
    expect_ok(hl_permits_update_lease(gate, &permit, 0, NULL)); /* the watchdog's */
    check(hl_permits_validity_ms(gate, &permit) <= slow_ms(6000));
    wait_stat(client, renewals, 2);
    check(is_held(gate, permit));
    expect_ok(give_back(gate, permit));
}

Law(permit_lease, that_the_watchdog_renewed_may_be_given_an_end)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(2000), .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 1);
    hl_permit permit = take_one(gate);
    wait_stat(client, renewals, 1);
    expect_ok(hl_permits_update_lease(gate, &permit, slow_ms(2000), NULL));
    check(is_held(gate, permit));
    check(recorder_wait_says(&told, "LOST expired")); /* in jeopardy before, where all takes long */
    expect_outcome(hl_permits_update_lease(gate, &permit, SHORT_MS, NULL), HL_ELOST);
    check(!is_held(gate, permit));
}

Law(permit_lease, of_a_permit_that_another_client_gave_back_cannot_be_set)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 1), *others = new_gate(open_client(NULL));
    hl_permit permit = take_one(gate);
    expect_ok(give_back(others, permit));
    expect_outcome(hl_permits_update_lease(gate, &permit, 60000, NULL), HL_ENOENT);
    expect_story(&told, "LOST gone");
    check(!is_held(gate, permit));
    expect_counts(gate, 1, 0);
}

/* While it is not known which of both times counts, the shorter one does. */
SingleLaw(permit_lease, that_is_being_set_anew_is_counted_by_the_shorter_time)
{
    hl_client *client =
        open_client(CLIENT(.request_timeout_ms = 60000, .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 1);
    hl_permit permit = take_one(gate);
    redis_server_freeze(server);
    expect_ok(hl_permits_update_lease_async(gate, &permit, slow_ms(2000), record_done, &told));
    check(hl_permits_validity_ms(gate, &permit) <= slow_ms(2000));
    expect_outcome(hl_permits_update_lease_async(gate, &permit, 60000, record_done, &told),
                   HL_EINVAL); /* one at a time */
    check(recorder_wait_says(&told, "LOST expired"));
    redis_server_thaw(server);
    expect_story(&told, "LOST expired, done HL_ELOST");
    check(!is_held(gate, permit));
}

/* Which permit is in danger, of all that have the same name? */
struct told_permit {
    hl_permit jeopardy, safe, lost;
};

static void note_permit(const hl_event *event, void *arg)
{
    struct told_permit *noted = arg;
    hl_permit *to = event->kind == HL_EVENT_JEOPARDY ? &noted->jeopardy
                    : event->kind == HL_EVENT_SAFE   ? &noted->safe
                                                     : &noted->lost;
    snprintf(to->id, sizeof to->id, "%s", event->permit ? event->permit : "none");
    record_event(event, &told);
}

SingleLaw(permit_lease, in_danger_and_lost_is_told_with_the_permits_id)
{
    struct told_permit noted = {.lost = {""}};
    hl_client *client =
        open_client(CLIENT(.watchdog_timeout_ms = slow_ms(6000), .request_timeout_ms = 60000));
    hl_permits *gate = set_gate(client, 2);
    hl_permit quiet = take_with(gate, ACQUIRE(.lease_ms = 60000));
    hl_permit permit = take_with(gate, ACQUIRE(.on_event = note_permit, .event_arg = &noted));
    redis_server_freeze(server);
    check(recorder_wait_says(&told, "JEOPARDY"));
    check_str(noted.jeopardy.id, permit.id);
    redis_server_thaw(server);
    check(recorder_wait_says(&told, "SAFE"));
    redis_do(server, "DEL " IDS);
    check(recorder_wait_says(&told, "LOST gone"));
    check_str(noted.safe.id, permit.id);
    check_str(noted.lost.id, permit.id);
    check(!is_held(gate, permit) && is_held(gate, quiet));
    expect_outcome(give_back(gate, permit), HL_ELOST);
}

Law(permit_lease, ends_with_its_semaphore)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(3000), .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 2);
    hl_permit permit = take_one(gate);
    expect_ok(hl_permits_delete(gate, NULL));
    check_int(redis_int(server, "DBSIZE"), 0);
    expect_story(&told, "LOST gone");
    check(!is_held(gate, permit));
    expect_outcome(hl_permits_delete(gate, NULL), HL_ENOENT);
    redis_do(server, "SADD gate stranger");
    expect_outcome(hl_permits_delete(gate, NULL), HL_ESERVER);
    check_int(redis_int(server, "SCARD gate"), 1);
}

Law(permit_lease, ends_with_its_thread)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(3000), .on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 3);
    struct taking taking, kept;
    taking_begin(&taking, gate, 2, ACQUIRE(.wait_ms = 0));
    taking_begin(&kept, gate, 1, ACQUIRE(.owner = new_owner(client)));
    expect_outcome(taking_end(&taking), HL_OK);
    expect_outcome(taking_end(&kept), HL_OK);
    actor_stop(taking.actor);
    actor_stop(kept.actor);
    expect_story(&told, "LOST thread exit, LOST thread exit");
    check(!is_held(gate, taking.permits[0]) && !is_held(gate, taking.permits[1]));
    hl_permit two[2];
    expect_ok(hl_permits_acquire_many(gate, 2, ACQUIRE(.wait_ms = slow_ms(20000)), two,
                                      NULL)); /* when the leases are over */
    check(is_held(gate, kept.permits[0]));
}

Law(permit_lease, ends_at_once_with_its_thread_when_it_was_asked_to)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_RELEASE_ON_THREAD_EXIT));
    hl_permits *gate = set_gate(client, 2);
    struct taking taking;
    taking_begin(&taking, gate, 2, ACQUIRE(.wait_ms = 0));
    expect_outcome(taking_end(&taking), HL_OK);
    actor_stop(taking.actor);
    check(redis_wait_int(server, 2, 5000, "GET gate"));
}

Law(permit_lease, ends_with_its_client)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_permits *gate = set_gate(client, 3), *others = new_gate(open_client(NULL));
    hl_permit permit[2];
    expect_ok(hl_permits_acquire_many(gate, 2, NULL, permit, NULL));
    close_client(client);
    expect_story(&told, "LOST closed, LOST closed");
    expect_outcome(give_back(gate, permit[0]), HL_ECLOSED);
    check(!is_held(gate, permit[0]));
    expect_counts(others, 1, 2); /* left to their leases */
}

Law(permit_lease, ends_at_once_with_its_client_when_it_was_asked_to)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE));
    hl_permits *gate = set_gate(client, 3), *others = new_gate(open_client(NULL));
    hl_permit permit[2];
    expect_ok(hl_permits_acquire_many(gate, 2, NULL, permit, NULL));
    close_client(client);
    expect_counts(others, 3, 0);
}

enum { HELD, DONE };

static void hold_until_killed(struct process *self, void *arg)
{
    hl_permit permit[3];
    (void)arg;
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(2400)));
    hl_permits *gate = new_gate(client);
    expect_ok(hl_permits_acquire_many(gate, 3, ACQUIRE(.wait_ms = slow_ms(20000)), permit, NULL));
    wait_stat(client, renewals, 6); /* longer than a lease by now */
    process_tell(self, HELD);
    process_await(self, DONE, 1, 60000);
}

Law(permit_lease, of_a_killed_process_gives_its_permits_back)
{
    struct process *child = process_start(hold_until_killed, NULL);
    hl_client *client = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = set_gate(client, 3);
    hl_permit permit[3];
    check(process_await(child, HELD, 1, 30000));
    expect_outcome(hl_permits_try_acquire(gate, permit, NULL), HL_EBUSY);
    process_kill(child);
    expect_ok(hl_permits_acquire_many(gate, 3, ACQUIRE(.wait_ms = slow_ms(10000)), permit, NULL));
    process_finish(child, 1000);
}
