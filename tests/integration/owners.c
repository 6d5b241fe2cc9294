/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Owners that are no threads. */

#include "support/actor.h"
#include "support/kit.h"

Law(owner, holds_whichever_thread_acts_for_it)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    struct actor *one = actor_start(), *two = actor_start();
    expect_ok(actor_acquire(one, lock, ACQUIRE(.owner = owner)));
    check(actor_holds(two, lock, owner) && hl_lock_is_held(lock, owner));
    check(!actor_holds(one, lock, NULL)); /* the thread itself holds nothing */
    expect_outcome(actor_release(one, lock, NULL), HL_ENOTOWNER);
    expect_ok(actor_acquire(two, lock, ACQUIRE(.owner = owner)));
    check_int(hl_lock_hold_count(lock, owner), 2);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_ok(actor_release(one, lock, owner));
    expect_free(lock);
}

Law(owner, excludes_another_of_the_same_thread)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *one = new_owner(client), *two = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = one), NULL));
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.owner = two), NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_release_as(lock, two, NULL), HL_ENOTOWNER);
    expect_ok(hl_lock_release_as(lock, one, NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = two), NULL));
    check(hl_lock_validity_ms(lock, two) > 0 && hl_lock_validity_ms(lock, one) == 0);
}

Law(owner, outlives_the_thread_that_acquired)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, lock, ACQUIRE(.owner = owner)));
    actor_stop(actor);
    wait_stat(client, renewals, 3);
    check(hl_lock_is_held(lock, owner));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
}

Law(owner, of_another_client_is_refused)
{
    hl_client *client = open_client(NULL), *other = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *foreign = new_owner(other);
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.owner = foreign), &err), HL_EINVAL);
    check_str(err.text, "the owner belongs to another client");
    expect_outcome(hl_lock_release_as(lock, foreign, NULL), HL_EINVAL);
    check(!hl_lock_is_held(lock, foreign));
}

Law(owner, that_is_freed_leaves_its_hold_renewed_until_the_close)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    free_owner(owner);
    wait_stat(client, renewals, 3);
    expect_held_by(client, lock, 1);
    check_int(stats_of(client).holds_now, 1);
    close_client(client);
    expect_free(lock);
}

Law(owner, is_needed_where_it_is_asked_for)
{
    hl_client *client = open_client(NULL);
    hl_owner *owner = NULL;
    expect_outcome(hl_owner_new(NULL, &owner), HL_EINVAL);
    expect_outcome(hl_owner_new(client, NULL), HL_EINVAL);
    check(owner == NULL);
    hl_owner_free(NULL);
}
