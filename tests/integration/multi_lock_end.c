/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* How long a multi-lock is held, and by what its hold ends: its lease, its release, the loss of a
 * member, the end of its thread, process or client. */

#include "multi_kit.h"
#include "support/actor.h"
#include "support/process.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

Law(multi_lock, gives_each_member_the_lease_time_and_ends_with_it)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_multi(client, "area bay");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(3000)), NULL));
    static const char *const names[] = {"area", "bay"};
    for (int i = 0; i < 2; i++) {
        int64_t left = redis_int(server, "PTTL %s", names[i]);
        check_msg(left > 0 && left <= slow_ms(3000), "%s: PTTL %d", names[i], (int)left);
    }
    check(hl_lock_validity_ms(lock, NULL) <= slow_ms(3000));
    expect_story(&told, "LOST expired, LOST expired");
    check(!hl_lock_is_held(lock, NULL));
    int codes[2] = {1, 1};
    expect_outcome(hl_multi_lock_release_each(lock, NULL, codes, NULL), HL_ELOST);
    check_int(codes[0], HL_ELOST);
    check_int(codes[1], HL_ELOST);
    expect_nothing_left();
}

Law(multi_lock, is_renewed_as_long_as_it_is_held)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_lock *lock = new_multi(client, "area bay cask");
    expect_ok(hl_lock_acquire(lock, NULL));
    wait_stat(client, renewals, 12);
    check(hl_lock_is_held(lock, NULL));
    expect_all_held_by(client, "area bay cask");
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, has_max_hold_and_the_other_options_of_a_lock)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_multi(client, "area bay");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.max_hold_ms = 500), NULL));
    expect_story(&told, "LOST max_hold, LOST max_hold");
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_nothing_left();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = 60000), NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check_int(redis_int(server, "EXISTS area bay"), 2);
    check(redis_int(server, "PTTL bay") > 50000);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
}

Law(multi_lock, is_not_held_without_one_of_its_members)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay cask"), *b = new_lock(client, "bay");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(b, NULL));
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_hold_count(lock, NULL), 0);
    check_int(hl_lock_validity_ms(lock, NULL), 0);
    check(hl_lock_is_held(new_lock(client, "area"), NULL));
}

Law(multi_lock_release, continues_past_a_lost_member_and_reports_each)
{
    hl_client *client = open_client(NULL), *operator= open_client(NULL);
    hl_lock *lock = new_multi(client, "cask area bay");
    hl_error err = HL_ERROR_INIT;
    int codes[3] = {1, 1, 1};
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_force_release(new_lock(operator, "area"), NULL));
    expect_outcome(hl_multi_lock_release_each(lock, NULL, codes, &err), HL_ELOST);
    check_int(codes[0], HL_OK); /* in the caller's order */
    check_int(codes[1], HL_ELOST);
    check_int(codes[2], HL_OK);
    check_int(err.code, HL_ELOST);
    check_msg(strstr(err.text, "release 'area': the hold ended before its release"), "%s",
              err.text);
    expect_nothing_left();
}

Law(multi_lock_release, reports_each_member_that_failed)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay cask");
    hl_error err = HL_ERROR_INIT;
    int codes[3] = {1, 1, 1};
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(new_lock(client, "cask"), NULL));
    redis_do(server, "DEL area");
    redis_do(server, "SET area x");
    expect_outcome(hl_multi_lock_release_each(lock, NULL, codes, &err), HL_ESERVER);
    check_int(codes[0], HL_ESERVER);
    check_int(codes[1], HL_OK);
    check_int(codes[2], HL_ENOTOWNER);
    check_msg(strstr(err.text, "release 'area': ") && strstr(err.text, "WRONGTYPE") &&
                  strstr(err.text, "; release 'cask': this owner does not hold the lock"),
              "%s", err.text);
    expect_all_free("bay cask");
}

Law(multi_lock_release, of_what_is_not_held_changes_nothing)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay");
    struct actor *actor = actor_start();
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    expect_ok(actor_acquire(actor, lock, ACQUIRE(.wait_ms = 0)));
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    check(actor_holds(actor, lock, NULL));
    expect_all_held_by(client, "area bay");
    expect_ok(actor_release(actor, lock, NULL));
    expect_nothing_left();
}

Law(multi_lock_release, may_be_posted)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_multi_with(
        client, "area bay cask",
        &(hl_lock_options){.size = sizeof(hl_lock_options), .flags = HL_LOCK_ASYNC_RELEASE});
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "DEL bay");
    expect_ok(hl_lock_release(lock, NULL));
    expect_story(&told, "RELEASE_FAILED");
    check_str(recorder_entry(&told, 0).name, "bay");
    expect_nothing_left();
}

Law(multi_lock, is_retained_with_all_its_members_and_resumed_without_a_request)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi_with(
        client, "area bay", &(hl_lock_options){.size = sizeof(hl_lock_options), .retain_ms = 1000});
    bool was_taken_up = false;
    for (int i = 0; i < 50 && !was_taken_up;
         i++) { /* a slow machine may be too late now and then */
        expect_ok(hl_lock_acquire(lock, NULL));
        expect_ok(hl_lock_release(lock, NULL));
        was_taken_up = stats_of(client).retained >= 2;
    }
    check(was_taken_up);
    expect_nothing_left();
}

Law(multi_lock, is_forced_member_by_member)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_multi(client, "area bay");
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOENT);
    stranger_takes("bay", 60000);
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_force_release(lock, &err));
    check_int(err.code, 0); /* the first one was free, and that is no failure */
    check_str(err.text, "");
    expect_all_free("area bay");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_all_free("area bay");
    expect_story(&told, "LOST gone, LOST gone");
}

Law(multi_lock, of_a_thread_that_ends_is_lost)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(2000), .on_event = record_event, .arg = &told));
    hl_lock *lock = new_multi(client, "area bay");
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, lock, ACQUIRE(.wait_ms = 0)));
    actor_stop(actor);
    expect_story(&told, "LOST thread exit, LOST thread exit");
    expect_nothing_left(); /* not renewed */
    expect_ok(hl_lock_acquire(lock, NULL));
}

static struct {
    hl_lock *lock, *member;
    hl_owner *owner;
} parents;

static void call_everything(struct process *self, void *arg)
{
    hl_lock *lock = NULL;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    int codes[2] = {1, 1};
    (void)self, (void)arg;
    expect_outcome(hl_lock_acquire(parents.lock, NULL), HL_EFORKED);
    expect_outcome(hl_lock_release(parents.lock, NULL), HL_EFORKED);
    expect_outcome(hl_multi_lock_release_each(parents.lock, NULL, codes, NULL), HL_EFORKED);
    check(codes[0] == HL_EFORKED && codes[1] == HL_EFORKED);
    expect_outcome(
        hl_multi_lock_release_each_async(parents.lock, parents.owner, record_codes, &told),
        HL_EFORKED);
    expect_outcome(hl_lock_inspect(parents.lock, &info, NULL), HL_EFORKED);
    expect_outcome(hl_lock_force_release(parents.lock, NULL), HL_EFORKED);
    expect_outcome(hl_multi_lock_new(&parents.member, 1, NULL, &lock, NULL), HL_EFORKED);
    check(!hl_lock_is_held(parents.lock, NULL));
    hl_lock_free(parents.lock);
}

Law(multi_lock, of_the_parent_is_of_no_use_to_a_forked_child)
{
    hl_client *client = open_client(NULL);
    parents.lock = new_multi(client, "area bay");
    parents.member = new_lock(client, "area");
    parents.owner = new_owner(client);
    expect_ok(hl_lock_acquire(parents.lock, NULL));
    check_int(process_finish(process_start(call_everything, NULL), 10000), 0);
    check(hl_lock_is_held(parents.lock, NULL));
    expect_ok(hl_lock_release(parents.lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, of_a_closed_client_says_so)
{
    hl_client *client = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *lock = new_multi(client, "area bay"), *late = NULL;
    int codes[2] = {1, 1};
    close_client(client);
    expect_outcome(hl_lock_acquire(lock, NULL), HL_ECLOSED);
    expect_outcome(hl_lock_release(lock, NULL), HL_ECLOSED);
    expect_outcome(hl_multi_lock_release_each(lock, NULL, codes, NULL), HL_ECLOSED);
    check(codes[0] == HL_ECLOSED && codes[1] == HL_ECLOSED);
    expect_outcome(hl_multi_lock_new(&a, 1, NULL, &late, NULL), HL_ECLOSED);
    check(!hl_lock_is_held(lock, NULL));
    check_str(hl_lock_name(lock, NULL), "area,bay");
}
