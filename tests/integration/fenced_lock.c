/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fenced lock: each hold has a token, and it comes with the hold. A plain lock of the same name
 * is the same lock.
 */

#include "fenced_kit.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

Law(fenced_lock, gives_the_token_in_the_answer_that_gives_the_hold)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fenced(client);
    uint64_t token = 0;
    hold_once(lock); /* the server knows the scripts */
    expect_gone(server, "stock");
    expect_ok(hl_client_ping(client, -1, NULL));
    int64_t before = redis_evalsha_calls(server);
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = 0), &token));
    check_int(redis_evalsha_calls(server), before + 1);
    check(token > 0 && token == hl_lock_token(lock, NULL));
    check(token <= counter()); /* where it is kept, others were taken in advance */
    check_int(redis_int(server, "PTTL " COUNTER), -1);
    expect_held_by(client, lock, 1); /* as any lock */
    expect_ok(hl_lock_release(lock, NULL));
    check_int(hl_lock_token(lock, NULL), 0);
    expect_gone(server, "stock");
    check(counter() >= token); /* it does not begin anew */
    if (!handle_retains())
        check_int(counter(), token);
}

Law(fenced_lock, gives_one_token_to_a_hold_however_deep_it_is)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fenced(client);
    uint64_t outer = 0, inner = 0;
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = 0), &outer));
    uint64_t counted = counter();
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = 0), &inner));
    check(inner == outer && hl_lock_token(lock, NULL) == outer);
    inner = 0; /* one that has to ask the server for a longer lease */
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = 0, .lease_ms = 120000), &inner));
    check(inner == outer);
    expect_held_by(client, lock, 4);
    check(counter() == counted);
    for (int i = 0; i < 4; i++) {
        check(hl_lock_token(lock, NULL) == outer);
        expect_ok(hl_lock_release(lock, NULL));
    }
    check(hold_once(lock) > outer);
}

Law(fenced_lock, gives_each_owner_its_own_token)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fenced(client);
    hl_owner *mine = new_owner(client), *other = new_owner(client);
    uint64_t token = 0;
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = 0, .owner = mine), &token));
    check(hl_lock_token(lock, mine) == token);
    check_int(hl_lock_token(lock, other), 0);
    check_int(hl_lock_token(lock, NULL), 0);
    check_int(hl_lock_token(NULL, mine), 0);
    uint64_t untouched = 99;
    expect_outcome(acquire_token(lock, ACQUIRE(.wait_ms = 0), &untouched), HL_EBUSY);
    check_int(untouched, 99);
    expect_ok(hl_lock_release_as(lock, mine, NULL));
    close_client(client);
    check_int(hl_lock_token(lock, mine), 0);
}

Law(fenced_lock, gives_no_token_to_a_caller_that_does_not_get_the_lock)
{
    hl_client *client = open_client(NULL), *rival = open_client(NULL);
    hl_lock *lock = new_fenced(client), *rivals = new_fenced(rival);
    expect_ok(hl_lock_acquire(lock, NULL));
    uint64_t counted = counter(), untouched = 99;
    expect_outcome(acquire_token(rivals, ACQUIRE(.wait_ms = 0), &untouched), HL_EBUSY);
    expect_outcome(acquire_token(rivals, ACQUIRE(.wait_ms = 50), &untouched), HL_ETIMEDOUT);
    check_int(untouched, 99);
    check_int(hl_lock_token(rivals, NULL), 0);
    check(counter() == counted);
}

Law(fenced_lock, gives_the_token_of_an_async_acquire_before_its_completion)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fenced(client);
    hl_owner *mine = new_owner(client);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = mine), record_done, &told));
    expect_story(&told, "done HL_OK");
    check(hl_lock_token(lock, mine) > 0);
}

/* A fenced lock treats a lease as other locks do. */
Law(fenced_lock, honours_the_lease_it_is_asked_for)
{
    const int64_t watch_ms = slow_ms(3000), lease_ms = 2 * watch_ms;
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = watch_ms));
    hl_lock *lock = new_fenced(client);
    uint64_t token = 0;
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = 0, .lease_ms = lease_ms), &token));
    check(pttl_of(lock) > watch_ms && pttl_of(lock) <= lease_ms);
    check(redis_wait_int(server, 0, 2 * lease_ms, "EXISTS stock"));
    check_int(stats_of(client).renewals, 0);
    check_int(hl_lock_token(lock, NULL), 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_ok(hl_lock_acquire(lock, NULL)); /* and without one it is renewed */
    check(hl_lock_token(lock, NULL) > token);
    wait_stat(client, renewals, 2);
    check(hl_lock_is_held(lock, NULL));
}

/* A plain lock of the same name is the same lock. */
Law(plain_and_fenced, exclude_each_other_and_only_fenced_holds_have_tokens)
{
    hl_client *client = open_client(NULL), *rival = open_client(NULL);
    hl_lock *fenced = new_fenced(client), *plain = new_lock(client, "stock");
    hl_lock *rivals = new_lock(rival, "stock"), *rivals_fenced = new_fenced(rival);
    expect_ok(hl_lock_acquire(fenced, NULL));
    uint64_t token = hl_lock_token(fenced, NULL);
    check(hl_lock_token(plain, NULL) == token); /* it is the owner's hold, by whatever handle */
    expect_outcome(hl_lock_try_acquire(rivals, NULL), HL_EBUSY);
    expect_ok(hl_lock_acquire(plain, NULL)); /* nests */
    expect_ok(hl_lock_release(fenced, NULL));
    check(hl_lock_token(fenced, NULL) == token);
    expect_ok(hl_lock_release(plain, NULL));
    expect_ok(hl_lock_acquire(rivals, NULL));
    check_int(hl_lock_token(rivals, NULL), 0);
    check_int(hl_lock_token(rivals_fenced, NULL), 0);
    expect_outcome(hl_lock_try_acquire(fenced, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(rivals, NULL));
    check(hold_once(fenced) > token);
}

Law(plain_and_fenced, a_hold_without_a_token_gets_none_later)
{
    hl_client *client = open_client(NULL);
    hl_lock *fenced = new_fenced(client), *plain = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;
    uint64_t untouched = 99;
    expect_ok(hl_lock_acquire(plain, NULL));
    expect_outcome(hl_lock_acquire(fenced, &err), HL_EINVAL);
    check_msg(strstr(err.text, "without a token") != NULL, "%s", err.text);
    expect_outcome(acquire_token(fenced, ACQUIRE(.wait_ms = 0), &untouched), HL_EINVAL);
    check_int(untouched, 99);
    check_int(hl_lock_hold_count(plain, NULL), 1);
    expect_ok(hl_lock_release(plain, NULL));
}

static void *work_plain(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < worker->holds; i++) {
        expect_ok(hl_lock_acquire(worker->lock, NULL));
        check_int(hl_lock_token(worker->lock, NULL), 0);
        expect_ok(hl_lock_release(worker->lock, NULL));
    }
    return NULL;
}

Law(plain_and_fenced, pass_the_lock_to_each_other_and_tokens_grow)
{
    static struct ledger ledger;
    hl_client *client = open_client(NULL);
    struct worker plain = {.lock = new_lock(client, "stock"), .holds = 400};
    hl_lock *lock = new_fenced(client), *locks[WORKERS] = {lock, lock, lock, lock};
    check_int(pthread_create(&plain.thread, NULL, work_plain, &plain), 0);
    work_beside(locks, &ledger, 100);
    pthread_join(plain.thread, NULL);
    expect_order(&ledger, 100 * WORKERS);
}
