/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Async calls, and the loop of the user's own. */

#include "support/actor.h"
#include "support/kit.h"
#include "support/recorder.h"

#include <poll.h>

static hl_client *client;
static hl_lock *lock;
static hl_owner *owner;
static struct recorder told = RECORDER_INIT;

static void begin(const hl_client_options *options)
{
    client = open_client(options);
    lock = new_lock(client, "stock");
    owner = new_owner(client);
}

Law(async, acquire_and_release_are_told_once_and_on_the_callback_thread)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), record_done, &told));
    expect_story(&told, "done HL_OK");
    check(hl_lock_is_held(lock, owner));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
    expect_story(&told, "done HL_OK, done HL_OK");
    check(!hl_lock_is_held(lock, owner));
    expect_free(lock);
    char name[16];
    pthread_t thread = recorder_entry(&told, 0).thread;
    check(!pthread_equal(thread, pthread_self()));
    check(pthread_equal(thread, recorder_entry(&told, 1).thread));
    check_int(pthread_getname_np(thread, name, sizeof name), 0);
    check_str(name, "hirelock-call");
    close_client(client);
    check_int(recorder_count(&told), 2);
}

Law(async, calls_nest_like_others)
{
    begin(NULL);
    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), record_done, &told));
        check(recorder_wait(&told, i + 1));
    }
    check_int(hl_lock_hold_count(lock, owner), 3);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    expect_held_by(client, lock, 4);
    for (int i = 0; i < 4; i++) {
        expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
        check(recorder_wait(&told, i + 4));
    }
    expect_free(lock);
}

static void note_busy(int code, const hl_error *err, void *arg)
{
    *(hl_lock_info *)arg = err->busy;
    record_done(code, err, &told);
}

Law(async, calls_end_with_the_codes_of_their_twins)
{
    begin(NULL);
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), record_done, &told));
    check(recorder_wait(&told, 2));
    hl_owner *other = new_owner(client);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = other), note_busy, &busy));
    check(recorder_wait(&told, 3));
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.owner = other, .wait_ms = 50), record_done, &told));
    check(recorder_wait(&told, 4));
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
    check(recorder_wait(&told, 5));
    expect_story(&told, "done HL_ENOTOWNER, done HL_OK, done HL_EBUSY, done HL_ETIMEDOUT, "
                        "done HL_ELOST");
    check(busy.locked && busy.mine && busy.hold_count == 1);
    check_str(recorder_entry(&told, 0).said, "release 'stock': this owner does not hold the lock");
}

Law(async, inspect_and_force_release_are_told_too)
{
    begin(NULL);
    expect_ok(hl_lock_inspect_async(lock, record_info, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_inspect_async(lock, record_info, &told));
    check(recorder_wait(&told, 2));
    expect_ok(hl_lock_force_release_async(lock, record_done, &told));
    check(recorder_wait(&told, 3));
    expect_ok(hl_lock_force_release_async(lock, record_done, &told));
    check(recorder_wait(&told, 4));
    redis_do(server, "SET stock x");
    expect_ok(hl_lock_inspect_async(lock, record_info, &told));
    expect_story(&told, "info 0, info locked mine 1, done HL_OK, done HL_ENOENT, "
                        "info HL_ESERVER");
}

Law(async, handles_may_be_freed_while_the_call_is_under_way)
{
    begin(NULL);
    hl_lock *held = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.owner = owner, .wait_ms = -1), record_done, &told));
    free_lock(lock);
    free_owner(owner);
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    expect_held_by(client, held, 1);
}

Law(async, waits_of_one_process_are_served_in_order)
{
    enum { WAITERS = 8 };
    begin(NULL);
    hl_lock *held = new_lock(open_client(NULL), "stock");
    static struct recorder each[WAITERS];
    hl_owner *owners[WAITERS];
    expect_ok(hl_lock_acquire(held, NULL));
    for (int i = 0; i < WAITERS; i++) {
        pthread_mutex_init(&each[i].mutex, NULL);
        owners[i] = new_owner(client);
        expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owners[i], .wait_ms = -1),
                                        record_done, &each[i]));
        expect_waiters(client, i + 1);
    }
    expect_ok(hl_lock_release(held, NULL));
    for (int i = 0; i < WAITERS; i++) {
        expect_story(&each[i], "done HL_OK");
        for (int k = i + 1; k < WAITERS; k++)
            check_int(recorder_count(&each[k]), 0);
        expect_ok(hl_lock_release_as(lock, owners[i], NULL));
    }
}

static bool is_readable(int fd, int ms)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return poll(&look, 1, (int)slow_ms(ms)) == 1;
}

static void dispatch_until(int count)
{
    while (recorder_count(&told) < count) {
        check(is_readable(hl_client_fd(client), 10000));
        check(hl_client_dispatch(client) >= 0);
    }
}

static void block_inside(int code, const hl_error *err, void *arg)
{
    hl_error inner = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_lock *second = NULL;
    expect_ok(hl_lock_new(client, "inside", &second, NULL));
    expect_ok(hl_lock_acquire_with(second, ACQUIRE(.owner = owner), &inner));
    check(hl_lock_is_held(second, owner));
    expect_ok(hl_lock_inspect(second, &info, NULL));
    expect_ok(hl_lock_release_as(second, owner, NULL));
    expect_ok(hl_client_ping(client, -1, NULL));
    expect_outcome(hl_client_close(client), HL_EDEADLK);
    hl_lock_free(second);
    record_done(code, err, arg);
}

Law(callbacks, may_make_every_call_but_close)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), block_inside, &told));
    expect_story(&told, "done HL_OK");
}

/* Nested, though it is held by the very thread that dispatches. */
static void acquire_unnamed(int code, const hl_error *err, void *arg)
{
    hl_error inner = HL_ERROR_INIT;
    hl_lock *both = NULL;
    expect_outcome(hl_lock_acquire(lock, &inner), HL_EINVAL);
    check(strstr(inner.text, "options.owner"));
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 10), NULL), HL_EINVAL);
    expect_ok(hl_multi_lock_new(&lock, 1, NULL, &both, NULL));
    expect_outcome(hl_lock_try_acquire(both, NULL), HL_EINVAL);
    hl_lock_free(both);
    record_done(code, err, arg);
}

/* Without a named owner all callbacks would be one owner, and would nest in each other's holds. */
Law(callbacks, acquire_for_an_owner_that_is_named)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_async(new_lock(client, "first"), ACQUIRE(.owner = owner),
                                    acquire_unnamed, &told));
    expect_story(&told, "done HL_OK");
    expect_free(lock);
}

Law(dispatch, is_no_owner_of_what_callbacks_acquire)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire_async(new_lock(client, "first"), ACQUIRE(.owner = owner),
                                    acquire_unnamed, &told));
    dispatch_until(1);
    check_int(hl_lock_hold_count(lock, NULL), 1);
    expect_ok(hl_lock_release(lock, NULL));
}

static void start_next(int code, const hl_error *err, void *arg)
{
    record_done(code, err, arg);
    if (recorder_count(arg) < 20 && recorder_count(arg) % 2 == 1)
        expect_ok(hl_lock_release_async(lock, owner, start_next, arg));
    else if (recorder_count(arg) < 20)
        expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), start_next, arg));
}

Law(callbacks, may_begin_the_next_call)
{
    begin(NULL);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), start_next, &told));
    check(recorder_wait(&told, 20));
    close_client(client);
    check_int(recorder_count(&told), 20);
}

Law(dispatch, runs_callbacks_in_the_thread_that_calls_it_and_nowhere_else)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH));
    int fd = hl_client_fd(client);
    check(fd >= 0);
    check(!is_readable(fd, 0));
    check_int(hl_client_dispatch(client), 0);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), record_done, &told));
    expect_held_by(client, lock, 1);
    check(is_readable(fd, 10000));
    check_int(recorder_count(&told), 0);
    check(!hl_lock_is_held(lock, owner)); /* it is not told yet */
    check_int(hl_client_dispatch(client), 1);
    expect_story(&told, "done HL_OK");
    check(hl_lock_is_held(lock, owner));
    check(pthread_equal(recorder_entry(&told, 0).thread, pthread_self()));
    check(!is_readable(fd, 0));
}

static void tell_number(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    static int next;
    (void)info, (void)err;
    expect_ok(code);
    check_int(next++, *(int *)arg);
}

Law(dispatch, runs_them_in_order)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH));
    int number[30], ran = 0;
    /* The script is there: a call that finds it missing is answered later than those behind it. */
    expect_ok(hl_lock_inspect(lock, &(hl_lock_info)HL_LOCK_INFO_INIT, NULL));
    for (int i = 0; i < 30; i++) {
        number[i] = i;
        expect_ok(hl_lock_inspect_async(lock, tell_number, &number[i]));
    }
    while (ran < 30) {
        check(is_readable(hl_client_fd(client), 10000));
        ran += hl_client_dispatch(client);
    }
    check_int(ran, 30);
}

static void dispatch_inside(int code, const hl_error *err, void *arg)
{
    expect_outcome(hl_client_dispatch(client), HL_EDEADLK);
    expect_outcome(hl_client_close(client), HL_EDEADLK);
    record_done(code, err, arg);
}

Law(dispatch, inside_a_callback_is_a_deadlock)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH));
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), dispatch_inside, &told));
    dispatch_until(1);
    expect_story(&told, "done HL_OK");
}

/* Inside a callback of one client another's are dispatched, and there the first one is closed. */
static void close_outer(int code, const hl_error *err, void *arg)
{
    expect_outcome(hl_client_dispatch(client), HL_EDEADLK);
    expect_outcome(hl_client_close(client), HL_EDEADLK);
    record_done(code, err, arg);
}

static void dispatch_other(int code, const hl_error *err, void *arg)
{
    hl_client *other = open_client(CLIENT(.flags = HL_CLIENT_DISPATCH));
    expect_ok(hl_lock_acquire_async(new_lock(other, "other"), ACQUIRE(.owner = new_owner(other)),
                                    close_outer, arg));
    check(is_readable(hl_client_fd(other), 10000));
    check_int(hl_client_dispatch(other), 1);
    record_done(code, err, arg);
}

Law(dispatch, inside_a_callback_of_another_client_is_still_inside_the_first)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH));
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), dispatch_other, &told));
    dispatch_until(2);
    expect_story(&told, "done HL_OK, done HL_OK");
}

Law(dispatch, brings_events_and_log_lines_too)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH, .on_event = record_event, .arg = &told));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(30)), NULL));
    check(is_readable(hl_client_fd(client), 10000));
    check_int(recorder_count(&told), 0);
    dispatch_until(1);
    expect_story(&told, "LOST expired");
    check(pthread_equal(recorder_entry(&told, 0).thread, pthread_self()));
}

Law(dispatch, is_done_by_close_for_the_remaining_callbacks)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH));
    hl_lock *held = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.owner = owner, .wait_ms = -1), record_done, &told));
    expect_waiters(client, 1);
    close_client(client);
    expect_story(&told, "done HL_ECANCELED");
    check(pthread_equal(recorder_entry(&told, 0).thread, pthread_self()));
}

Law(dispatch, is_refused_without_its_flag)
{
    begin(NULL);
    expect_outcome(hl_client_fd(client), HL_EINVAL);
    expect_outcome(hl_client_dispatch(client), HL_EINVAL);
}

static void be_slow(int code, const hl_error *err, void *arg)
{
    wait_stat(client, renewals, 2); /* which this callback must not delay */
    record_done(code, err, arg);
}

Law(callbacks, that_are_slow_delay_no_renewal)
{
    begin(CLIENT(.watchdog_timeout_ms = slow_ms(6000)));
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), be_slow, &told));
    expect_story(&told, "done HL_OK");
    check(hl_lock_is_held(lock, owner));
}

Law(async, deadlines_are_kept_without_any_help)
{
    begin(NULL);
    hl_lock *held = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(held, NULL));
    int64_t before_ms = now_ms();
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.owner = owner, .wait_ms = 100), record_done, &told));
    expect_story(&told, "done HL_ETIMEDOUT");
    check(now_ms() - before_ms >= 99);
    check_int(stats_of(client).waiters_now, 0);
}
