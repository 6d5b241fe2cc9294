/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Locks that do not nest: a nested acquire by the holder is refused, and changes nothing. */

#include "support/actor.h"
#include "support/kinds.h"
#include "support/kit.h"
#include "support/recorder.h"

static hl_lock *new_flat(hl_client *client, const hl_lock_options *options)
{
    hl_lock *lock = NULL;
    expect_ok(lock_new_with(client, "stock", options, &lock, NULL));
    return lock;
}

#define FLAT(...)                                                                                  \
    (&(hl_lock_options){                                                                           \
        .size = sizeof(hl_lock_options), .flags = HL_LOCK_NON_REENTRANT, __VA_ARGS__})

Law(a_flat_lock, tells_its_owner_that_it_would_wait_for_itself)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_flat(client, FLAT(0));
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    int64_t calls = redis_evalsha_calls(server);
    expect_outcome(hl_lock_acquire(lock, &err), HL_EDEADLK);
    check_str(
        err.text,
        "acquire 'stock': its owner holds it already, and this handle does not nest: release it "
        "first");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EDEADLK);
    expect_outcome(hl_lock_acquire_for(lock, 100, NULL), HL_EDEADLK);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 60000), NULL), HL_EDEADLK);
    check_int(redis_evalsha_calls(server), calls);
    check_int(hl_lock_hold_count(lock, NULL), 1);
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    hl_lock_free(lock);
}

Law(a_flat_lock, reports_a_lost_hold_as_lost_and_not_as_held)
{
    hl_lock *lock = new_flat(open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS)), FLAT(0));
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "DEL stock");
    struct deadline deadline = deadline_in(5000);
    while (hl_lock_is_held(lock, NULL)) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    expect_outcome(hl_lock_acquire(lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    hl_lock_free(lock);
}

Law(a_flat_lock, keeps_other_owners_waiting_as_any_lock_does)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_flat(client, FLAT(0));
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(actor_acquire(other, lock, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    actor_begin_acquire(other, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_end(other));
    expect_ok(actor_release(other, lock, NULL));
    hl_lock_free(lock);
}

Law(a_flat_lock, does_not_nest_in_a_hold_that_another_handle_began)
{
    hl_client *client = open_client(NULL);
    hl_lock *nests = new_lock(client, "stock"), *lock = new_flat(client, FLAT(0));
    expect_ok(hl_lock_acquire(nests, NULL));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EDEADLK);
    for (int i = 0; i < 100; i++) { /* also while a count waits to be shown */
        expect_ok(hl_lock_acquire(nests, NULL));
        expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EDEADLK);
        expect_ok(hl_lock_release(nests, NULL));
    }
    expect_ok(hl_lock_acquire(nests, NULL));
    check_int(hl_lock_hold_count(nests, NULL), 2);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
    hl_lock_free(lock);
}

Law(a_flat_lock, is_resumed_when_retained_but_never_nested)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_flat(client, FLAT(.retain_ms = 1000));
    for (int i = 0; i < 100; i++) {
        expect_ok(hl_lock_acquire(lock, NULL));
        expect_outcome(hl_lock_acquire(lock, NULL), HL_EDEADLK);
        expect_ok(hl_lock_release(lock, NULL));
    }
    check(stats_of(client).retained > 0);
    hl_lock_free(lock);
}

static void note_code(int code, const hl_error *err, void *arg)
{
    (void)err;
    atomic_store((atomic_int *)arg, code);
}

Law(a_flat_lock, tells_async_callers_by_their_completion)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_flat(client, FLAT(0));
    hl_owner *owner = new_owner(client);
    atomic_int code = 1;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner, .wait_ms = HL_WAIT_FOREVER),
                                    note_code, &code));
    struct deadline deadline = deadline_in(5000);
    while (atomic_load(&code) == 1) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    check_int(atomic_load(&code), HL_EDEADLK);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    hl_lock_free(lock);
}
