/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The semaphore, without waiters: what each call does and answers, and what stands in Redis
 * and is told to Java meanwhile. */

#include "support/ear.h"
#include "support/recorder.h"
#include "support/semaphore_support.h"

#include <sys/wait.h>
#include <unistd.h>

static hl_client *client;
static hl_semaphore *semaphore;

static void begin(void)
{
    client = open_client(NULL);
    semaphore = new_semaphore(client, "pool");
}

static void begin_with(int64_t permits)
{
    begin();
    expect_ok(hl_semaphore_try_set_permits(semaphore, permits, 0, NULL));
}

static const char *value(void)
{
    return redis_str(server, "GET pool");
}

Law(semaphore, takes_and_gives_back_permits)
{
    begin_with(5);
    check_str(value(), "5");
    expect_ok(hl_semaphore_acquire(semaphore, 2, NULL));
    check_str(value(), "3");
    expect_ok(hl_semaphore_try_acquire(semaphore, 3, NULL));
    check_int(available_of(semaphore), 0);
    expect_outcome(hl_semaphore_try_acquire(semaphore, 1, NULL), HL_EBUSY);
    expect_ok(hl_semaphore_release(semaphore, 4, NULL));
    check_int(available_of(semaphore), 4);
    expect_outcome(hl_semaphore_try_acquire(semaphore, 5, NULL), HL_EBUSY);
    check_int(available_of(semaphore), 4); /* all or none */
    check_int(stats_of(client).acquires, 2);
    check_int(stats_of(client).releases, 1);
    check_int(stats_of(client).busy, 2);
}

Law(semaphore, says_why_it_is_busy)
{
    begin_with(1);
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_semaphore_try_acquire(semaphore, 2, &err), HL_EBUSY);
    check_str(err.text, "acquire 'pool': too few permits");
    expect_outcome(hl_semaphore_acquire_for(semaphore, 2, slow_ms(2000), &err), HL_ETIMEDOUT);
    check_str(err.text, "acquire 'pool': the wait time is over; too few permits");
    check(err.busy.locked && err.busy.available == 1 && err.busy.hold_count == 0);
    expect_ok(hl_semaphore_add_permits(semaphore, -4, NULL));
    expect_outcome(hl_semaphore_try_acquire(semaphore, 2, &err), HL_EBUSY);
    check(err.busy.available == -3);
    expect_outcome(hl_semaphore_try_set_permits(semaphore, 2, 0, &err), HL_EEXIST);
    check_str(err.text, "set permits 'pool': it is there already");
}

Law(semaphore, has_no_permits_where_there_is_no_key)
{
    begin();
    check_int(available_of(semaphore), 0);
    expect_outcome(hl_semaphore_try_acquire(semaphore, 1, NULL), HL_EBUSY);
    expect_outcome(hl_semaphore_release_if_exists(semaphore, 1, NULL), HL_ENOENT);
    int64_t drained = 7;
    expect_ok(hl_semaphore_drain(semaphore, &drained, NULL));
    check_int(drained, 0);
    expect_ok(hl_semaphore_add_permits(semaphore, 0, NULL));
    check_int(redis_int(server, "EXISTS pool"), 0);
    expect_ok(hl_semaphore_release(semaphore, 2, NULL)); /* makes it, as Redisson's does */
    check_str(value(), "2");
    expect_ok(hl_semaphore_release_if_exists(semaphore, 1, NULL));
    expect_ok(hl_semaphore_add_permits(semaphore, 0, NULL));
    check_str(value(), "3");
}

Law(semaphore, is_set_once_and_for_a_time)
{
    begin();
    expect_ok(hl_semaphore_try_set_permits(semaphore, 3, slow_ms(60000), NULL));
    expect_outcome(hl_semaphore_try_set_permits(semaphore, 9, 0, NULL), HL_EEXIST);
    expect_ok(hl_semaphore_acquire(semaphore, 1, NULL));
    expect_ok(hl_semaphore_release(semaphore, 1, NULL));
    expect_ok(hl_semaphore_add_permits(semaphore, 4, NULL));
    int64_t drained;
    expect_ok(hl_semaphore_drain(semaphore, &drained, NULL));
    check_int(drained, 7);
    check_str(value(), "0");
    int64_t left = redis_int(server, "PTTL pool");
    check(left > slow_ms(30000) && left <= slow_ms(60000)); /* whatever was done to it */
    redis_do(server, "DEL pool");
    expect_ok(hl_semaphore_try_set_permits(semaphore, 0, 0, NULL));
    check_str(value(), "0");
    check_int(redis_int(server, "PTTL pool"), -1);
}

Law(semaphore, may_owe_permits)
{
    begin_with(2);
    expect_ok(hl_semaphore_acquire(semaphore, 2, NULL));
    expect_ok(hl_semaphore_add_permits(semaphore, -3, NULL));
    check_int(available_of(semaphore), -3);
    expect_outcome(hl_semaphore_try_acquire(semaphore, 1, NULL), HL_EBUSY);
    expect_ok(hl_semaphore_release(semaphore, 2, NULL));
    expect_outcome(hl_semaphore_try_acquire(semaphore, 1, NULL), HL_EBUSY);
    int64_t drained;
    expect_ok(hl_semaphore_drain(semaphore, &drained, NULL));
    check_int(drained, -1);
    check_int(available_of(semaphore), 0);
}

Law(semaphore, refuses_numbers_that_make_no_sense)
{
    begin_with(1);
    static const int64_t bad[] = {0, -1, INT64_C(2147483648), INT64_MAX, INT64_MIN};
    hl_error err = HL_ERROR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_outcome(hl_semaphore_acquire(semaphore, bad[i], &err), HL_EINVAL);
        check_str(err.text, "permits are not from 1 to 2147483647");
        expect_outcome(hl_semaphore_try_acquire(semaphore, bad[i], NULL), HL_EINVAL);
        expect_outcome(hl_semaphore_acquire_for(semaphore, bad[i], 5, NULL), HL_EINVAL);
        expect_outcome(hl_semaphore_release(semaphore, bad[i], NULL), HL_EINVAL);
        expect_outcome(hl_semaphore_release_if_exists(semaphore, bad[i], NULL), HL_EINVAL);
        if (bad[i] != 0)
            expect_outcome(hl_semaphore_try_set_permits(semaphore, bad[i], 0, NULL), HL_EINVAL);
        if (bad[i] != -1 && bad[i] != 0)
            expect_outcome(hl_semaphore_add_permits(semaphore, bad[i], NULL), HL_EINVAL);
    }
    expect_outcome(hl_semaphore_try_set_permits(semaphore, 1, -1, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_try_set_permits(semaphore, 1, INT64_C(100000000001), NULL),
                   HL_EINVAL);
    expect_outcome(hl_semaphore_acquire_for(semaphore, 1, -2, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_drain(semaphore, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_available(semaphore, NULL, NULL), HL_EINVAL);
    check_str(value(), "1");
    check_int(available_of(semaphore), 1);
}

Law(semaphore, waits_as_its_options_say)
{
    begin_with(1);
    const hl_wait_options *bad[] = {WAIT(.wait_ms = -2), WAIT(.wait_ms = INT64_MAX),
                                    &(hl_wait_options){.size = 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_outcome(hl_semaphore_acquire_with(semaphore, 1, bad[i], NULL), HL_EINVAL);
        expect_outcome(hl_semaphore_acquire_async(semaphore, 1, bad[i], record_done, NULL),
                       HL_EINVAL);
    }
    expect_ok(hl_semaphore_acquire_with(semaphore, 1, NULL, NULL));
    expect_outcome(hl_semaphore_acquire_with(semaphore, 1, WAIT(.wait_ms = HL_NO_WAIT), NULL),
                   HL_EBUSY);
}

Law(semaphore, refuses_what_is_no_handle)
{
    hl_semaphore *none = NULL;
    int64_t count;
    begin();
    expect_outcome(hl_semaphore_new(NULL, "pool", &none, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_new(client, NULL, &none, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_new(client, "", &none, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_new(client, "a{", &none, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_new(client, "pool", NULL, NULL), HL_EINVAL);
    check(none == NULL);
    expect_outcome(hl_semaphore_acquire(NULL, 1, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_release(NULL, 1, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_available(NULL, &count, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_release_async(NULL, 1, record_done, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_release_async(semaphore, 1, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_drain_async(semaphore, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_semaphore_acquire_async(semaphore, 1, NULL, NULL, NULL), HL_EINVAL);
    hl_semaphore_free(NULL);
    check(hl_semaphore_name(NULL, NULL) == NULL);
    check_str(hl_semaphore_name(semaphore, NULL), "pool");
    close_client(client);
    expect_outcome(hl_semaphore_acquire(semaphore, 1, NULL), HL_ECLOSED);
    expect_outcome(hl_semaphore_release(semaphore, 1, NULL), HL_ECLOSED);
    expect_outcome(hl_semaphore_new(client, "pool", &none, NULL), HL_ECLOSED);
}

Law(semaphore, has_its_own_name_beside_a_lock_of_the_same_name)
{
    begin_with(1);
    hl_lock *lock = new_lock(client, "pool");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ESERVER); /* the key is no hash */
    redis_do(server, "DEL pool");
    expect_ok(hl_lock_acquire(lock, NULL));
    int64_t count;
    expect_outcome(hl_semaphore_acquire(semaphore, 1, &err), HL_ESERVER);
    check(strstr(err.text, "WRONGTYPE") != NULL);
    expect_outcome(hl_semaphore_release(semaphore, 1, &err), HL_ESERVER);
    check(strstr(err.text, "WRONGTYPE") != NULL);
    expect_outcome(hl_semaphore_drain(semaphore, &count, NULL), HL_ESERVER);
    expect_outcome(hl_semaphore_available(semaphore, &count, NULL), HL_ESERVER);
    expect_outcome(hl_semaphore_add_permits(semaphore, 1, NULL), HL_ESERVER);
    expect_outcome(hl_semaphore_try_set_permits(semaphore, 1, 0, NULL), HL_EEXIST);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
}

Law(semaphore, refuses_more_permits_than_a_number_holds)
{
    begin();
    hl_error err = HL_ERROR_INIT;
    redis_do(server, "SET pool 9223372036854775807");
    expect_outcome(hl_semaphore_release(semaphore, 1, &err), HL_ESERVER);
    check(strstr(err.text, "overflow") != NULL);
    check_int(available_of(semaphore), INT64_MAX);
    expect_ok(hl_semaphore_acquire(semaphore, 2147483647, NULL));
    check_str(value(), "9223372034707292160");
}

Law(semaphore, tells_java_how_many_there_are_and_nothing_that_it_could_not_read)
{
    begin();
    redisContext *java = ear_open(SEMAPHORE_CHANNEL("pool"));
    expect_ok(hl_semaphore_try_set_permits(semaphore, 4, 0, NULL));
    expect_ok(hl_semaphore_acquire(semaphore, 3, NULL));
    expect_ok(hl_semaphore_release(semaphore, 1, NULL));
    expect_ok(hl_semaphore_add_permits(semaphore, -9, NULL));
    expect_ok(hl_semaphore_release(semaphore, 2, NULL));
    expect_ok(hl_semaphore_add_permits(semaphore, 20, NULL));
    redis_do(server, "PUBLISH " SEMAPHORE_CHANNEL("pool") " end");
    static const char *const told[] = {"4", "2", "15", "end"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        ear_check(java, SEMAPHORE_CHANNEL("pool"), told[i]);
    redisFree(java);
}

Law(semaphore, goes_by_the_clients_prefix_and_keeps_what_a_name_has_in_braces)
{
    client = open_client(CLIENT(.name_prefix = "app:"));
    semaphore = new_semaphore(client, "{pool}:a");
    redisContext *java = ear_open("redisson_sc:app:{pool}:a");
    check_str(hl_semaphore_name(semaphore, NULL), "app:{pool}:a");
    expect_ok(hl_semaphore_try_set_permits(semaphore, 2, 0, NULL));
    check_str(redis_str(server, "GET app:{pool}:a"), "2");
    ear_check(java, "redisson_sc:app:{pool}:a", "2");
    redisFree(java);
}

Law(semaphore, and_the_latch_may_have_names_of_512_bytes)
{
    char name[513];
    begin();
    memset(name, 'n', 512);
    name[512] = '\0';
    hl_semaphore *longest = new_semaphore(client, name);
    hl_latch *latch = new_latch(client, name);
    expect_ok(hl_semaphore_release(longest, 1, NULL));
    expect_ok(hl_semaphore_acquire(longest, 1, NULL));
    expect_outcome(hl_semaphore_acquire_for(longest, 1, 20, NULL), HL_ETIMEDOUT);
    redis_do(server, "DEL %s", name);
    expect_ok(hl_latch_try_set_count(latch, 1, NULL));
    expect_outcome(hl_latch_await_for(latch, 20, NULL), HL_ETIMEDOUT);
    expect_ok(hl_latch_count_down(latch, NULL));
}

/* Each command lets the note of the one before it go. The scripts are loaded first: a note that
 * goes with a command that bounces stays for its minute. */
Law(semaphore, leaves_no_more_notes_behind_than_its_last_command)
{
    begin_with(3);
    expect_ok(hl_semaphore_acquire(semaphore, 1, NULL));
    expect_ok(hl_semaphore_release(semaphore, 1, NULL));
    redis_do(server, "EVAL %s 0",
             "for _, k in ipairs(redis.call('KEYS', 'hirelock_note:*')) do "
             "redis.call('DEL', k) end");
    for (int i = 0; i < 50; i++) {
        expect_ok(hl_semaphore_acquire(semaphore, 1, NULL));
        expect_ok(hl_semaphore_release(semaphore, 1, NULL));
    }
    check_int(notes_of(client), 1);
    int64_t left = redis_int(server, "PTTL %s", redis_str(server, "KEYS hirelock_note:*"));
    check(left > 30000 && left <= 60000);
    expect_outcome(hl_semaphore_try_acquire(semaphore, 4, NULL), HL_EBUSY);
    check_int(redis_int(server, "DBSIZE"), 1); /* who gets nothing leaves none */
}

Law(semaphore, costs_one_command_for_each_call)
{
    begin_with(3);
    expect_ok(hl_semaphore_acquire(semaphore, 1, NULL));
    expect_ok(hl_semaphore_release(semaphore, 1, NULL));
    int64_t before = redis_evalsha_calls(server);
    for (int i = 0; i < 20; i++) {
        expect_ok(hl_semaphore_acquire(semaphore, 1, NULL));
        expect_ok(hl_semaphore_release(semaphore, 1, NULL));
    }
    check_int(redis_evalsha_calls(server) - before, 40);
}

Law(semaphore, and_the_latch_are_their_parents_in_a_forked_child)
{
    int64_t count;
    int status = 0;
    begin_with(1);
    hl_latch *latch = new_latch(client, "gate");
    pid_t child = fork();
    if (child == 0) {
        hl_semaphore *made = NULL;
        bool refused = hl_semaphore_acquire(semaphore, 1, NULL) == HL_EFORKED &&
                       hl_semaphore_release(semaphore, 1, NULL) == HL_EFORKED &&
                       hl_semaphore_available(semaphore, &count, NULL) == HL_EFORKED &&
                       hl_semaphore_new(client, "pool", &made, NULL) == HL_EFORKED &&
                       hl_semaphore_release_async(semaphore, 1, record_done, NULL) == HL_EFORKED &&
                       hl_latch_await(latch, NULL) == HL_EFORKED &&
                       hl_latch_count_down(latch, NULL) == HL_EFORKED;
        hl_semaphore_free(semaphore);
        hl_latch_free(latch);
        _exit(refused ? 0 : 1);
    }
    check(child > 0 && waitpid(child, &status, 0) == child);
    check_int(status, 0);
    expect_ok(hl_semaphore_acquire(semaphore, 1, NULL));
}

/* The list of docs/semaphore.md, and of docs/latch.md. */
SingleLaw(semaphore, and_the_latch_work_with_no_more_rights_than_their_pages_name)
{
    int64_t count;
    redis_do(server, "ACL SETUSER counter on >secret resetkeys ~app:* ~hirelock_note:{app:* "
                     "resetchannels &redisson_sc:{app:* "
                     "&redisson_countdownlatch__channel__{app:* -@all +evalsha +script|load +get "
                     "+set +del +exists +incrby +decrby +decr +publish +subscribe +unsubscribe");
    client = open_client(CLIENT(.username = "counter", .password = "secret"));
    semaphore = new_semaphore(client, "app:pool");
    hl_latch *latch = new_latch(client, "app:gate");
    expect_ok(hl_semaphore_try_set_permits(semaphore, 1, slow_ms(60000), NULL));
    expect_ok(hl_semaphore_acquire(semaphore, 1, NULL));
    expect_outcome(hl_semaphore_acquire_for(semaphore, 1, slow_ms(1500), NULL), HL_ETIMEDOUT);
    /* The subscription outlives the wait by five seconds. */
    check(redis_wait_subscribers(server, SEMAPHORE_CHANNEL("app:pool"), 1, 5000));
    expect_ok(hl_semaphore_release(semaphore, 2, NULL));
    expect_ok(hl_semaphore_release_if_exists(semaphore, 2, NULL));
    expect_ok(hl_semaphore_add_permits(semaphore, -1, NULL));
    expect_ok(hl_semaphore_available(semaphore, &count, NULL));
    expect_ok(hl_semaphore_drain(semaphore, &count, NULL));
    check_int(count, 3);
    expect_ok(hl_latch_try_set_count(latch, 2, NULL));
    expect_ok(hl_latch_count(latch, &count, NULL));
    expect_outcome(hl_latch_await_for(latch, slow_ms(1500), NULL), HL_ETIMEDOUT);
    check(redis_wait_subscribers(server, LATCH_CHANNEL("app:gate"), 1, 5000));
    expect_ok(hl_latch_count_down(latch, NULL));
    expect_ok(hl_latch_count_down(latch, NULL));
    expect_ok(hl_latch_await(latch, NULL));
    expect_ok(hl_latch_try_set_count(latch, 2, NULL));
    expect_ok(hl_latch_delete(latch, NULL));
    redis_do(server, "ACL SETUSER counter -set");
    expect_outcome(hl_semaphore_release(semaphore, 1, NULL), HL_EDENIED);
    expect_outcome(hl_latch_try_set_count(latch, 1, NULL), HL_EDENIED);
}

static struct recorder told = RECORDER_INIT;

Law(semaphore, has_an_async_twin_of_every_call)
{
    begin();
    expect_ok(hl_semaphore_try_set_permits_async(semaphore, 3, 0, record_done, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_semaphore_acquire_async(semaphore, 2, NULL, record_done, &told));
    check(recorder_wait(&told, 2));
    expect_ok(hl_semaphore_release_async(semaphore, 1, record_done, &told));
    check(recorder_wait(&told, 3));
    expect_ok(hl_semaphore_release_if_exists_async(semaphore, 1, record_done, &told));
    check(recorder_wait(&told, 4));
    expect_ok(hl_semaphore_add_permits_async(semaphore, 5, record_done, &told));
    check(recorder_wait(&told, 5));
    expect_ok(hl_semaphore_available_async(semaphore, record_count, &told));
    check(recorder_wait(&told, 6));
    expect_ok(hl_semaphore_drain_async(semaphore, record_count, &told));
    check(recorder_wait(&told, 7));
    check_str(value(), "0");
    redis_do(server, "DEL pool");
    expect_ok(hl_semaphore_release_if_exists_async(semaphore, 1, record_done, &told));
    check(recorder_wait(&told, 8));
    expect_ok(
        hl_semaphore_acquire_async(semaphore, 2, WAIT(.wait_ms = HL_NO_WAIT), record_done, &told));
    expect_story(&told, "done HL_OK, done HL_OK, done HL_OK, done HL_OK, done HL_OK, count 8, "
                        "count 8, done HL_ENOENT, done HL_EBUSY");
    redis_do(server, "SET pool odd");
    expect_ok(hl_semaphore_available_async(semaphore, record_count, &told));
    check(recorder_wait_says(&told, "count HL_ESERVER"));
}
