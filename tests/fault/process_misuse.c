/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Callers that do what they must not: each is told so, and nothing else happens. */
#include "process_kit.h"

#include "support/redis_probe.h"

static struct redis_server *server;
static hl_client *client;
static hl_lock *lock;
static struct kit_events events;

static void start(void)
{
    server = redis_server_start(NULL);
    hl_client_options options = kit_options(slow_ms(300), &events);
    client = kit_open(redis_server_url(server), &options);
    lock = kit_lock(client, "misused");
}

static void stop(void)
{
    hl_lock_free(lock);
    redis_server_stop(server);
}

static void *release_of_another(void *arg)
{
    (void)arg;
    kit_expect(hl_lock_release(lock, &err), HL_ENOTOWNER);
    check(!hl_lock_is_held(lock, NULL));
    kit_expect(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    return NULL;
}

Test(process_misuse, a_release_by_another_thread_or_owner_is_refused, .init = start, .fini = stop)
{
    hl_owner *owner = NULL;
    check_int(hl_owner_new(client, &owner), HL_OK);
    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    pthread_join(kit_thread(release_of_another, NULL), NULL);
    kit_expect(hl_lock_release_as(lock, owner, &err), HL_ENOTOWNER);
    check(hl_lock_is_held(lock, NULL) && !hl_lock_is_held(lock, owner));
    check_int(redis_int(server, "HLEN misused"), 1);
    kit_expect(hl_lock_release(lock, &err), HL_OK);
    hl_owner_free(owner);
    check_int(hl_client_close(client), HL_OK);
}

Test(process_misuse, a_release_too_many_is_refused_and_harms_no_later_holder, .init = start,
     .fini = stop)
{
    hl_client *other = kit_open(redis_server_url(server), NULL);
    hl_lock *later = kit_lock(other, "misused");
    kit_expect(hl_lock_release(lock, &err), HL_ENOTOWNER);
    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    kit_expect(hl_lock_release(lock, &err), HL_OK);
    kit_expect(hl_lock_release(lock, &err), HL_OK);
    kit_expect(hl_lock_acquire(later, &err), HL_OK);
    kit_expect(hl_lock_release(lock, &err), HL_ENOTOWNER);
    check(hl_lock_is_held(later, NULL));
    check_int(redis_int(server, "HLEN misused"), 1);
    kit_expect(hl_lock_release(later, &err), HL_OK);
    hl_lock_free(later);
    check_int(hl_client_close(other), HL_OK);
    check_int(hl_client_close(client), HL_OK);
}

Test(process_misuse, each_level_of_a_lost_hold_is_told_once, .init = start, .fini = stop)
{
    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    redis_do(server, "DEL misused");
    check(kit_await_told(&events, HL_EVENT_LOST, 1, 5000));
    check_str(atomic_load(&events.lost_reason), "gone");
    kit_expect(hl_lock_acquire(lock, &err), HL_ELOST);
    kit_expect(hl_lock_release(lock, &err), HL_ELOST);
    kit_expect(hl_lock_release(lock, &err), HL_ELOST);
    kit_expect(hl_lock_release(lock, &err), HL_ENOTOWNER);
    kit_try_out(client, "misused");
    check_int(kit_told(&events, HL_EVENT_LOST), 1);
    check_int(hl_client_close(client), HL_OK);
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
    kit_expect(hl_lock_acquire(handle, &err), code);
    kit_expect(hl_lock_try_acquire(handle, &err), code);
    kit_expect(hl_lock_acquire_for(handle, 10, &err), code);
    kit_expect(hl_lock_acquire_with(handle, &options, &err), code);
    kit_expect(hl_lock_release(handle, &err), code);
    kit_expect(hl_lock_release_as(handle, owner, &err), code);
    kit_expect(hl_lock_force_release(handle, &err), code);
    kit_expect(hl_lock_inspect(handle, &info, &err), code);
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
    check_int(hl_owner_new(client, &owner), HL_OK);
    kit_expect(hl_client_open(NULL, NULL, &opened, &err), HL_EINVAL);
    kit_expect(hl_client_open(redis_server_url(server), NULL, NULL, &err), HL_EINVAL);
    kit_expect(hl_client_ping(NULL, 1, &err), HL_EINVAL);
    check_int(hl_client_fd(NULL), HL_EINVAL);
    check_int(hl_client_dispatch(NULL), HL_EINVAL);
    check_int(hl_client_stats(NULL, &stats), HL_EINVAL);
    check_int(hl_client_stats(client, NULL), HL_EINVAL);
    check(!hl_client_id(NULL) && !hl_lock_name(NULL, NULL));
    kit_expect(hl_lock_new(NULL, "a", &made, &err), HL_EINVAL);
    kit_expect(hl_lock_new(client, NULL, &made, &err), HL_EINVAL);
    kit_expect(hl_lock_new(client, "a", NULL, &err), HL_EINVAL);
    kit_expect(hl_lock_new_bytes(client, NULL, 1, &made, &err), HL_EINVAL);
    check_int(hl_owner_new(NULL, &owner), HL_EINVAL);
    check_int(hl_owner_new(client, NULL), HL_EINVAL);
    check_int(hl_cancel_new(NULL), HL_EINVAL);
    expect_of_locks(NULL, owner, HL_EINVAL);
    kit_expect(hl_lock_inspect(lock, NULL, &err), HL_EINVAL);
    check_int(hl_lock_acquire_async(lock, &options, never, NULL), HL_EINVAL); /* no owner */
    check_int(hl_lock_acquire_async(lock, NULL, never, NULL), HL_EINVAL);
    check_int(hl_lock_release_async(lock, NULL, never, NULL), HL_EINVAL);
    check_int(hl_lock_release_async(lock, owner, NULL, NULL), HL_EINVAL);
    check_int(hl_lock_force_release_async(lock, NULL, NULL), HL_EINVAL);
    check_int(hl_lock_inspect_async(lock, NULL, NULL), HL_EINVAL);
    hl_lock_free(NULL);
    hl_owner_free(NULL);
    hl_cancel_fire(NULL);
    hl_cancel_free(NULL);
    check_int(hl_client_close(NULL), HL_OK);
    check_int(hl_lock_acquire_with(lock, NULL, NULL), HL_OK); /* no options, no hl_error: fine */
    check_int(hl_lock_release(lock, NULL), HL_OK);
    hl_owner_free(owner);
    check_int(hl_client_close(client), HL_OK);
}

Test(process_misuse, after_close_every_call_says_closed, .init = start, .fini = stop)
{
    hl_owner *owner = NULL, *late = NULL;
    hl_lock *made = NULL;
    check_int(hl_owner_new(client, &owner), HL_OK);
    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    check_int(hl_client_close(client), HL_OK);
    expect_of_locks(lock, owner, HL_ECLOSED);
    /* The handles keep the closed client's memory, so even these have an answer. */
    kit_expect(hl_lock_new(client, "a", &made, &err), HL_ECLOSED);
    check_int(hl_owner_new(client, &late), HL_ECLOSED);
    kit_expect(hl_client_ping(client, 1, &err), HL_ECLOSED);
    check_int(hl_client_fd(client), HL_ECLOSED);
    check_int(hl_client_dispatch(client), HL_ECLOSED);
    check_str(hl_lock_name(lock, NULL), "misused");
    check_int(kit_told(&events, HL_EVENT_LOST), 1);
    check_str(atomic_load(&events.lost_reason), "closed");
    hl_owner_free(owner);
}

static void *wait_for_misused(void *arg)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.owner = arg;
    options.wait_ms = HL_WAIT_FOREVER;
    kit_expect(hl_lock_acquire_with(lock, &options, &err), HL_OK);
    return NULL;
}

Test(process_misuse, an_owner_is_of_one_client_and_one_flow, .init = start, .fini = stop)
{
    hl_client *other = kit_open(redis_server_url(server), NULL);
    hl_owner *owner = NULL, *stranger = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    check_int(hl_owner_new(client, &owner), HL_OK);
    check_int(hl_owner_new(other, &stranger), HL_OK);
    options.owner = stranger;
    kit_expect(hl_lock_acquire_with(lock, &options, &err), HL_EINVAL);
    kit_expect(hl_lock_release_as(lock, stranger, &err), HL_EINVAL);

    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    pthread_t waiter = kit_thread(wait_for_misused, owner);
    while (kit_stats(client).waiters_now == 0)
        deadline_nap();
    options.owner = owner;
    options.wait_ms = HL_WAIT_FOREVER;
    kit_expect(hl_lock_acquire_with(lock, &options, &err), HL_EINVAL); /* it waits already */
    kit_expect(hl_lock_release(lock, &err), HL_OK);
    pthread_join(waiter, NULL);
    check(hl_lock_is_held(lock, owner));
    kit_expect(hl_lock_release_as(lock, owner, &err), HL_OK);
    hl_owner_free(owner);
    hl_owner_free(stranger);
    check_int(hl_client_close(other), HL_OK);
    check_int(hl_client_close(client), HL_OK);
}

static void close_from_inside(int code, const hl_error *err, void *arg)
{
    (void)err;
    check_int(code, HL_OK);
    check_int(hl_client_close(client), HL_EDEADLK);
    check_int(hl_lock_release_as(lock, arg, NULL), HL_OK); /* what else blocks is allowed */
    atomic_fetch_add(&events.told[HL_EVENT_SAFE], 1);
}

Test(process_misuse, a_close_from_a_callback_is_refused, .init = start, .fini = stop)
{
    hl_owner *owner = NULL;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    check_int(hl_owner_new(client, &owner), HL_OK);
    options.owner = owner;
    check_int(hl_lock_acquire_async(lock, &options, close_from_inside, owner), HL_OK);
    check(kit_await_told(&events, HL_EVENT_SAFE, 1, 5000));
    kit_try_out(client, "misused");
    hl_owner_free(owner);
    check_int(hl_client_close(client), HL_OK);
}
