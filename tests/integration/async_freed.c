/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* An async call reads its arguments before it returns: the handle and the owner may be freed then.
 * The address sanitizer sees a call that looks at them later. */

#include "support/kit.h"
#include "support/recorder.h"

static hl_client *client;
static struct recorder told = RECORDER_INIT;
static hl_permit got;

static void freed_start(void)
{
    server_up();
    client = open_client(NULL);
}

#define FreedLaw(name) Test(async_freed, name, .init = freed_start, .fini = server_down)

/* The call is made, its handle is freed, and its completion says so. */
#define EXPECT_CALL(call, free_call, said)                                                         \
    do {                                                                                           \
        int before = recorder_count(&told);                                                        \
        expect_ok(call);                                                                           \
        free_call;                                                                                 \
        check(recorder_wait(&told, before + 1));                                                   \
        check_int(recorder_entry(&told, before).code, (said));                                     \
    } while (0)

static hl_lock *made_lock(const char *name)
{
    hl_lock *lock = NULL;
    expect_ok(hl_lock_new(client, name, &lock, NULL));
    return lock;
}

static hl_lock *made_multi(void)
{
    hl_lock *member[] = {made_lock("a"), made_lock("b")}, *multi = NULL;
    expect_ok(hl_multi_lock_new(member, 2, NULL, &multi, NULL));
    hl_lock_free(member[0]);
    hl_lock_free(member[1]);
    return multi;
}

static hl_owner *made_owner(void)
{
    hl_owner *owner = NULL;
    expect_ok(hl_owner_new(client, &owner));
    return owner;
}

static void free_both(hl_lock *lock, hl_owner *owner)
{
    hl_lock_free(lock);
    hl_owner_free(owner);
}

FreedLaw(a_wait_for_a_lock_goes_on)
{
    hl_lock *held = made_lock("stock"), *lock = made_lock("stock");
    hl_owner *owner = made_owner();
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = -1, .owner = owner), record_done, &told));
    free_both(lock, owner);
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    hl_lock_free(held);
    check_int(redis_int(server, "EXISTS stock"), 1); /* the freed owner has it */
}

FreedLaw(calls_of_a_lock_come_to_their_end)
{
    hl_lock *lock = made_lock("stock");
    hl_owner *owner = made_owner();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    EXPECT_CALL(hl_lock_update_lease_async(lock, owner, 60000, record_done, &told),
                hl_lock_free(lock), HL_OK);
    lock = made_lock("stock");
    EXPECT_CALL(hl_lock_inspect_async(lock, record_info, &told), hl_lock_free(lock), HL_OK);
    lock = made_lock("stock");
    EXPECT_CALL(hl_lock_release_async(lock, owner, record_done, &told), free_both(lock, owner),
                HL_OK);
    lock = made_lock("stock");
    EXPECT_CALL(hl_lock_force_release_async(lock, record_done, &told), hl_lock_free(lock),
                HL_ENOENT);
}

FreedLaw(a_write_that_releases_comes_to_its_end)
{
    hl_lock *lock = made_lock("stock");
    hl_owner *owner = made_owner();
    char value[] = "12";
    hl_fenced_write write = HL_FENCED_WRITE_INIT;
    write.key = "{stock}:data"; /* of the lock's slot */
    write.value = value;
    write.value_length = strlen(value);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    EXPECT_CALL(hl_lock_set_and_release_async(lock, owner, &write, record_done, &told),
                (free_both(lock, owner), memset(value, 'x', sizeof value)), HL_OK);
    check_str(redis_str(server, "GET {stock}:data"), "12");
}

FreedLaw(calls_of_a_multi_lock_come_to_their_end)
{
    hl_lock *multi = made_multi();
    hl_owner *owner = made_owner();
    EXPECT_CALL(
        hl_lock_acquire_async(multi, ACQUIRE(.wait_ms = -1, .owner = owner), record_done, &told),
        hl_lock_free(multi), HL_OK);
    multi = made_multi();
    EXPECT_CALL(hl_lock_inspect_async(multi, record_info, &told), hl_lock_free(multi), HL_OK);
    multi = made_multi();
    EXPECT_CALL(hl_multi_lock_release_each_async(multi, owner, record_codes, &told),
                free_both(multi, owner), HL_OK);
    multi = made_multi();
    EXPECT_CALL(hl_lock_force_release_async(multi, record_done, &told), hl_lock_free(multi),
                HL_ENOENT);
}

static hl_semaphore *made_semaphore(void)
{
    hl_semaphore *semaphore = NULL;
    expect_ok(hl_semaphore_new(client, "pool", &semaphore, NULL));
    return semaphore;
}

static hl_latch *made_latch(void)
{
    hl_latch *latch = NULL;
    expect_ok(hl_latch_new(client, "gate", &latch, NULL));
    return latch;
}

#define EXPECT_OF(type, name, said, ...)                                                           \
    do {                                                                                           \
        hl_##type *it = made_##type();                                                             \
        EXPECT_CALL(hl_##type##_##name(it, __VA_ARGS__, &told), hl_##type##_free(it), (said));     \
    } while (0)

FreedLaw(calls_of_a_semaphore_and_a_latch_come_to_their_end)
{
    EXPECT_OF(semaphore, release_async, HL_OK, 2, record_done);
    EXPECT_OF(semaphore, acquire_async, HL_OK, 1, WAIT(.wait_ms = -1), record_done);
    EXPECT_OF(semaphore, available_async, HL_OK, record_count);
    EXPECT_OF(semaphore, drain_async, HL_OK, record_count);
    EXPECT_OF(latch, try_set_count_async, HL_OK, 1, record_done);
    EXPECT_OF(latch, count_async, HL_OK, record_count);
    EXPECT_OF(latch, count_down_async, HL_OK, record_done);
    EXPECT_OF(latch, await_async, HL_OK, WAIT(.wait_ms = -1), record_done);
    EXPECT_OF(latch, delete_async, HL_ENOENT, record_done);
}

static void record_permit(int code, const hl_permit *permits, size_t count, const hl_error *err,
                          void *arg)
{
    if (count == 1)
        got = permits[0];
    record_done(code, err, arg);
}

static hl_permits *made_permits(void)
{
    hl_permits *permits = NULL;
    expect_ok(hl_permits_new(client, "places", &permits, NULL));
    return permits;
}

FreedLaw(calls_of_permits_come_to_their_end)
{
    hl_owner *owner = made_owner();
    EXPECT_OF(permits, set_total_async, HL_OK, 2, 0, record_done);
    EXPECT_OF(permits, acquire_async, HL_OK, ACQUIRE(.wait_ms = -1, .owner = owner), record_permit);
    hl_owner_free(owner);
    EXPECT_OF(permits, update_lease_async, HL_OK, &got, 60000, record_done);
    EXPECT_OF(permits, lease_left_async, HL_OK, &got, record_count);
    EXPECT_OF(permits, available_async, HL_OK, record_count);
    EXPECT_OF(permits, release_async, HL_OK, &got, record_done);
    EXPECT_OF(permits, delete_async, HL_OK, record_done);
}
