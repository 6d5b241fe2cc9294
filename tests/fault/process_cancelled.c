/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A thread whose cancellation is pending calls every kind of primitive: none of the calls is a
 * cancellation point, and the client closes behind it. */
#include "process_kit.h"

#include "support/kinds.h"
#include "support/redis_probe.h"

static struct events events;

static void start(void)
{
    server = redis_server_start(NULL);
}

static void stop(void)
{
    redis_server_stop(server);
}

/* What a call was under way when the thread ended. */
struct pending {
    const char *url;
    hl_client *client;
    hl_owner *owner;
    atomic_int completions;
    const char *_Atomic step;
};

static void pending_done(int code, const hl_error *err, void *arg)
{
    struct pending *pending = arg;
    (void)code, (void)err;
    atomic_fetch_add(&pending->completions, 1);
}

static void pending_got(int code, const hl_permit *permits, size_t count, const hl_error *err,
                        void *arg)
{
    (void)permits, (void)count;
    pending_done(code, err, arg);
}

static void pending_inspected(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    (void)info;
    pending_done(code, err, arg);
}

#define STEP(call) (atomic_store(&pending->step, #call), (call))

static void pending_await(struct pending *pending, int completions)
{
    struct deadline deadline = deadline_of_wait(10000);
    while (atomic_load(&pending->completions) < completions) {
        check_msg(!deadline_is_over(deadline), "%s", atomic_load(&pending->step));
        sched_yield(); /* no cancellation point */
    }
}

static hl_acquire_options pending_options(const struct pending *pending)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    options.owner = pending->owner;
    return options;
}

/* Every verb of a lock, on a lock of any kind. */
static void pending_lock(struct pending *pending, hl_lock *lock)
{
    hl_acquire_options options = pending_options(pending);
    hl_lock_info info = HL_LOCK_INFO_INIT;
    check_int(STEP(hl_lock_acquire(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_acquire(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_release(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_inspect(lock, &info, NULL)), HL_OK);
    check_int(STEP(hl_lock_release(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_acquire(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_force_release(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_release(lock, NULL)), HL_ELOST);
    atomic_store(&pending->completions, 0);
    check_int(STEP(hl_lock_acquire_async(lock, &options, pending_done, pending)), HL_OK);
    pending_await(pending, 1);
    check_int(STEP(hl_lock_release_async(lock, pending->owner, pending_done, pending)), HL_OK);
    pending_await(pending, 2);
    STEP(free_lock(lock));
}

static void pending_retained(struct pending *pending)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *lock = NULL;
    options.retain_ms = 1000;
    check_int(STEP(lock_new_with(pending->client, "retained", &options, &lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_acquire(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_release(lock, NULL)), HL_OK);
    int code = STEP(hl_lock_force_release(lock, NULL)); /* it is free when this thread was slow */
    check(code == HL_OK || code == HL_ENOENT);
    STEP(free_lock(lock));
}

static void pending_locks(struct pending *pending)
{
    hl_lock *lock = NULL, *other = NULL, *both = NULL;
    check_int(STEP(fair_lock_new(pending->client, "fair", NULL, &lock, NULL)), HL_OK);
    pending_lock(pending, lock);
    check_int(STEP(rw_lock_new(pending->client, "rw", NULL, &lock, &other, NULL)), HL_OK);
    pending_lock(pending, lock);
    pending_lock(pending, other);
    check_int(STEP(fenced_lock_new(pending->client, "fenced", NULL, &lock, NULL)), HL_OK);
    pending_lock(pending, lock);
    check_int(STEP(spin_lock_new(pending->client, "spin", NULL, &lock, NULL)), HL_OK);
    pending_lock(pending, lock);
    check_int(STEP(hl_lock_new(pending->client, "first", &lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_new(pending->client, "second", &other, NULL)), HL_OK);
    hl_lock *members[] = {lock, other};
    check_int(STEP(hl_multi_lock_new(members, 2, NULL, &both, NULL)), HL_OK);
    pending_lock(pending, both);
    STEP(free_lock(lock));
    STEP(free_lock(other));
}

static void pending_permits(struct pending *pending)
{
    hl_acquire_options options = pending_options(pending);
    hl_permits *gate = NULL;
    hl_permit permit, several[2];
    check_int(STEP(hl_permits_new(pending->client, "gate", &gate, NULL)), HL_OK);
    check_int(STEP(hl_permits_set_total(gate, 10, 0, NULL)), HL_OK);
    check_int(STEP(hl_permits_acquire(gate, &permit, NULL)), HL_OK);
    check_int(STEP(hl_permits_update_lease(gate, &permit, 60000, NULL)), HL_OK);
    check_int(STEP(hl_permits_release(gate, &permit, NULL)), HL_OK);
    check_int(STEP(hl_permits_update_lease(gate, &permit, 60000, NULL)), HL_ENOENT);
    check_int(STEP(hl_permits_acquire_many(gate, 2, NULL, several, NULL)), HL_OK);
    atomic_store(&pending->completions, 0);
    check_int(STEP(hl_permits_acquire_many_async(gate, 1, &options, pending_got, pending)), HL_OK);
    pending_await(pending, 1);
    STEP(hl_permits_free(gate));
}

static void pending_counts(struct pending *pending)
{
    hl_semaphore *semaphore = NULL;
    hl_latch *latch = NULL;
    int64_t count = 0;
    check_int(STEP(hl_semaphore_new(pending->client, "semaphore", &semaphore, NULL)), HL_OK);
    check_int(STEP(hl_semaphore_add_permits(semaphore, 3, NULL)), HL_OK);
    check_int(STEP(hl_semaphore_acquire(semaphore, 1, NULL)), HL_OK);
    check_int(STEP(hl_semaphore_release(semaphore, 1, NULL)), HL_OK);
    check_int(STEP(hl_semaphore_drain(semaphore, &count, NULL)), HL_OK);
    STEP(hl_semaphore_free(semaphore));
    check_int(STEP(hl_latch_new(pending->client, "latch", &latch, NULL)), HL_OK);
    check_int(STEP(hl_latch_try_set_count(latch, 1, NULL)), HL_OK);
    check_int(STEP(hl_latch_count_down(latch, NULL)), HL_OK);
    check_int(STEP(hl_latch_await(latch, NULL)), HL_OK);
    STEP(hl_latch_free(latch));
}

static void *call_all(void *arg)
{
    struct pending *pending = arg;
    pthread_cancel(pthread_self());
    pending_locks(pending);
    pending_retained(pending);
    pending_permits(pending);
    pending_counts(pending);
    atomic_store(&pending->step, "the end");
    pthread_testcancel();
    return NULL;
}

Test(process_cancelled, no_call_of_any_primitive_is_a_cancellation_point, .init = start,
     .fini = stop)
{
    hl_client_options options = kit_options(30000, &events);
    struct pending pending = {.client = open_client(&options)};
    void *result = NULL;
    expect_ok(hl_owner_new(pending.client, &pending.owner));
    pthread_join(kit_thread(call_all, &pending), &result);
    check(result == PTHREAD_CANCELED);
    check_str(atomic_load(&pending.step), "the end");
    free_owner(pending.owner);
    close_client(pending.client);
}

static void pending_blocking(struct pending *pending, hl_lock *lock, hl_owner *owner)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    check_int(STEP(hl_lock_try_acquire(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_acquire_for(lock, 1, NULL)), HL_OK);
    check(STEP(hl_lock_is_held(lock, NULL)));
    check_int(STEP(hl_lock_release(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_inspect(lock, &info, NULL)), HL_OK);
    check_int(STEP(hl_lock_force_release(lock, NULL)), HL_OK);
    check_int(STEP(hl_lock_release(lock, NULL)), HL_ELOST);
    check_int(STEP(hl_lock_release_as(lock, owner, NULL)), HL_ENOTOWNER);
    check_int(STEP(hl_client_ping(pending->client, -1, NULL)), HL_OK);
}

static void pending_async(struct pending *pending, hl_lock *lock, hl_owner *owner)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    options.owner = owner;
    check_int(STEP(hl_lock_acquire_async(lock, &options, pending_done, pending)), HL_OK);
    while (atomic_load(&pending->completions) < 1)
        check(STEP(hl_client_dispatch(pending->client)) >= 0);
    check_int(STEP(hl_lock_inspect_async(lock, pending_inspected, pending)), HL_OK);
    check_int(STEP(hl_lock_release_async(lock, owner, pending_done, pending)), HL_OK);
    check_int(STEP(hl_lock_force_release_async(lock, pending_done, pending)), HL_OK);
    while (atomic_load(&pending->completions) < 4)
        check(STEP(hl_client_dispatch(pending->client)) >= 0);
}

static void *call_all_while_cancelled(void *arg)
{
    struct pending *pending = arg;
    hl_lock *lock = NULL;
    hl_owner *owner = NULL;
    hl_cancel *cancel = NULL;
    hl_client *client = NULL;
    pthread_cancel(pthread_self());
    check_int(STEP(hl_lock_new(pending->client, "pending", &lock, NULL)), HL_OK);
    check_int(STEP(hl_owner_new(pending->client, &owner)), HL_OK);
    check_int(STEP(hl_cancel_new(&cancel)), HL_OK);
    pending_blocking(pending, lock, owner);
    pending_async(pending, lock, owner);
    STEP(hl_cancel_fire(cancel));
    STEP(hl_cancel_free(cancel));
    STEP(free_owner(owner));
    STEP(free_lock(lock));
    check_int(STEP(hl_client_open(pending->url, NULL, &client, NULL)), HL_OK);
    check_int(STEP(hl_lock_new(client, "pending", &lock, NULL)), HL_OK);
    check_int(STEP(hl_client_close(client)), HL_OK);
    STEP(free_lock(lock)); /* and with it the client */
    atomic_store(&pending->step, "the end");
    pthread_testcancel();
    return NULL;
}

Test(process_cancelled, no_call_of_the_client_and_its_lock_is_a_cancellation_point, .init = start,
     .fini = stop)
{
    int files = census_files();
    hl_client_options options = kit_options(30000, &events);
    options.flags = HL_CLIENT_DISPATCH;
    struct pending pending = {.url = redis_server_url(server), .client = open_client(&options)};
    void *result = NULL;
    pthread_join(kit_thread(call_all_while_cancelled, &pending), &result);
    check(result == PTHREAD_CANCELED);
    check_str(atomic_load(&pending.step), "the end");
    close_client(pending.client);
    kit_expect_no_threads();
    check_int(census_files(), files);
}
