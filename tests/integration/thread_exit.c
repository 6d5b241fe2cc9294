/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A thread that ends while it holds. */

#include "support/actor.h"
#include "support/kit.h"
#include "support/recorder.h"

#include <pthread.h>

static struct recorder told = RECORDER_INIT;

static void hold_and_exit(hl_lock *lock, const hl_acquire_options *options)
{
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, lock, options));
    actor_stop(actor);
}

Law(thread_exit, loses_its_hold_and_lets_the_key_expire)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(3000), .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    hold_and_exit(lock, ACQUIRE(.wait_ms = 0));
    expect_story(&told, "LOST thread exit");
    int64_t renewals = (int64_t)stats_of(client).renewals;
    check_int(redis_int(server, "EXISTS stock"), 1);
    check_int(stats_of(client).holds_now, 0);
    expect_free(lock);
    check_int(stats_of(client).renewals, renewals);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_story(&told, "LOST thread exit");
}

Law(thread_exit, concerns_all_its_holds_and_leased_ones_too)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, new_lock(client, "one"), ACQUIRE(.lease_ms = slow_ms(20000))));
    expect_ok(actor_acquire(actor, new_lock(client, "two"), ACQUIRE(.wait_ms = 0)));
    expect_ok(actor_acquire(actor, new_lock(client, "two"), ACQUIRE(.wait_ms = 0)));
    actor_stop(actor);
    expect_story(&told, "LOST thread exit, LOST thread exit");
    check_int(stats_of(client).losses, 2);
}

Law(thread_exit, releases_its_hold_when_it_was_asked_to)
{
    hl_client *client = open_client(
        CLIENT(.flags = HL_CLIENT_RELEASE_ON_THREAD_EXIT, .on_event = record_event, .arg = &told));
    hl_client *next = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(next, "stock");
    hold_and_exit(new_lock(client, "stock"), ACQUIRE(.wait_ms = 0));
    expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), NULL));
    expect_held_by(next, lock, 1);
    expect_story(&told, "");
}

Law(thread_exit, does_not_hand_its_hold_to_another_thread)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500), .poll_ms = 10000));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *holder = actor_start(), *waiter = actor_start();
    expect_ok(actor_acquire(holder, lock, ACQUIRE(.wait_ms = 0)));
    char field[128];
    snprintf(field, sizeof field, "%s", field_of(lock));
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = -1));
    expect_waiters(client, 1);
    int64_t before_ms = now_ms();
    actor_stop(holder);
    expect_ok(actor_end(waiter));
    check(now_ms() - before_ms >= 100); /* the rest of a lease that is renewed every 500 ms */
    check(strcmp(field_of(lock), field) != 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
}

Law(thread_exit, is_none_for_a_wait_or_a_hold_that_is_released)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, lock, ACQUIRE(.wait_ms = 0)));
    expect_ok(actor_release(actor, lock, NULL));
    actor_stop(actor);
    expect_free(lock);
    close_client(client);
    expect_story(&told, "");
}

static hl_lock *guarded;
static int code_of_destructor;

static void release_in_destructor(void *arg)
{
    (void)arg;
    code_of_destructor = hl_lock_release(guarded, NULL);
}

static void *acquire_with_key(void *arg)
{
    check_int(pthread_setspecific(*(pthread_key_t *)arg, "set"), 0);
    expect_ok(hl_lock_acquire(guarded, NULL));
    return NULL;
}

static void run_to_its_end(void *(*body)(void *), void *arg)
{
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, body, arg), 0);
    check_int(pthread_join(thread, NULL), 0);
}

/* Destructors run in the order of their keys, so one key is made before the library's and one
 * after. */
Law(a_users_destructor, may_release_whenever_it_runs)
{
    pthread_key_t before, after;
    check_int(pthread_key_create(&before, release_in_destructor), 0);
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    guarded = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(guarded, NULL)); /* the library's key is there now */
    expect_ok(hl_lock_release(guarded, NULL));
    check_int(pthread_key_create(&after, release_in_destructor), 0);
    pthread_key_t *const keys[] = {&before, &after};
    for (int i = 0; i < 2; i++) {
        code_of_destructor = 1;
        run_to_its_end(acquire_with_key, keys[i]);
        expect_ok(code_of_destructor);
        expect_free(guarded);
    }
    close_client(client);
    expect_story(&told, "");
}

static void *acquire_only(void *arg)
{
    expect_ok(hl_lock_acquire(arg, NULL));
    return NULL;
}

Law(thread_exit, of_a_later_thread_with_the_same_id_is_no_reentry)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1000)));
    hl_lock *lock = new_lock(client, "stock");
    int64_t before_ms = 0;        /* when the thread before began */
    for (int i = 0; i < 3; i++) { /* pthread_self() is the same each time */
        int64_t began_ms = now_ms();
        run_to_its_end(acquire_only, lock);
        check(i == 0 || now_ms() - before_ms >= 50);
        before_ms = began_ms;
    }
}
