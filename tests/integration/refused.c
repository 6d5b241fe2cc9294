/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Calls that take no hl_error and are refused at once: hl_err_last() says why. */

#include "support/kit.h"
#include "support/recorder.h"

static hl_client *client, *other;
static hl_lock *lock, *both;
static hl_owner *owner, *others;
static hl_semaphore *semaphore;
static hl_permits *permits;
static hl_latch *latch;
static struct recorder told = RECORDER_INIT;

static void begin(void)
{
    client = open_client(NULL);
    other = open_client(NULL);
    lock = new_lock(client, "a");
    expect_ok(hl_multi_lock_new((hl_lock *[]){lock, new_lock(client, "b")}, 2, NULL, &both, NULL));
    owner = new_owner(client);
    others = new_owner(other);
    expect_ok(hl_semaphore_new(client, "s", &semaphore, NULL));
    expect_ok(hl_permits_new(client, "p", &permits, NULL));
    expect_ok(hl_latch_new(client, "l", &latch, NULL));
}

static void end(void)
{
    hl_lock_free(both);
    hl_semaphore_free(semaphore);
    hl_permits_free(permits);
    hl_latch_free(latch);
}

/* The text of an earlier call is not taken for this one's. */
static void forget(void)
{
    expect_outcome(hl_cancel_new(NULL), HL_EINVAL);
    check_str(hl_err_last()->text, "ret_cancel is NULL");
}

static void expect_last(const char *call, int code, int expected, const char *says)
{
    const hl_error *last = hl_err_last();
    check_msg(code == expected && last->code == expected && strstr(last->text, says), "%s: %s: %s",
              call, hl_err_name(code), last->text);
}

#define expect_says(call, expected, says)                                                          \
    do {                                                                                           \
        forget();                                                                                  \
        expect_last(#call, (call), (expected), (says));                                            \
    } while (0)

static void note_permits(int code, const hl_permit *got, size_t count, const hl_error *err,
                         void *arg)
{
    (void)code, (void)got, (void)count, (void)err, (void)arg;
}

static void note_count(int code, int64_t count, const hl_error *err, void *arg)
{
    (void)code, (void)count, (void)err, (void)arg;
}

static void note_token(int code, uint64_t token, const hl_error *err, void *arg)
{
    (void)code, (void)token, (void)err, (void)arg;
}

Law(refused, calls_of_a_lock_say_why)
{
    hl_fenced_write write = HL_FENCED_WRITE_INIT;
    begin();
    write.key = "data";
    expect_says(hl_lock_acquire_async(NULL, NULL, record_done, &told), HL_EINVAL,
                "(lock, semaphore, latch) is NULL");
    expect_says(hl_lock_acquire_async(lock, NULL, record_done, &told), HL_EINVAL, "explicit owner");
    expect_says(hl_lock_acquire_async(both, NULL, record_done, &told), HL_EINVAL, "explicit owner");
    expect_says(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), NULL, NULL), HL_EINVAL,
                "done is NULL");
    expect_says(hl_lock_acquire_async(both, ACQUIRE(.owner = owner), NULL, NULL), HL_EINVAL,
                "done is NULL");
    expect_says(hl_lock_acquire_async(lock, ACQUIRE(.owner = others), record_done, &told),
                HL_EINVAL, "another client");
    expect_says(hl_lock_acquire_async(both, ACQUIRE(.owner = others), record_done, &told),
                HL_EINVAL, "another client");
    expect_says(
        hl_lock_acquire_async(lock, ACQUIRE(.owner = owner, .wait_ms = -2), record_done, &told),
        HL_EINVAL, "wait_ms");
    expect_says(
        hl_lock_acquire_async(both, ACQUIRE(.owner = owner, .wait_ms = -2), record_done, &told),
        HL_EINVAL, "wait_ms");
    expect_says(hl_lock_release_async(lock, NULL, record_done, &told), HL_EINVAL, "explicit owner");
    expect_says(hl_lock_release_async(both, NULL, record_done, &told), HL_EINVAL, "explicit owner");
    expect_says(hl_lock_release_async(lock, others, record_done, &told), HL_EINVAL,
                "another client");
    expect_says(hl_lock_release_async(lock, owner, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_lock_release_async(both, owner, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_multi_lock_release_each_async(lock, owner, record_codes, &told), HL_EINVAL,
                "no multi-lock");
    expect_says(hl_multi_lock_release_each_async(NULL, owner, record_codes, &told), HL_EINVAL,
                "no multi-lock");
    expect_says(hl_multi_lock_release_each_async(both, owner, NULL, NULL), HL_EINVAL,
                "done is NULL");
    expect_says(hl_lock_inspect_async(lock, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_lock_force_release_async(lock, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_lock_set_and_release_async(both, owner, &write, record_done, &told), HL_ENOTSUP,
                "");
    expect_says(hl_lock_set_and_release_async(lock, NULL, &write, record_done, &told), HL_EINVAL,
                "explicit owner");
    expect_says(hl_fence_set_async(client, &write, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_fence_set_async(client, &write, record_done, &told), HL_EINVAL, "token");
    expect_says(hl_fence_set_async(NULL, &write, record_done, &told), HL_EINVAL, "client is NULL");
    expect_says(hl_fence_token_async(client, "", 0, note_token, NULL), HL_EINVAL, "key is empty");
    check_int(recorder_count(&told), 0);
    end();
}

Law(refused, calls_of_a_counter_say_why)
{
    const hl_permit none = {0}, some = {"0123456789abcdef0123456789abcdef"};
    begin();
    expect_says(hl_semaphore_acquire_async(semaphore, 0, NULL, record_done, &told), HL_EINVAL,
                "permits");
    expect_says(hl_semaphore_acquire_async(semaphore, 1, NULL, NULL, NULL), HL_EINVAL,
                "done is NULL");
    expect_says(hl_semaphore_release_async(semaphore, 1, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_semaphore_release_async(NULL, 1, record_done, &told), HL_EINVAL, "NULL");
    expect_says(hl_semaphore_try_set_permits_async(semaphore, 1, -1, record_done, &told), HL_EINVAL,
                "ttl_ms");
    expect_says(hl_semaphore_add_permits_async(semaphore, INT64_MAX, record_done, &told), HL_EINVAL,
                "permits");
    expect_says(hl_semaphore_available_async(semaphore, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_permits_acquire_many_async(permits, 1, NULL, note_permits, NULL), HL_EINVAL,
                "explicit owner");
    expect_says(hl_permits_acquire_many_async(permits, 1, ACQUIRE(.owner = owner), NULL, NULL),
                HL_EINVAL, "done is NULL");
    expect_says(hl_permits_release_async(permits, &none, record_done, &told), HL_EINVAL, "permit");
    expect_says(hl_permits_release_async(permits, &some, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_permits_update_lease_async(permits, &none, 1, record_done, &told), HL_EINVAL,
                "permit");
    expect_says(hl_permits_lease_left_async(permits, NULL, note_count, NULL), HL_EINVAL, "permit");
    expect_says(hl_permits_total_async(NULL, note_count, NULL), HL_EINVAL,
                "(lock, semaphore, latch) is NULL");
    expect_says(hl_permits_set_total_async(permits, -1, 0, record_done, &told), HL_EINVAL,
                "out of range");
    expect_says(hl_permits_delete_async(permits, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_latch_try_set_count_async(latch, 0, record_done, &told), HL_EINVAL, "count");
    expect_says(hl_latch_count_down_async(latch, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_latch_await_async(latch, NULL, NULL, NULL), HL_EINVAL, "done is NULL");
    expect_says(hl_latch_await_async(latch, WAIT(.wait_ms = -2), record_done, &told), HL_EINVAL,
                "wait_ms");
    check_int(recorder_count(&told), 0);
    end();
}

Law(refused, calls_of_a_client_say_why)
{
    begin();
    expect_says(hl_owner_new(NULL, &owner), HL_EINVAL, "client is NULL");
    expect_says(hl_owner_new(client, NULL), HL_EINVAL, "ret_owner is NULL");
    expect_says(hl_client_fd(client), HL_EINVAL, "HL_CLIENT_DISPATCH");
    expect_says(hl_client_dispatch(client), HL_EINVAL, "HL_CLIENT_DISPATCH");
    expect_says(hl_client_stats(client, NULL), HL_EINVAL, "stats is NULL");
    expect_says(hl_client_stats(client, &(hl_stats){.size = 0}), HL_EINVAL, "size");
    close_client(client);
    expect_says(hl_lock_release_async(lock, owner, record_done, &told), HL_ECLOSED, "closed");
    end();
}

static void *see_nothing(void *arg)
{
    *(int *)arg = hl_err_last()->code;
    return NULL;
}

Law(refused, a_call_says_why_to_its_own_thread_only)
{
    pthread_t thread;
    int code = -1;
    forget();
    check_int(pthread_create(&thread, NULL, see_nothing, &code), 0);
    check_int(pthread_join(thread, NULL), 0);
    check_int(code, 0);
}
