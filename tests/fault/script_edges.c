/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts, called raw: bad leases leave nothing behind, and a repeated or late command changes
 * nothing. */

#include "script_raw.h"

/* redis_str splits the command at spaces, so an empty argument goes another way. */
static const char *acquire_with(const char *lease, const char *want)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE);
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    return redis_str(server, "EVALSHA %s 1 n u:1 %s %s " RAW_QUEUE " 0 hirelock:", script->sha1,
                     lease, want);
}

Law(script_edges, refuse_bad_leases_and_leave_nothing_behind)
{
    static const char *const bad[] = {
        "-1", "0",   "1.5", "100000000001", "1e12", "9223372036854775807", "9223372036854775808",
        "",   "nan", "inf", "-inf",         "x",    "-9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *said = acquire_with(bad[i], "1");
        check_msg(strncmp(said, "HIRELOCK", 8) == 0, "lease \"%s\" is answered %s", bad[i], said);
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

/* The lease goes to PEXPIRE as it was written, which wants digits only. */
Law(script_edges, refuse_leases_that_lua_reads_and_redis_does_not)
{
    static const char *const odd[] = {"1e3", "0x10", " 5", "1000.0"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        const char *said = acquire_with(odd[i], "1");
        check_msg(strncmp(said, "1 ", 2) != 0, "lease \"%s\" is accepted", odd[i]);
        check_msg(redis_int(server, "DBSIZE") == 0, "lease \"%s\" left a key, TTL %d", odd[i],
                  (int)redis_int(server, "PTTL n"));
    }
}

Law(script_edges, refuse_bad_leases_for_a_field_that_holds)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_has(acquire("u:1 -5 2"), "HIRELOCK");
    check(strncmp(acquire("u:1 1e4 2"), "1 ", 2) != 0);
    check_int(redis_int(server, "HGET n u:1"), 1);
    check(redis_int(server, "PTTL n") > 0);
    check(redis_int(server, "PTTL n") <= 5000);
}

Law(script_edges, refuse_bad_counts)
{
    static const char *const bad[] = {"0", "-1", "x", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_has(acquire_with("1000", bad[i]), "HIRELOCK");
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

Law(script_edges, a_repeated_acquire_keeps_the_count)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(acquire("u:1 5000 1"), RAW_HAD);
    check_int(redis_int(server, "HGET n u:1"), 1);
    check_str(acquire("u:1 5000 3"), RAW_HAD);
    check_str(acquire("u:1 5000 3"), RAW_HAD);
    check_str(acquire("u:1 5000 2"), RAW_HAD); /* late: takes no level away */
    check_int(redis_int(server, "HGET n u:1"), 3);
}

Law(script_edges, an_acquire_never_shortens_a_lease_and_gives_one_back)
{
    check_str(acquire("u:1 90000 1"), RAW_TAKEN);
    check_str(acquire("u:1 1000 2"), RAW_HAD);
    check(redis_int(server, "PTTL n") > 60000);
    redis_do(server, "PERSIST n");
    check_str(acquire("u:1 1000 2"), RAW_HAD);
    int64_t left = redis_int(server, "PTTL n");
    check(left > 0 && left <= 1000);
}

Law(script_edges, a_nested_acquire_whose_outer_hold_is_gone_takes_nothing)
{
    check_str(acquire("u:1 5000 2"), "-1");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(acquire("u:2 5000 1"), RAW_TAKEN);
    check_str(acquire("u:1 5000 2"), "-1");
    check_str(redis_str(server, "HGETALL n"), "u:2 1");
}

Law(script_edges, a_repeated_nested_release_keeps_the_count)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(acquire("u:1 5000 3"), RAW_HAD);
    check_str(release("u:1 2 5000 0"), RAW_UNSEEN);
    check_str(release("u:1 2 5000 0"), RAW_UNSEEN);
    check_int(redis_int(server, "HGET n u:1"), 2);
    check_str(release("u:1 1 100 0"), RAW_UNSEEN); /* a lease of 100 shortens nothing */
    check(redis_int(server, "PTTL n") > 2000);
}

Law(script_edges, a_late_release_of_an_old_field_is_refused)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(release("u:1 0 0 0"), RAW_DONE);
    check_str(acquire("u:2 5000 1"), RAW_TAKEN);
    check_str(release("u:1 0 0 0"), "0");
    check_str(release("u:1 1 5000 0"), "0");
    check_str(release("u:1 0 0 700"), "0");
    check_str(redis_str(server, "HGETALL n"), "u:2 1");
    check(redis_int(server, "PTTL n") > 2000);
}

Law(script_edges, a_release_that_lets_the_key_rest_may_be_repeated)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(release("u:1 0 0 700"), RAW_UNSEEN);
    check_str(redis_str(server, "HGETALL n"), "u:1 0");
    check_str(release("u:1 0 0 600"), RAW_UNSEEN);
    check_str(redis_str(server, "HGETALL n"), "u:1 0");
    int64_t left = redis_int(server, "PTTL n");
    check(left > 0 && left <= 700);
    check_str(renew("5000 u:1"), "1 -1"); /* who has released is not renewed */
    check(redis_int(server, "PTTL n") <= 700);
    check_has(acquire("u:2 5000 1"), "u:1 0"); /* no other field gets in */
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
}

Law(script_edges, a_renewal_never_creates_and_never_shortens)
{
    check_str(renew("5000 u:1"), "1 -1");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(acquire("u:2 90000 1"), RAW_TAKEN);
    check_str(renew("5000 u:1"), "1 -1");
    check_str(redis_str(server, "HGETALL n"), "u:2 1");
    check_str(renew("1000 u:2"), "");
    check(redis_int(server, "PTTL n") > 60000);
    redis_do(server, "HSET n u:2 7");
    check_str(renew("95000 u:2"), "1 7"); /* renewed, and the count that stands is told */
    check(redis_int(server, "PTTL n") > 90000);
}

Law(script_edges, a_renewal_gives_a_persisted_key_its_lease_back)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    redis_do(server, "PERSIST n");
    check_str(renew("4000 u:1"), "");
    int64_t left = redis_int(server, "PTTL n");
    check(left > 0 && left <= 4000);
}

Law(script_edges, a_hash_with_several_fields_is_busy_for_others_and_released_as_a_whole)
{
    redis_do(server, "HSET n a:1 1 b:2 1");
    redis_do(server, "PEXPIRE n 5000");
    check(strncmp(acquire("u:1 5000 1"), "0 ", 2) == 0);
    check_str(redis_str(server, "HGETALL n"), "a:1 1 b:2 1");
    redis_do(server, "HSET n u:1 1");
    check_str(renew("6000 u:1"), "");
    check_str(release("u:1 0 0 0"), RAW_DONE);
    check_int(redis_int(server, "EXISTS n"), 0);
}

/* A foreign client overwrites our field: a renewal confirms no hold then, and no script fails. */
Law(script_edges, odd_values_in_a_field_are_survived)
{
    static const char *const odd[] = {"x", "", "-3", "0", "nan"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        redis_do(server, "DEL n");
        redis_do(server, "HSET n u:1 %s", odd[i]);
        redis_do(server, "PEXPIRE n 5000");
        check_str(renew("5000 u:1"), "1 -1");
        bool is_number = strtol(odd[i], NULL, 10) != 0 || strcmp(odd[i], "0") == 0;
        check_has(acquire("u:2 5000 1"), is_number ? "u:1 " : "WRONGTYPE");
        check_str(release("u:1 1 5000 0"), RAW_UNSEEN);
        check_str(release("u:1 0 0 300"), RAW_UNSEEN);
        check_str(release("u:1 0 0 0"), RAW_DONE);
        check_int(redis_int(server, "EXISTS n"), 0);
    }
}

Law(script_edges, a_hash_that_is_no_lock_is_a_short_error)
{
    for (size_t i = 0; raw_odd_hash(i); i++) {
        int64_t fields = redis_int(server, "HLEN n");
        raw_check_no_lock(acquire("B:1 5000 1"), fields);
        raw_check_no_lock(run_script(HLI_SCRIPT_LOCK_INSPECT, "n", ""), fields);
        raw_check_no_lock(
            run_script(HLI_SCRIPT_LOCK_FORCE_RELEASE, "n", RAW_REDISSON " PUBLISH hirelock:"),
            fields);
    }
}

Law(script_edges, a_tag_that_is_too_long_is_not_repeated)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    redis_do(server, "EVAL %s 1 tag", "redis.call('SET', KEYS[1], string.rep('x', 1e5))");
    const char *said =
        raw_run(HLI_SCRIPT_LOCK_ACQUIRE, "u:2 5000 1", RAW_QUEUE " 0 hirelock: t 0 tag");
    check_msg(strlen(said) < 200, "%.300s", said);
    check_has(said, " u:1 1");
    said = run_script(HLI_SCRIPT_LOCK_INSPECT, "n", "tag");
    check_msg(strlen(said) < 200, "%.300s", said);
    check_has(said, " u:1 1");
}

/* Many holds are renewed by one call: what happened to one of them is its own affair. */
Law(script_edges, a_renewal_of_many_goes_on_past_a_key_that_is_no_lock_any_more)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_LOCK_RENEW);
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    redis_do(server, "HSET a u:1 1");
    redis_do(server, "SET b stranger");
    redis_do(server, "HSET c u:3 odd");
    redis_do(server, "HSET d u:4 1");
    const char *said = redis_str(server, "EVALSHA %s 4 a b c d 5000 u:1 u:2 u:3 u:4", script->sha1);
    check_str(said, "2 -1 3 -1");
    check(redis_int(server, "PTTL a") > 2000);
    check(redis_int(server, "PTTL d") > 2000);
    check_int(redis_int(server, "PTTL b"), -1);
}

Law(script_edges, a_key_that_is_no_hash_is_an_error_and_stays_as_it_is)
{
    redis_do(server, "SET n stranger");
    check_has(acquire("u:1 5000 1"), "WRONGTYPE");
    check_has(release("u:1 0 0 0"), "WRONGTYPE");
    check_has(run_script(HLI_SCRIPT_LOCK_INSPECT, "n", ""), "WRONGTYPE");
    check_str(renew("5000 u:1"), "1 -1");
    check_str(redis_str(server, "GET n"), "stranger");
    check_int(redis_int(server, "PTTL n"), -1);
}

/* The client refuses them before anything is sent. */
Law(script_edges, bad_times_never_reach_the_server)
{
    static const int64_t bad[] = {-1, 1, 9, INT64_C(100000000001), INT64_MAX, INT64_MIN};
    hl_client *client = open_impatient(NULL);
    hl_lock *lock = new_lock(client, "n");
    expect_ok(hl_client_ping(client, -1, NULL)); /* what it sends by itself is sent by now */
    uint64_t before = stats_of(client).commands;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
        options.wait_ms = HL_NO_WAIT;
        hl_error err = HL_ERROR_INIT;
        options.lease_ms = bad[i];
        expect_outcome(hl_lock_acquire_with(lock, &options, &err), HL_EINVAL);
        check_has(err.text, "lease_ms");
    }
    check_int((int)(stats_of(client).commands - before), 0);
    hl_acquire_options longest = HL_ACQUIRE_OPTIONS_INIT;
    longest.wait_ms = HL_NO_WAIT;
    longest.lease_ms = INT64_C(100000000000);
    expect_ok(hl_lock_acquire_with(lock, &longest, NULL));
    check(redis_int(server, "PTTL n") > INT64_C(99999000000));
    expect_ok(hl_lock_release(lock, NULL));
    check_int(redis_int(server, "DBSIZE"), 0);
    free_lock(lock);
    close_client(client);
}
