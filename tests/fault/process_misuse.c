/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Callers that misuse the API: each call returns an error, and nothing else happens. */
#include "process_kit.h"

#include "support/kinds.h"
#include "support/redis_probe.h"

static hl_client *client;
static hl_lock *lock;
static struct events events;

static void start_with(int64_t watchdog_ms)
{
    server = redis_server_start(NULL);
    hl_client_options options = kit_options(watchdog_ms, &events);
    client = open_client(&options);
    lock = new_lock(client, "misused");
}

static void start(void)
{
    start_with(slow_ms(30000));
}

/* A renewal is due soon. */
static void start_renewing(void)
{
    start_with(slow_ms(300) + 2700);
}

static void stop(void)
{
    free_lock(lock);
    redis_server_stop(server);
}

static void *release_of_another(void *arg)
{
    (void)arg;
    expect_outcome(hl_lock_release(lock, ERR), HL_ENOTOWNER);
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_EBUSY);
    return NULL;
}

Test(process_misuse, a_release_by_another_thread_or_owner_is_refused, .init = start, .fini = stop)
{
    hl_owner *owner = NULL;
    expect_ok(hl_owner_new(client, &owner));
    expect_ok(hl_lock_acquire(lock, ERR));
    pthread_join(kit_thread(release_of_another, NULL), NULL);
    expect_outcome(hl_lock_release_as(lock, owner, ERR), HL_ENOTOWNER);
    check(hl_lock_is_held(lock, NULL) && !hl_lock_is_held(lock, owner));
    check_int(redis_int(server, "HLEN misused"), 1);
    expect_ok(hl_lock_release(lock, ERR));
    free_owner(owner);
    close_client(client);
}

Test(process_misuse, a_release_too_many_is_refused_and_harms_no_later_holder, .init = start,
     .fini = stop)
{
    hl_client *other = open_client(NULL);
    hl_lock *later = new_lock(other, "misused");
    expect_outcome(hl_lock_release(lock, ERR), HL_ENOTOWNER);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(hl_lock_acquire(later, ERR));
    expect_outcome(hl_lock_release(lock, ERR), HL_ENOTOWNER);
    check(hl_lock_is_held(later, NULL));
    check_int(redis_int(server, "HLEN misused"), 1);
    expect_ok(hl_lock_release(later, ERR));
    free_lock(later);
    close_client(other);
    close_client(client);
}

Test(process_misuse, each_level_of_a_lost_hold_is_told_once, .init = start_renewing, .fini = stop)
{
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    redis_do(server, "DEL misused");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    expect_outcome(hl_lock_acquire(lock, ERR), HL_ELOST);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_outcome(hl_lock_release(lock, ERR), HL_ENOTOWNER);
    kit_try_out(client, "misused");
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    close_client(client);
}

static void never(int code, const hl_error *err, void *arg)
{
    (void)code, (void)err, (void)arg;
    check_msg(false, "the completion of a call that was refused");
}

static void never_inspected(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    (void)info;
    never(code, err, arg);
}

static void expect_of_locks(hl_lock *handle, hl_owner *owner, int code)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    expect_outcome(hl_lock_acquire(handle, ERR), code);
    expect_outcome(hl_lock_try_acquire(handle, ERR), code);
    expect_outcome(hl_lock_acquire_for(handle, 10, ERR), code);
    expect_outcome(hl_lock_acquire_with(handle, &options, ERR), code);
    expect_outcome(hl_lock_release(handle, ERR), code);
    expect_outcome(hl_lock_release_as(handle, owner, ERR), code);
    expect_outcome(hl_lock_force_release(handle, ERR), code);
    expect_outcome(hl_lock_inspect(handle, &info, ERR), code);
    options.owner = owner;
    check_int(hl_lock_acquire_async(handle, &options, never, NULL), code);
    check_int(hl_lock_release_async(handle, owner, never, NULL), code);
    check_int(hl_lock_force_release_async(handle, never, NULL), code);
    check_int(hl_lock_inspect_async(handle, never_inspected, NULL), code);
    check(!hl_lock_is_held(handle, owner) && !hl_lock_is_held(handle, NULL));
    check_int(hl_lock_validity_ms(handle, owner), 0);
    check_int(hl_lock_hold_count(handle, owner), 0);
}

Test(process_misuse, null_is_an_invalid_argument_everywhere, .init = start, .fini = stop)
{
    hl_client *opened = NULL;
    hl_lock *made = NULL;
    hl_owner *owner = NULL;
    hl_stats stats = {.size = sizeof stats};
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    expect_ok(hl_owner_new(client, &owner));
    expect_outcome(hl_client_open(NULL, NULL, &opened, ERR), HL_EINVAL);
    expect_outcome(hl_client_open(redis_server_url(server), NULL, NULL, ERR), HL_EINVAL);
    expect_outcome(hl_client_ping(NULL, 1, ERR), HL_EINVAL);
    expect_outcome(hl_client_fd(NULL), HL_EINVAL);
    expect_outcome(hl_client_dispatch(NULL), HL_EINVAL);
    expect_outcome(hl_client_stats(NULL, &stats), HL_EINVAL);
    expect_outcome(hl_client_stats(client, NULL), HL_EINVAL);
    check(!hl_client_id(NULL) && !hl_lock_name(NULL, NULL));
    expect_outcome(hl_lock_new(NULL, "a", &made, ERR), HL_EINVAL);
    expect_outcome(hl_lock_new(client, NULL, &made, ERR), HL_EINVAL);
    expect_outcome(hl_lock_new(client, "a", NULL, ERR), HL_EINVAL);
    expect_outcome(lock_new_bytes(client, NULL, 1, &made, ERR), HL_EINVAL);
    expect_outcome(hl_owner_new(NULL, &owner), HL_EINVAL);
    expect_outcome(hl_owner_new(client, NULL), HL_EINVAL);
    expect_outcome(hl_cancel_new(NULL), HL_EINVAL);
    expect_of_locks(NULL, owner, HL_EINVAL);
    expect_outcome(hl_lock_inspect(lock, NULL, ERR), HL_EINVAL);
    expect_outcome(hl_lock_acquire_async(lock, &options, never, NULL), HL_EINVAL); /* no owner */
    expect_outcome(hl_lock_acquire_async(lock, NULL, never, NULL), HL_EINVAL);
    expect_outcome(hl_lock_release_async(lock, NULL, never, NULL), HL_EINVAL);
    expect_outcome(hl_lock_release_async(lock, owner, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_force_release_async(lock, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_inspect_async(lock, NULL, NULL), HL_EINVAL);
    free_lock(NULL);
    free_owner(NULL);
    hl_cancel_fire(NULL);
    hl_cancel_free(NULL);
    close_client(NULL);
    expect_ok(hl_lock_acquire_with(lock, NULL, NULL)); /* no options, no hl_error: fine */
    expect_ok(hl_lock_release(lock, NULL));
    free_owner(owner);
    close_client(client);
}

Test(process_misuse, after_close_every_call_says_closed, .init = start, .fini = stop)
{
    hl_owner *owner = NULL, *late = NULL;
    hl_lock *made = NULL;
    expect_ok(hl_owner_new(client, &owner));
    expect_ok(hl_lock_acquire(lock, ERR));
    close_client(client);
    expect_of_locks(lock, owner, HL_ECLOSED);
    /* The handles keep the closed client's memory, so even these have an answer. */
    expect_outcome(hl_lock_new(client, "a", &made, ERR), HL_ECLOSED);
    expect_outcome(hl_owner_new(client, &late), HL_ECLOSED);
    expect_outcome(hl_client_ping(client, 1, ERR), HL_ECLOSED);
    expect_outcome(hl_client_fd(client), HL_ECLOSED);
    expect_outcome(hl_client_dispatch(client), HL_ECLOSED);
    check_str(hl_lock_name(lock, NULL), "misused");
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    check_str(events.reason[HL_EVENT_LOST], "closed");
    free_owner(owner);
}

static void *wait_for_misused(void *arg)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.owner = arg;
    options.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_lock_acquire_with(lock, &options, ERR));
    return NULL;
}

Test(process_misuse, an_owner_is_of_one_client_and_one_flow, .init = start, .fini = stop)
{
    hl_client *other = open_client(NULL);
    hl_owner *owner = NULL, *stranger = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    expect_ok(hl_owner_new(client, &owner));
    expect_ok(hl_owner_new(other, &stranger));
    options.owner = stranger;
    expect_outcome(hl_lock_acquire_with(lock, &options, ERR), HL_EINVAL);
    expect_outcome(hl_lock_release_as(lock, stranger, ERR), HL_EINVAL);

    expect_ok(hl_lock_acquire(lock, ERR));
    pthread_t waiter = kit_thread(wait_for_misused, owner);
    while (stats_of(client).waiters_now == 0)
        deadline_nap();
    options.owner = owner;
    options.wait_ms = HL_WAIT_FOREVER;
    expect_outcome(hl_lock_acquire_with(lock, &options, ERR), HL_EINVAL); /* it waits already */
    expect_ok(hl_lock_release(lock, ERR));
    pthread_join(waiter, NULL);
    check(hl_lock_is_held(lock, owner));
    expect_ok(hl_lock_release_as(lock, owner, ERR));
    free_owner(owner);
    free_owner(stranger);
    close_client(other);
    close_client(client);
}

static void close_from_inside(int code, const hl_error *err, void *arg)
{
    (void)err;
    check_int(code, HL_OK);
    expect_outcome(hl_client_close(client), HL_EDEADLK);
    expect_ok(hl_lock_release_as(lock, arg, NULL)); /* what else blocks is allowed */
    atomic_fetch_add(&events.told[HL_EVENT_SAFE], 1);
}

Test(process_misuse, a_close_from_a_callback_is_refused, .init = start, .fini = stop)
{
    hl_owner *owner = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    expect_ok(hl_owner_new(client, &owner));
    options.owner = owner;
    expect_ok(hl_lock_acquire_async(lock, &options, close_from_inside, owner));
    check(events_wait(&events, HL_EVENT_SAFE, 1, 5000));
    kit_try_out(client, "misused");
    free_owner(owner);
    close_client(client);
}
