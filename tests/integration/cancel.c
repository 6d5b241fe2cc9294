/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Cancels: before, during and after a wait, from threads and from signal handlers. */

#include "support/actor.h"
#include "support/kit.h"
#include "support/recorder.h"

#include <signal.h>
#include <sys/time.h>

static hl_client *client;
static hl_lock *held, *lock;
static hl_cancel *cancel;

static void begin(void)
{
    held = new_lock(open_client(NULL), "stock");
    client = open_client(CLIENT(.poll_ms = 10000));
    lock = new_lock(client, "stock");
    cancel = new_cancel();
    expect_ok(hl_lock_acquire(held, NULL));
}

Law(cancel, fired_before_the_call_ends_it_at_once)
{
    begin();
    hl_error err = HL_ERROR_INIT;
    hl_cancel_fire(cancel);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = -1, .cancel = cancel), &err),
                   HL_ECANCELED);
    check_str(err.text, "acquire 'stock': cancelled");
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.cancel = cancel), NULL), HL_ECANCELED);
    expect_outcome(hl_lock_acquire_with(new_lock(client, "free"), ACQUIRE(.cancel = cancel), NULL),
                   HL_ECANCELED);
    check_int(redis_int(server, "EXISTS free"), 0);
    check_int(stats_of(client).cancels, 3);
}

Law(cancel, ends_every_wait_that_carries_it_and_no_other)
{
    begin();
    struct actor *carrying[3], *other = actor_start();
    for (int i = 0; i < 3; i++) {
        carrying[i] = actor_start();
        actor_begin_acquire(carrying[i], lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    }
    actor_begin_acquire(other, lock, ACQUIRE(.wait_ms = -1, .cancel = new_cancel()));
    expect_waiters(client, 4);
    hl_cancel_fire(cancel);
    for (int i = 0; i < 3; i++)
        expect_outcome(actor_end(carrying[i]), HL_ECANCELED);
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(other));
    check_int(stats_of(client).cancels, 3);
}

Law(cancel, reaches_waits_on_several_clients)
{
    begin();
    hl_client *second = open_client(CLIENT(.poll_ms = 10000));
    struct actor *a = actor_start(), *b = actor_start();
    actor_begin_acquire(a, lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    actor_begin_acquire(b, new_lock(second, "stock"), ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_waiters(client, 1);
    expect_waiters(second, 1);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(a), HL_ECANCELED);
    expect_outcome(actor_end(b), HL_ECANCELED);
}

static void fire_it(int number)
{
    (void)number;
    hl_cancel_fire(cancel); /* NOLINT(bugprone-signal-handler,cert-sig30-c): it may */
}

Law(cancel, may_be_fired_in_a_signal_handler)
{
    begin();
    struct actor *other = actor_start();
    signal(SIGUSR1, fire_it);
    actor_begin_acquire(other, lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_waiters(client, 1);
    kill(getpid(), SIGUSR1);
    expect_outcome(actor_end(other), HL_ECANCELED);
}

Law(cancel, may_be_fired_by_an_alarm_in_the_thread_that_waits)
{
    begin();
    const struct itimerval soon = {.it_value = {.tv_usec = 100000}};
    signal(SIGALRM, fire_it);
    check_int(setitimer(ITIMER_REAL, &soon, NULL), 0);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = -1, .cancel = cancel), NULL),
                   HL_ECANCELED);
}

Law(cancel, does_nothing_to_a_hold)
{
    begin();
    hl_lock *free = new_lock(client, "free");
    expect_ok(hl_lock_acquire_with(free, ACQUIRE(.wait_ms = -1, .cancel = cancel), NULL));
    hl_cancel_fire(cancel);
    check(hl_lock_is_held(free, NULL));
    expect_ok(hl_lock_release(free, NULL));
    hl_cancel_fire(NULL);
    hl_cancel_free(NULL);
    expect_outcome(hl_cancel_new(NULL), HL_EINVAL);
}

Law(cancel, gives_back_a_lock_that_the_wait_may_have_got)
{
    begin();
    hl_lock *contended = new_lock(client, "contended");
    struct actor *actor = actor_start();
    for (int i = 0; i < 200; i++) {
        hl_cancel *one = NULL;
        expect_ok(hl_cancel_new(&one));
        actor_begin_acquire(actor, contended, ACQUIRE(.wait_ms = -1, .cancel = one));
        hl_cancel_fire(one);
        int code = actor_end(actor);
        check(code == HL_OK || code == HL_ECANCELED);
        if (code == HL_OK)
            expect_ok(actor_release(actor, contended, NULL));
        hl_cancel_free(one);
    }
    expect_free(contended);
    check_int(stats_of(client).holds_now, 0);
    check_int(stats_of(client).waiters_now, 0);
}

Law(cancel, ends_an_async_wait)
{
    begin();
    struct recorder told = RECORDER_INIT;
    hl_owner *owner = new_owner(client);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = -1, .cancel = cancel, .owner = owner),
                                    record_done, &told));
    expect_waiters(client, 1);
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    check_str(recorder_entry(&told, 0).said, "acquire 'stock': cancelled");
}

struct shot {
    hl_cancel *cancel;
    int64_t delay_ns;
};

static void fire_soon(void *arg)
{
    const struct shot *shot = arg;
    int64_t at_ns = now_ns() + shot->delay_ns;
    while (now_ns() < at_ns)
        ;
    hl_cancel_fire(shot->cancel);
}

Law(cancel, is_never_missed_by_an_async_wait_however_close_it_comes)
{
    begin();
    struct recorder told = RECORDER_INIT;
    struct actor *actor = actor_start();
    hl_owner *owner = new_owner(client);
    for (int i = 0; i < RECORDER_ENTRIES; i++) {
        struct shot shot = {new_cancel(), (i % 32) * INT64_C(2000)};
        actor_begin(actor, fire_soon, &shot);
        expect_ok(hl_lock_acquire_async(
            lock, ACQUIRE(.wait_ms = -1, .cancel = shot.cancel, .owner = owner), record_done,
            &told));
        check_msg(recorder_wait(&told, i + 1), "the %dth cancel was missed", i);
        check_int(recorder_entry(&told, i).code, HL_ECANCELED);
        actor_await(actor);
    }
}
