/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A client is closed while completions wait to be told: each is told once, and nothing of the
 * client is left behind them, in Redis neither. */

#include <poll.h>

#include "lease/calls/client.h"
#include "lease/state/name.h"
#include "support/kinds.h"
#include "support/kit.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"

static struct recorder told = RECORDER_INIT;

static hl_client *open_dispatched(void)
{
    return open_client(CLIENT(.flags = HL_CLIENT_DISPATCH, .request_timeout_ms = 60000));
}

/* A completion waits to be dispatched, which never happens. */
static void expect_pending(hl_client *client)
{
    struct pollfd look = {.fd = hl_client_fd(client), .events = POLLIN};
    check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
}

/* Closes it, frees what it had, and finds this test's reference to be the last. What the server
 * gave to a call that is told of nothing has been given back. */
static void expect_closed_whole(hl_client *client, hl_lock *lock)
{
    hli_client_ref(client);
    close_client(client);
    check_int(redis_int(server, "EXISTS stock"), 0);
    free_lock(lock);
    check_int(atomic_load(&client->ref.count), 1);
    hli_client_unref(client);
}

static hl_lock *acquire_pending(hl_client *client, int64_t wait_ms)
{
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = NULL;
    check_int(hl_owner_new(client, &owner), 0);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner, .wait_ms = wait_ms), record_done,
                                    &told));
    expect_pending(client);
    hl_owner_free(owner);
    return lock;
}

Law(close_pending, tells_an_acquire_and_leaves_nothing)
{
    hl_client *client = open_dispatched();
    expect_closed_whole(client, acquire_pending(client, 60000));
    expect_story(&told, "done HL_ECANCELED");
}

Law(close_pending, tells_an_acquire_whose_wait_time_is_over_and_leaves_nothing)
{
    hl_client *client = open_dispatched();
    hl_lock *lock = acquire_pending(client, 100);
    struct deadline over = deadline_in(300); /* its timer has been at it */
    while (!deadline_is_over(over))
        deadline_nap();
    expect_closed_whole(client, lock);
    check(recorder_wait(&told, 1));
}

Law(close_pending, tells_a_fair_acquire_and_leaves_nothing)
{
    hl_client *client = open_dispatched();
    setenv("HL_TEST_HANDLE", "fair", 1);
    expect_closed_whole(client, acquire_pending(client, 60000));
    expect_story(&told, "done HL_ECANCELED");
}

Law(close_pending, gives_back_all_members_of_a_multi_lock)
{
    hl_client *client = open_dispatched();
    hl_lock *multi = NULL;
    expect_ok(hl_multi_lock_new((hl_lock *[]){new_lock(client, "a"), new_lock(client, "b")}, 2,
                                NULL, &multi, NULL));
    expect_ok(hl_lock_acquire_async(keep_lock(multi),
                                    ACQUIRE(.owner = new_owner(client), .wait_ms = 60000),
                                    record_done, &told));
    expect_pending(client);
    close_client(client);
    expect_story(&told, "done HL_ECANCELED");
    check_int(redis_int(server, "EXISTS a b"), 0);
}

/* The loop, which has ended, would look for the holds of the lock's other half. */
Law(close_pending, tells_a_forced_release_and_leaves_nothing)
{
    hl_client *client = open_dispatched();
    hl_lock *read = NULL, *write = NULL;
    check_int(rw_lock_new(client, "stock", NULL, &read, &write, NULL), 0);
    expect_ok(hl_lock_acquire_with(write, ACQUIRE(.lease_ms = 60000), NULL));
    expect_ok(hl_lock_force_release_async(write, record_done, &told));
    expect_pending(client);
    hli_client_ref(client);
    close_client(client);
    expect_story(&told, "done HL_OK");
    hl_lock_free(read);
    hl_lock_free(write);
    check_int(atomic_load(&client->ref.count), 1);
    hli_client_unref(client);
}

/* The completion may run before the call has returned. */
static void free_it(int code, const hl_error *err, void *arg)
{
    hl_lock *_Atomic *lock = arg;
    check_msg(code == HL_OK, "%s", err->text);
    hl_lock_free(atomic_load(lock));
    atomic_store(lock, NULL);
}

static bool is_freed(void *arg)
{
    hl_lock *_Atomic *lock = arg;
    return atomic_load(lock) == NULL;
}

Law(last_call, of_a_handle_may_have_a_completion_that_frees_it)
{
    enum { ROUNDS = 300 };
    hl_client *client = open_client(NULL);
    hl_owner *owner = new_owner(client);
    for (int i = 0; i < ROUNDS; i++) {
        hl_lock *lock = NULL;
        hl_lock *_Atomic last;
        check_int(hl_lock_new(client, "stock", &lock, NULL), 0);
        atomic_init(&last, lock);
        expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
        expect_ok(hl_lock_release_async(lock, owner, free_it, (void *)&last));
        check(wait_until(is_freed, (void *)&last, 5000));
    }
}
