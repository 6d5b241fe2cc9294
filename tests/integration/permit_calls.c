/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Every call of the permit semaphore: the arguments that it refuses, and its async twin. */

#include "permits.h"

#include <sys/wait.h>

#include "support/proxy.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

static struct {
    atomic_int calls;
    int code;
    int64_t count;
    hl_permit permits[3];
    char text[128];
} answer;

static void note_permits(int code, const hl_permit *permits, size_t count, const hl_error *err,
                         void *arg)
{
    const size_t *wanted = arg;
    check((permits != NULL) == (code == 0) && (err != NULL) == (code < 0));
    check(count == (code == 0 ? *wanted : 0));
    for (size_t i = 0; i < count; i++)
        answer.permits[i] = permits[i];
    answer.code = code;
    atomic_fetch_add(&answer.calls, 1);
}

static void note_count(int code, int64_t count, const hl_error *err, void *arg)
{
    (void)arg;
    check((err != NULL) == (code < 0));
    snprintf(answer.text, sizeof answer.text, "%s", err ? err->text : "");
    answer.code = code;
    answer.count = count;
    atomic_fetch_add(&answer.calls, 1);
}

static bool is_answered(void *calls)
{
    return atomic_load(&answer.calls) >= *(int *)calls;
}

static void await_answers(int calls)
{
    check(wait_until(is_answered, &calls, 5000));
}

Law(permit_calls, have_async_twins)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = new_gate(client);
    hl_owner *owner = new_owner(client);
    size_t three = 3;
    /* One after the other: what bounces is sent again behind what was sent meanwhile. */
    expect_ok(hl_permits_try_set_total_async(gate, 5, 0, record_done, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_permits_try_set_total_async(gate, 9, 0, record_done, &told));
    check(recorder_wait(&told, 2));
    expect_ok(hl_permits_set_total_async(gate, 3, 0, record_done, &told));
    check(recorder_wait(&told, 3));
    expect_ok(hl_permits_add_async(gate, 1, record_done, &told));
    expect_story(&told, "done HL_OK, done HL_EEXIST, done HL_OK, done HL_OK");
    expect_ok(
        hl_permits_acquire_many_async(gate, 3, ACQUIRE(.owner = owner), note_permits, &three));
    await_answers(1);
    expect_outcome(answer.code, HL_OK);
    hl_permit permit = answer.permits[2];
    check(is_held(gate, permit));
    expect_ok(hl_permits_acquire_many_async(gate, 2, ACQUIRE(.owner = owner), note_permits, NULL));
    await_answers(2);
    expect_outcome(answer.code, HL_EBUSY);
    expect_ok(hl_permits_available_async(gate, note_count, NULL));
    await_answers(3);
    check_int(answer.count, 1);
    expect_ok(hl_permits_acquired_async(gate, note_count, NULL));
    await_answers(4);
    check_int(answer.count, 3);
    expect_ok(hl_permits_total_async(gate, note_count, NULL));
    await_answers(5);
    check_int(answer.count, 4);
    expect_ok(hl_permits_update_lease_async(gate, &permit, 50000, record_done, &told));
    expect_story(&told, "done HL_OK, done HL_EEXIST, done HL_OK, done HL_OK, done HL_OK");
    expect_ok(hl_permits_lease_left_async(gate, &permit, note_count, NULL));
    await_answers(6);
    check(answer.count > 20000 && answer.count <= 50000);
    expect_ok(hl_permits_release_async(gate, &permit, record_done, &told));
    check(recorder_wait(&told, 6));
    expect_ok(hl_permits_release_async(gate, &permit, record_done, &told));
    expect_story(&told, "done HL_OK, done HL_EEXIST, done HL_OK, done HL_OK, done HL_OK, "
                        "done HL_OK, done HL_ENOENT");
    expect_ok(hl_permits_lease_left_async(gate, &permit, note_count, NULL));
    await_answers(7);
    expect_outcome(answer.code, HL_ENOENT);
    check_int(answer.count, 0);
    check(answer.text[0] != '\0');
    check_str(answer.text, "lease left 'gate': this permit is not out");
    expect_ok(hl_permits_delete_async(gate, record_done, &told));
    check(recorder_wait(&told, 8));
    expect_outcome(recorder_entry(&told, 7).code, HL_OK);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(permit_calls, refuse_what_makes_no_sense)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, 1), *made = NULL;
    hl_permit permit = {"untouched"};
    const hl_permit odd[] = {{""},
                             {"abc"},
                             {"0123456789abcdef0123456789abcdeg"},
                             {"0123456789ABCDEF0123456789ABCDEF"},
                             {"0123456789abcdef0123456789abcde "}};
    int64_t count = -9;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_permits_new(NULL, "gate", &made, NULL), HL_EINVAL);
    expect_outcome(hl_permits_new(client, NULL, &made, NULL), HL_EINVAL);
    expect_outcome(hl_permits_new(client, "", &made, NULL), HL_EINVAL);
    expect_outcome(hl_permits_new(client, "a{}b", &made, NULL), HL_EINVAL);
    expect_outcome(hl_permits_new(client, "gate", NULL, NULL), HL_EINVAL);
    check(made == NULL);
    expect_outcome(hl_permits_try_acquire(gate, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_permits_try_acquire(NULL, &permit, NULL), HL_EINVAL);
    expect_outcome(hl_permits_acquire_with(gate, ACQUIRE(.min_hold_ms = 1), &permit, &err),
                   HL_EINVAL);
    check(strstr(err.text, "min_hold_ms") != NULL);
    expect_outcome(hl_permits_acquire_with(gate, ACQUIRE(.lease_ms = 9), &permit, NULL), HL_EINVAL);
    expect_outcome(hl_permits_acquire_with(gate, ACQUIRE(.owner = new_owner(open_client(NULL))),
                                           &permit, NULL),
                   HL_EINVAL);
    expect_outcome(hl_permits_acquire_many_async(gate, 1, NULL, note_permits, NULL), HL_EINVAL);
    expect_outcome(
        hl_permits_acquire_many_async(gate, 1, ACQUIRE(.owner = new_owner(client)), NULL, NULL),
        HL_EINVAL);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        expect_outcome(hl_permits_release(gate, &odd[i], &err), HL_EINVAL);
        check(strstr(err.text, "32") != NULL);
        expect_outcome(hl_permits_update_lease(gate, &odd[i], 50, NULL), HL_EINVAL);
        expect_outcome(hl_permits_lease_left(gate, &odd[i], &count, NULL), HL_EINVAL);
        check(!is_held(gate, odd[i]));
    }
    expect_outcome(hl_permits_release(gate, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_permits_release(NULL, &odd[0], NULL), HL_EINVAL);
    expect_outcome(hl_permits_release_async(gate, &odd[0], NULL, NULL), HL_EINVAL);
    expect_outcome(hl_permits_available(gate, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_permits_total(NULL, &count, NULL), HL_EINVAL);
    expect_outcome(hl_permits_total_async(gate, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_permits_set_total(gate, -1, 0, NULL), HL_EINVAL);
    expect_outcome(hl_permits_set_total(gate, HL_PERMITS_MAX + 1, 0, NULL), HL_EINVAL);
    expect_outcome(hl_permits_add(gate, -HL_PERMITS_MAX - 1, NULL), HL_EINVAL);
    expect_outcome(hl_permits_add(gate, HL_PERMITS_MAX, NULL), HL_EINVAL);
    expect_outcome(hl_permits_add_async(gate, 1, NULL, NULL), HL_EINVAL);
    check(count == -9 && strcmp(permit.id, "untouched") == 0);
    hl_permits_free(NULL);
    check(hl_permits_name(NULL, NULL) == NULL);
    expect_counts(gate, 1, 0);
}

Law(permit_calls, refuse_a_lease_that_makes_no_sense)
{
    static const int64_t bad[] = {-1, 1, 9, INT64_C(100000000001)};
    hl_permits *gate = set_gate(open_client(NULL), 1);
    const hl_permit foreign = {"000102030405060708090a0b0c0d0e0f"};
    hl_permit permit = take_one(gate);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_outcome(hl_permits_update_lease(gate, &permit, bad[i], NULL), HL_EINVAL);
    expect_outcome(hl_permits_update_lease(gate, &foreign, 0, NULL), HL_EINVAL);
    check(is_held(gate, permit));
}

Law(permit_calls, know_their_semaphore_by_its_whole_name)
{
    hl_client *client = open_client(CLIENT(.name_prefix = "shop:"));
    hl_permits *gate = set_gate(client, 2);
    hl_permits *other = new_gate_named(client, "gate2");
    size_t length = 0;
    check_str(hl_permits_name(gate, &length), "shop:gate");
    check_int(length, 9);
    hl_permit permit = take_one(gate);
    check_int(redis_int(server, "GET shop:gate"), 1);
    check_int(redis_int(server, "ZCARD {shop:gate}:timeout"), 1);
    expect_outcome(give_back(other, permit), HL_ENOENT); /* another semaphore */
    check(!is_held(other, permit));
    expect_ok(give_back(new_gate(client), permit)); /* another handle */
}

Law(permit_calls, report_a_key_of_another_type)
{
    hl_permits *gate = new_gate(open_client(NULL));
    const hl_permit permit = {"000102030405060708090a0b0c0d0e0f"};
    hl_permit none;
    hl_error err = HL_ERROR_INIT;
    int64_t count;
    redis_do(server, "HSET gate a 1");
    expect_outcome(hl_permits_acquire(gate, &none, &err), HL_ESERVER);
    check(strstr(err.text, "WRONGTYPE") != NULL);
    expect_outcome(hl_permits_release(gate, &permit, NULL), HL_ESERVER);
    expect_outcome(hl_permits_available(gate, &count, NULL), HL_ESERVER);
    expect_outcome(hl_permits_set_total(gate, 1, 0, NULL), HL_ESERVER);
    redis_do(server, "DEL gate");
    redis_do(server, "SET gate many");
    expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_ESERVER);
    expect_outcome(hl_permits_total(gate, &count, NULL), HL_ESERVER);
}

Law(permit_calls, report_a_denial)
{
    hl_permits *gate = set_gate(open_client(NULL), 2);
    hl_permit permit = take_one(gate), none;
    int64_t count;
    redis_do(server, "ACL SETUSER default -zcount -zscore");
    expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_EDENIED);
    expect_outcome(hl_permits_available(gate, &count, NULL), HL_EDENIED);
    expect_outcome(give_back(gate, permit), HL_EDENIED);
    redis_do(server, "ACL SETUSER default +@all");
}

SingleLaw(permit_calls, end_when_no_server_answers)
{
    hl_permits *gate = set_gate(
        open_client(CLIENT(.outage_timeout_ms = slow_ms(1000), .request_timeout_ms = slow_ms(500))),
        2);
    const hl_permit foreign = {"000102030405060708090a0b0c0d0e0f"};
    hl_permit none;
    int64_t count;
    redis_server_kill(server);
    expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_ECONN);
    expect_outcome(hl_permits_available(gate, &count, NULL), HL_ECONN);
    expect_outcome(hl_permits_release(gate, &foreign, NULL), HL_ECONN);
    expect_outcome(hl_permits_set_total(gate, 1, 0, NULL), HL_ECONN);
    redis_server_restart(server);
}

SingleLaw(permit_calls, that_were_sent_and_not_answered_are_in_doubt)
{
    hl_permits *gate = set_gate(
        open_client(CLIENT(.outage_timeout_ms = slow_ms(1000), .request_timeout_ms = 60000)), 2);
    const hl_permit foreign = {"000102030405060708090a0b0c0d0e0f"};
    redis_server_freeze(server);
    expect_outcome(hl_permits_add(gate, 1, NULL), HL_EINDOUBT);
    expect_outcome(hl_permits_try_set_total(gate, 1, 0, NULL), HL_EINDOUBT);
    expect_outcome(hl_permits_set_total(gate, 3, 0, NULL), HL_EINDOUBT);
    expect_outcome(hl_permits_update_lease(gate, &foreign, 500, NULL), HL_EINDOUBT);
    expect_outcome(hl_permits_release(gate, &foreign, NULL), HL_EINDOUBT);
    redis_server_thaw(server);
    expect_counts(gate, 3, 0);
}

Law(permit_calls, on_a_closed_client_are_refused_and_a_wait_is_cancelled)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, 1);
    hl_permit permit = take_one(gate), none;
    struct taking taking;
    int64_t count;
    taking_begin(&taking, gate, 1, ACQUIRE(.wait_ms = -1));
    expect_waiters(client, 1);
    close_client(client);
    expect_outcome(taking_end(&taking), HL_ECANCELED);
    expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_ECLOSED);
    expect_outcome(hl_permits_available(gate, &count, NULL), HL_ECLOSED);
    expect_outcome(hl_permits_release(gate, &permit, NULL), HL_ECLOSED);
    expect_outcome(hl_permits_set_total(gate, 1, 0, NULL), HL_ECLOSED);
    expect_outcome(hl_permits_release_async(gate, &permit, record_done, NULL), HL_ECLOSED);
    check_int(hl_permits_validity_ms(gate, &permit), 0);
}

Law(permit_calls, in_a_forked_child_are_refused)
{
    hl_permits *gate = set_gate(open_client(NULL), 1);
    hl_permit permit = take_one(gate), none;
    int64_t count;
    pid_t child = fork();
    if (child == 0) {
        expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_EFORKED);
        expect_outcome(hl_permits_release(gate, &permit, NULL), HL_EFORKED);
        expect_outcome(hl_permits_acquired(gate, &count, NULL), HL_EFORKED);
        check(!is_held(gate, permit));
        hl_permits_free(gate);
        _exit(0);
    }
    int status = 0;
    check(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    check(is_held(gate, permit));
    expect_ok(give_back(gate, permit));
}
