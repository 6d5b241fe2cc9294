/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The multi-lock without waiting: all of its members are acquired, or none is. */

#include "multi_kit.h"
#include "support/actor.h"
#include "support/kinds.h"

Law(multi_lock, takes_all_its_members_and_gives_all_back)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "bay area cask");
    check(!hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_all_held_by(client, "area bay cask");
    check(hl_lock_is_held(lock, NULL));
    check_int(hl_lock_hold_count(lock, NULL), 1);
    check(hl_lock_validity_ms(lock, NULL) > 20000);
    check_int(stats_of(client).holds_now, 3);
    expect_ok(hl_lock_release(lock, NULL));
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_validity_ms(lock, NULL), 0);
    expect_nothing_left();
    check_int(stats_of(client).holds_now, 0);
    check_int(stats_of(client).waiters_now, 0);
}

Law(multi_lock, asks_once_for_all_of_its_names_and_releases_them_at_once)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "{m}a {m}b {m}c {m}d {m}e {m}f {m}g {m}h");
    expect_ok(hl_lock_acquire(lock, NULL)); /* the server learns the scripts */
    expect_ok(hl_lock_release(lock, NULL));
    int64_t calls = redis_evalsha_calls(server);
    for (int i = 0; i < 5; i++) {
        expect_ok(hl_lock_try_acquire(lock, NULL));
        expect_ok(hl_lock_release(lock, NULL));
    }
    check_int(redis_evalsha_calls(server) - calls, 10);
}

Law(multi_lock, has_the_names_of_its_members_in_order_and_each_once)
{
    hl_client *client = open_client(NULL);
    size_t length = 0;
    hl_lock *lock = new_multi(client, "{m}to {m}from {m}to {m}ab {m}a");
    check_str(hl_lock_name(lock, &length), "{m}a,{m}ab,{m}from,{m}to");
    check_int(length, 24);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_all_held_by(client, "{m}a {m}ab {m}from {m}to");
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, of_one_member_is_that_member)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_all_held_by(client, "area");
    check(hl_lock_is_held(new_lock(client, "area"), NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, of_a_hundred_members_is_taken_whole)
{
    enum { MANY = 100 };
    hl_client *client = open_client(NULL);
    hl_lock *members[MANY + 1], *lock = NULL;
    for (int i = 0; i <= MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "row:%d", i);
        members[i] = new_lock(client, name);
    }
    expect_outcome(hl_multi_lock_new(members, MANY + 1, NULL, &lock, NULL), HL_EINVAL);
    lock = new_multi_of(members, MANY);
    expect_ok(hl_lock_acquire(lock, NULL));
    check_int(redis_int(server, "DBSIZE"), MANY);
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, excludes_and_is_excluded_by_each_member_alone)
{
    hl_client *client = open_client(NULL), *rival = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay cask");
    static const char *const names[] = {"area", "bay", "cask"};
    for (int i = 0; i < 3; i++) {
        hl_lock *alone = new_lock(rival, names[i]);
        expect_ok(hl_lock_try_acquire(alone, NULL));
        expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
        check_int(redis_int(server, "DBSIZE"), 1); /* none of the others was taken */
        expect_ok(hl_lock_release(alone, NULL));
        expect_ok(hl_lock_try_acquire(lock, NULL));
        expect_outcome(hl_lock_try_acquire(alone, NULL), HL_EBUSY);
        expect_ok(hl_lock_release(lock, NULL));
        expect_nothing_left();
    }
}

/* Names of one slot, which a cluster asks about by one request, too. */
Law(multi_lock, writes_nothing_when_it_does_not_wait_and_one_is_busy)
{
    hl_lock *lock = new_multi(open_client(NULL), "{m}area {m}bay {m}cask");
    stranger_takes("{m}bay", 60000);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY); /* the server learns the script */
    int64_t calls = redis_evalsha_calls(server), written = redis_calls(server, "hset");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    check_int(redis_evalsha_calls(server) - calls, 1);
    check_int(redis_calls(server, "hset"), written);
    check_int(redis_int(server, "DBSIZE"), 1);
}

Law(multi_lock, excludes_others_that_share_a_member_with_it)
{
    hl_lock *one = new_multi(open_client(NULL), "area bay"),
            *other = new_multi(open_client(NULL), "cask bay");
    expect_ok(hl_lock_try_acquire(one, NULL));
    expect_outcome(hl_lock_try_acquire(other, NULL), HL_EBUSY);
    check_int(redis_int(server, "EXISTS cask"), 0);
    expect_ok(hl_lock_release(one, NULL));
    expect_ok(hl_lock_try_acquire(other, NULL));
    expect_ok(hl_lock_release(other, NULL));
    expect_nothing_left();
}

Law(multi_lock, excludes_threads_of_its_own_client)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay cask");
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, new_lock(client, "bay"), ACQUIRE(.wait_ms = 0)));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_all_free("area cask");
    check(!hl_lock_is_held(new_lock(client, "area"), NULL));
    expect_ok(actor_release(actor, new_lock(client, "bay"), NULL));
    expect_ok(hl_lock_try_acquire(lock, NULL));
    expect_outcome(actor_acquire(actor, lock, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    check(!actor_holds(actor, lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, reports_the_busy_member_and_its_holder)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay cask");
    hl_error err = HL_ERROR_INIT;
    stranger_takes("bay", 60000);
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    const hl_lock_info busy = err.busy;
    check(busy.locked && !busy.mine);
    check_str(busy.owner, "0a1b2c3d-0000-4000-8000-1234567890ab:71");
    check_str(err.text, "acquire 'bay': held by 0a1b2c3d-0000-4000-8000-1234567890ab:71");
    check_int(stats_of(client).busy, 1);
}

Law(multi_lock, nests_like_a_lock)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay");
    for (int i = 1; i <= 3; i++) {
        expect_ok(hl_lock_acquire(lock, NULL));
        check_int(hl_lock_hold_count(lock, NULL), i);
    }
    for (int i = 2; i >= 0; i--) {
        expect_ok(hl_lock_release(lock, NULL));
        check_int(hl_lock_hold_count(lock, NULL), i);
    }
    expect_nothing_left();
}

Law(multi_lock, leaves_a_member_that_was_held_before_as_it_was)
{
    hl_client *client = open_client(NULL);
    hl_lock *b = new_lock(client, "bay"), *lock = new_multi(client, "area bay cask");
    expect_ok(hl_lock_acquire(b, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    check_int(hl_lock_hold_count(b, NULL), 2);
    check_int(hl_lock_hold_count(lock, NULL), 1);
    expect_ok(hl_lock_release(lock, NULL));
    check(hl_lock_is_held(b, NULL));
    check(!hl_lock_is_held(lock, NULL));
    expect_all_free("area cask");
    stranger_takes("cask", 60000);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(lock, 30, NULL), HL_ETIMEDOUT);
    check_int(hl_lock_hold_count(b, NULL), 1);
    expect_all_free("area");
    expect_held_by(client, b, 1);
    expect_ok(hl_lock_release(b, NULL));
    expect_all_free("bay");
}

/* A lease that a failed call would have made longer is not. */
Law(multi_lock, does_not_touch_a_lease_that_ran_before_when_it_fails)
{
    hl_client *client = open_client(NULL);
    hl_lock *b = new_lock(client, "bay"), *lock = new_multi(client, "area bay");
    expect_ok(hl_lock_acquire_with(b, ACQUIRE(.lease_ms = 9000), NULL));
    stranger_takes("area", 60000);
    expect_outcome(hl_lock_acquire_for(lock, 30, NULL), HL_ETIMEDOUT);
    check(hl_lock_validity_ms(b, NULL) <= 9000);
    check(redis_int(server, "PTTL bay") <= 9000);
    stranger_leaves("area");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(hl_lock_validity_ms(b, NULL) > 9000);
}

Law(multi_lock, that_does_not_nest_refuses_a_member_that_is_held)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi_with(
        client, "area bay",
        &(hl_lock_options){.size = sizeof(hl_lock_options), .flags = HL_LOCK_NON_REENTRANT});
    expect_ok(hl_lock_acquire(new_lock(client, "bay"), NULL));
    expect_outcome(hl_lock_acquire(lock, NULL), HL_EDEADLK);
    expect_all_free("area");
    expect_ok(hl_lock_release(new_lock(client, "bay"), NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(hl_lock_acquire(lock, NULL), HL_EDEADLK);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, may_be_made_of_handles_that_are_freed)
{
    hl_client *client = open_client(NULL);
    hl_lock *members[] = {new_lock(client, "area"), new_lock(client, "bay")};
    hl_lock *lock = new_multi_of(members, 2);
    free_lock(members[0]);
    free_lock(members[1]);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_all_held_by(client, "area bay");
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}

Law(multi_lock, may_have_fenced_and_spin_locks_as_members)
{
    hl_client *client = open_client(NULL);
    hl_lock *members[] = {NULL, new_lock(client, "bay"), NULL, new_lock(client, "den")};
    expect_ok(fenced_lock_new(client, "cask", NULL, &members[0], NULL));
    expect_ok(spin_lock_new(client, "area", NULL, &members[2], NULL));
    hl_lock *lock = new_multi_of(members, 4);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_all_held_by(client, "area bay cask den");
    check(hl_lock_token(members[0], NULL) > 0);
    check_int(hl_lock_token(lock, NULL), 0);
    expect_ok(hl_lock_release(lock, NULL));
    expect_all_free("area bay cask den");
    stranger_takes("den", 60000);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_all_free("area bay cask");
    hl_lock_free(members[0]);
    hl_lock_free(members[2]);
}

static hl_lock_info inspected(hl_lock *lock)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    return info;
}

Law(multi_lock, is_inspected_at_the_member_that_stands_in_the_way)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_multi(client, "area bay cask");
    check(!inspected(lock).locked);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(new_lock(client, "area"), NULL));
    expect_held_by(client, new_lock(client, "area"), 2);
    check(inspected(lock).mine && inspected(lock).hold_count == 2);
    redis_do(server, "DEL bay");
    check(!inspected(lock).locked);
    redis_do(server, "DEL cask");
    stranger_takes("cask", 60000);
    check(inspected(lock).locked && !inspected(lock).mine);
    check_str(inspected(lock).owner, "0a1b2c3d-0000-4000-8000-1234567890ab:71");
}

Law(multi_lock, refuses_what_makes_no_sense)
{
    hl_client *client = open_client(NULL), *other = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *multi = new_multi(client, "bay cask"), *lock = NULL;
    hl_owner *stranger = new_owner(other);
    int codes[2];
#define refused(members, count, options)                                                           \
    expect_outcome(hl_multi_lock_new(members, count, options, &lock, NULL), HL_EINVAL)
    refused(NULL, 1, NULL);
    refused(((hl_lock *[]){a}), 0, NULL);
    refused(((hl_lock *[]){a, NULL}), 2, NULL);
    refused(((hl_lock *[]){a, multi}), 2, NULL);
    refused(((hl_lock *[]){a}), 1,
            (&(hl_lock_options){.size = sizeof(hl_lock_options), .flags = 64}));
    refused(((hl_lock *[]){a}), 1,
            (&(hl_lock_options){.size = sizeof(hl_lock_options), .name_length = 1}));
    expect_outcome(hl_multi_lock_new(&a, 1, NULL, NULL, NULL), HL_EINVAL);
    check(lock == NULL);
    expect_outcome(hl_lock_acquire_with(multi, ACQUIRE(.lease_ms = 5), NULL), HL_EINVAL);
    expect_outcome(hl_lock_acquire_with(multi, ACQUIRE(.wait_ms = -2), NULL), HL_EINVAL);
    expect_outcome(hl_lock_acquire_with(multi, ACQUIRE(.owner = stranger), NULL), HL_EINVAL);
    expect_outcome(hl_multi_lock_release_each(a, NULL, codes, NULL), HL_EINVAL);
    expect_outcome(hl_multi_lock_release_each(multi, NULL, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_multi_lock_release_each(NULL, NULL, codes, NULL), HL_EINVAL);
    expect_outcome(hl_multi_lock_release_each(multi, stranger, codes, NULL), HL_EINVAL);
    check(codes[0] == HL_EINVAL && codes[1] == HL_EINVAL);
    expect_outcome(
        hl_lock_set_and_release(
            multi, NULL, &(hl_fenced_write){.size = sizeof(hl_fenced_write), .key = "k"}, NULL),
        HL_ENOTSUP);
    expect_nothing_left();
}
