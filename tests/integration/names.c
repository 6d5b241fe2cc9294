/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Names and arguments: the rules for a lock's name, and the arguments that every call refuses. */

#include "support/kinds.h"
#include "support/kit.h"
#include "support/recorder.h"

static const int64_t most_ms = INT64_C(100000000000);

Law(name, may_have_any_bytes)
{
    static const char bytes[] = "a\0b\r\n%s \xff'\"\\$*";
    const size_t length = sizeof bytes - 1;
    hl_client *client = open_client(NULL);
    hl_lock *lock = NULL;
    size_t ret_length = 0;
    expect_ok(lock_new_bytes(client, bytes, length, &lock, NULL));
    check(memcmp(hl_lock_name(lock, &ret_length), bytes, sizeof bytes) == 0); /* and its NUL */
    check_int(ret_length, length);
    check(hl_lock_name(lock, NULL) != NULL);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_held_by(client, lock, 1);
    check_int(redis_int(server, "EXISTS %b", bytes, length), 1);
    check_int(redis_int(server, "EXISTS a"), 0);
    expect_ok(hl_lock_release(lock, NULL));
    hl_lock_free(lock);
}

Law(name, is_never_the_key_of_another_locks_queue)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_new(client, "hirelock_queue:{stock}", &lock, &err), HL_EINVAL);
    check_str(err.text, "the name begins with hirelock_queue:, as keys beside a lock do");
    expect_outcome(hl_lock_new(client, "hirelock_queue:", &lock, NULL), HL_EINVAL);
    expect_ok(hl_lock_new(client, "hirelock_queue", &lock, NULL));
    hl_lock_free(lock);
}

Law(name, is_shown_escaped_in_error_texts)
{
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_ok(lock_new_bytes(open_client(NULL), "a\0\n'", 4, &lock, NULL));
    expect_outcome(hl_lock_release(lock, &err), HL_ENOTOWNER);
    check_str(err.text, "release 'a\\x00\\x0a\\x27': this owner does not hold the lock");
    hl_lock_free(lock);
}

Law(name, of_512_bytes_works_and_a_longer_one_is_refused)
{
    char name[514];
    hl_lock *none = NULL;
    memset(name, 'n', sizeof name);
    name[512] = '\0';
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, name);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_held_by(client, lock, 1);
    name[512] = 'n';
    name[513] = '\0';
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_new(client, name, &none, &err), HL_EINVAL);
    check_str(err.text, "the name has 513 bytes: at most 512 are allowed");
    expect_outcome(lock_new_bytes(client, name, SIZE_MAX, &none, NULL), HL_EINVAL);
    check(none == NULL);
}

Law(name, that_is_empty_or_would_split_its_slots_is_refused)
{
    static const char *const refused[] = {"a{", "{}", "a}b{", "a{}b"};
    hl_client *client = open_client(NULL);
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        expect_outcome(hl_lock_new(client, refused[i], &lock, &err), HL_EINVAL);
        check_str(err.text, "the braces of the name would put its keys into different slots of a "
                            "cluster");
    }
    expect_outcome(hl_lock_new(client, "", &lock, &err), HL_EINVAL);
    check_str(err.text, "the name is empty");
    check(lock == NULL);
}

/* Redisson derives the same keys from both. */
Law(name, in_braces_is_none_of_a_fair_lock_nor_of_permits)
{
    hl_client *client = open_client(NULL), *prefixed = open_client(CLIENT(.name_prefix = "{a"));
    hl_lock *lock = NULL;
    hl_permits *permits = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(fair_lock_new(client, "{x}", NULL, &lock, &err), HL_EINVAL);
    check_msg(strstr(err.text, "braces around another") != NULL, "%s", err.text);
    expect_outcome(hl_permits_new(client, "{x}", &permits, &err), HL_EINVAL);
    check_msg(strstr(err.text, "braces around another") != NULL, "%s", err.text);
    expect_outcome(fair_lock_new(prefixed, "b}", NULL, &lock, NULL), HL_EINVAL);
    check(!lock && !permits);
    expect_ok(fair_lock_new(client, "{x}:1", NULL, &lock, NULL));
    hl_lock_free(lock);
    expect_ok(fair_lock_new(prefixed, "b}:1", NULL, &lock, NULL));
    hl_lock_free(lock);
    expect_ok(hl_permits_new(client, "a{x}", &permits, NULL));
    hl_permits_free(permits);
    expect_ok(hl_lock_new(client, "{x}", &lock, NULL)); /* what it shares mends itself */
    hl_lock_free(lock);
}

Law(name, carries_the_clients_prefix)
{
    hl_client *client = open_client(CLIENT(.name_prefix = "app:")), *plain = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *none = NULL;
    check_str(hl_lock_name(lock, NULL), "app:stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check_int(redis_int(server, "EXISTS app:stock"), 1);
    expect_outcome(hl_lock_try_acquire(new_lock(plain, "app:stock"), NULL), HL_EBUSY);
    expect_ok(hl_lock_try_acquire(new_lock(plain, "stock"), NULL));
    expect_outcome(hl_lock_new(client, "", &none, NULL), HL_EINVAL);
    check(hl_lock_name(NULL, NULL) == NULL);
}

static void expect_no_handle(hl_client *client, const hl_lock_options *options, const char *word)
{
    hl_lock *none = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(lock_new_with(client, "stock", options, &none, &err), HL_EINVAL);
    check_msg(strstr(err.text, word) != NULL && none == NULL, "%s", err.text);
}

Law(a_locks_options, that_make_no_sense_are_refused)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = NULL;
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.retain_ms = -1;
    expect_no_handle(client, &options, "retain_ms");
    options.retain_ms = 1001;
    expect_no_handle(client, &options, "retain_ms");
    options.retain_ms = 1000;
    options.flags = HL_LOCK_ASYNC_RELEASE | 1u << 31;
    expect_no_handle(client, &options, "flags");
    options.flags = HL_LOCK_ASYNC_RELEASE;
    options.size = 3;
    expect_no_handle(client, &options, "size");
    options.size = sizeof options;
    expect_outcome(lock_new_with(client, NULL, &options, &lock, NULL), HL_EINVAL);
    expect_outcome(lock_new_with(NULL, "stock", &options, &lock, NULL), HL_EINVAL);
    expect_outcome(lock_new_with(client, "stock", &options, NULL, NULL), HL_EINVAL);
    options.name_length = 513;
    expect_no_handle(client, &options, "at most 512");
    options.name_length = 3; /* of bytes, and not of a C string */
    expect_ok(lock_new_with(client, "a\0b and more", &options, &lock, NULL));
    size_t length = 0;
    check(memcmp(hl_lock_name(lock, &length), "a\0b", 4) == 0);
    check_int(length, 3);
    close_client(client);
    hl_lock *late = NULL;
    expect_outcome(lock_new_with(client, "stock", NULL, &late, NULL), HL_ECLOSED);
    hl_lock_free(lock); /* by which the client was still there */
}

Law(a_locks_kind, refuses_options_of_another_kind)
{
    static const hl_lock_options bad[] = {
        {.size = sizeof(bad[0]), .kind = (hl_lock_kind)6},
        {.size = sizeof(bad[0]), .kind = (hl_lock_kind)-1},
        {.size = sizeof(bad[0]), .backoff_min_ms = 1},
        {.size = sizeof(bad[0]), .backoff_max_ms = 1},
        {.size = sizeof(bad[0]), .flags = HL_LOCK_SUBSCRIBE},
        {.size = sizeof(bad[0]), .flags = HL_LOCK_PREFER_WRITERS},
        {.size = sizeof(bad[0]), .kind = HL_LOCK_READ, .flags = HL_LOCK_PREFER_WRITERS},
        {.size = sizeof(bad[0]), .kind = HL_LOCK_FAIR, .retain_ms = 10},
        {.size = sizeof(bad[0]), .kind = HL_LOCK_WRITE, .retain_ms = 10},
    };
    hl_client *client = open_client(NULL);
    hl_lock *none = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hl_lock_options options = bad[i];
        options.name = "stock";
        expect_outcome(hl_lock_new_with(client, &options, &none, NULL), HL_EINVAL);
    }
    expect_outcome(hl_lock_new_with(client, NULL, &none, NULL), HL_EINVAL);
    check(none == NULL);
}

Law(arguments, that_are_missing_are_refused)
{
    hl_client *client = open_client(NULL), *none = NULL;
    hl_lock *ret = NULL;
    hl_owner *owner = new_owner(client);
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_outcome(hl_lock_new(NULL, "stock", &ret, &err), HL_EINVAL);
    check_str(err.text, "the client is NULL");
    expect_outcome(hl_lock_new(client, NULL, &ret, NULL), HL_EINVAL);
    expect_outcome(hl_lock_new(client, "stock", NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_acquire(NULL, &err), HL_EINVAL);
    check_str(err.text, "the handle (lock, semaphore, latch) is NULL");
    expect_outcome(hl_lock_try_acquire(NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_acquire_for(NULL, 1, NULL), HL_EINVAL);
    expect_outcome(hl_lock_release(NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_release_as(NULL, owner, NULL), HL_EINVAL);
    expect_outcome(hl_lock_force_release(NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_inspect(NULL, &info, NULL), HL_EINVAL);
    expect_outcome(hl_client_ping(NULL, 0, &err), HL_EINVAL);
    expect_outcome(hl_client_ping(client, -2, NULL), HL_EINVAL);
    expect_outcome(hl_client_stats(NULL, &(hl_stats){.size = sizeof(hl_stats)}), HL_EINVAL);
    expect_outcome(hl_client_stats(client, NULL), HL_EINVAL);
    expect_outcome(hl_client_stats(client, &(hl_stats){.size = 3}), HL_EINVAL);
    expect_outcome(hl_client_fd(NULL), HL_EINVAL);
    expect_outcome(hl_client_dispatch(NULL), HL_EINVAL);
    expect_outcome(hl_client_open(NULL, NULL, &none, NULL), HL_EINVAL);
    expect_outcome(hl_client_open(redis_server_url(server), NULL, NULL, NULL), HL_EINVAL);
    check(!hl_lock_is_held(NULL, NULL) && hl_lock_validity_ms(NULL, NULL) == 0);
    check(hl_lock_hold_count(NULL, NULL) == 0 && hl_client_id(NULL) == NULL);
    expect_ok(hl_client_close(NULL));
    hl_lock_free(NULL);
}

Law(arguments, of_async_calls_that_are_missing_are_refused_and_nothing_is_called)
{
    struct recorder told = RECORDER_INIT;
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client), *foreign = new_owner(open_client(NULL));
    const hl_acquire_options *plain = ACQUIRE(.owner = owner);
    expect_outcome(hl_lock_acquire_async(NULL, plain, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_acquire_async(lock, plain, NULL, &told), HL_EINVAL);
    expect_outcome(hl_lock_acquire_async(lock, NULL, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = 1), record_done, &told),
                   HL_EINVAL);
    expect_outcome(hl_lock_acquire_async(lock, ACQUIRE(.owner = foreign), record_done, &told),
                   HL_EINVAL);
    expect_outcome(
        hl_lock_acquire_async(lock, ACQUIRE(.owner = owner, .lease_ms = 9), record_done, &told),
        HL_EINVAL);
    expect_outcome(hl_lock_release_async(NULL, owner, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_release_async(lock, NULL, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_release_async(lock, owner, NULL, &told), HL_EINVAL);
    expect_outcome(hl_lock_force_release_async(NULL, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_force_release_async(lock, NULL, &told), HL_EINVAL);
    expect_outcome(hl_lock_inspect_async(NULL, record_info, &told), HL_EINVAL);
    expect_outcome(hl_lock_inspect_async(lock, NULL, &told), HL_EINVAL);
    close_client(client);
    check_int(recorder_count(&told), 0);
}

static void expect_refused(hl_lock *lock, const hl_acquire_options *options, const char *what)
{
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire_with(lock, options, &err), HL_EINVAL);
    check_msg(strstr(err.text, what) != NULL, "%s", err.text);
}

Law(arguments, out_of_range_are_refused_and_leave_nothing_behind)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    static const int64_t wrong_ms[] = {-2, INT64_MIN, INT64_C(100000000001), INT64_MAX};
    for (int i = 0; i < 4; i++) {
        expect_refused(lock, ACQUIRE(.wait_ms = wrong_ms[i]), "wait_ms");
        expect_refused(lock, ACQUIRE(.lease_ms = wrong_ms[i]), "lease_ms");
        expect_refused(lock, ACQUIRE(.max_hold_ms = wrong_ms[i]), "max_hold_ms");
        expect_refused(lock, ACQUIRE(.min_hold_ms = wrong_ms[i]), "min_hold_ms");
    }
    expect_refused(lock, ACQUIRE(.lease_ms = -1), "lease_ms");
    expect_refused(lock, ACQUIRE(.max_hold_ms = -1), "max_hold_ms");
    expect_refused(lock, ACQUIRE(.min_hold_ms = -1), "min_hold_ms");
    check_str(redis_str(server, "KEYS *"), "");
    expect_ok(hl_lock_acquire_with(
        lock, ACQUIRE(.wait_ms = most_ms, .lease_ms = most_ms, .max_hold_ms = most_ms), NULL));
    check(pttl_of(lock) > most_ms - 60000);
}

Law(a_lease, shorter_than_its_own_margin_allows_is_refused)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    for (int64_t lease_ms = 1; lease_ms < 10; lease_ms++)
        expect_refused(lock, ACQUIRE(.lease_ms = lease_ms), "lease_ms");
    check_int(redis_int(server, "EXISTS stock"), 0);
}

Law(options, of_an_older_program_keep_the_defaults_of_newer_fields)
{
    hl_acquire_options older = HL_ACQUIRE_OPTIONS_INIT;
    older.wait_ms = HL_NO_WAIT;
    hl_client_options older_client = HL_CLIENT_OPTIONS_INIT;
    older_client.size = offsetof(hl_client_options, name_prefix);
    older_client.name_prefix = (const char *)8; /* never looked at */
    hl_client *client = open_client(&older_client);
    hl_lock *lock = new_lock(client, "stock");
    older.size = offsetof(hl_acquire_options, owner);
    older.lease_ms = 5000;
    older.owner = (hl_owner *)8; /* never looked at */
    expect_ok(hl_lock_acquire_with(lock, &older, NULL));
    check(pttl_of(lock) <= 5000);
}

Law(options, of_a_newer_program_are_refused_only_if_they_say_something_new)
{
    struct {
        hl_acquire_options known;
        int64_t newer;
    } acquire = {HL_ACQUIRE_OPTIONS_INIT, 0};
    struct {
        hl_client_options known;
        int64_t newer;
    } open = {HL_CLIENT_OPTIONS_INIT, 0};
    hl_client *client = NULL;
    acquire.known.size = sizeof acquire;
    open.known.size = sizeof open;
    hl_lock *lock = new_lock(open_client(&open.known), "stock");
    expect_ok(hl_lock_acquire_with(lock, &acquire.known, NULL));
    acquire.newer = open.newer = 1;
    expect_outcome(hl_lock_acquire_with(lock, &acquire.known, NULL), HL_EINVAL);
    expect_outcome(hl_client_open(redis_server_url(server), &open.known, &client, NULL), HL_EINVAL);
}

Law(statistics, fit_into_the_struct_of_an_older_or_newer_program)
{
    struct {
        hl_stats known;
        uint64_t newer;
    } stats = {.known.size = sizeof stats, .newer = 7};
    hl_client *client = open_client(NULL);
    expect_ok(hl_lock_acquire(new_lock(client, "stock"), NULL));
    expect_ok(hl_client_stats(client, &stats.known));
    check_int(stats.known.acquires, 1);
    check_int(stats.known.size, sizeof stats);
    check_int(stats.newer, 7);
    stats.known = (hl_stats){.size = offsetof(hl_stats, busy), .busy = 42};
    expect_ok(hl_client_stats(client, &stats.known));
    check_int(stats.known.acquires, 1);
    check_int(stats.known.busy, 42);
}
