/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts of terms and reclaims, called raw: what they write in a grace, and behind its end. */

#include "script_raw.h"

#define NEVER_MS "99999999999999" /* the hold is believed in */
#define PAST_MS "1"
#define OURS RAW_CLIENT ":7"

static const char *reclaim_beside(hli_script_id id, const char *until_ms, const char *words,
                                  const char *beside)
{
    char args[256];

    snprintf(args, sizeof args, "5000 %s %s %s", words, until_ms, beside);
    return run_script(id, "n", args);
}

static const char *reclaim(hli_script_id id, const char *until_ms, const char *words)
{
    return reclaim_beside(id, until_ms, words, "-");
}

Law(script_reclaim, writes_a_lock_that_is_gone_with_its_count)
{
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, NEVER_MS, OURS " 1"), "");
    check_str(redis_str(server, "HGETALL n"), OURS " 1");
    check_int(redis_int(server, "PTTL n") > 4000, 1);
    redis_do(server, "DEL n");
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, NEVER_MS, OURS " 3"), "1 3");
    check_str(redis_str(server, "HGETALL n"), OURS " 3");
}

Law(script_reclaim, that_runs_late_writes_nothing)
{
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, PAST_MS, OURS " 1"), "1 -1");
    check_str(reclaim(HLI_SCRIPT_RW_READ_RECLAIM, PAST_MS, OURS " 1"), "1 -1");
    check_int(redis_int(server, "DBSIZE"), 0);
    redis_do(server, "SET n 3");
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, PAST_MS, "0123456789abcdef 1"), "1 -1");
    check_int(redis_int(server, "GET n"), 3);
    redis_do(server, "DEL n");
    redis_do(server, "HSET n other:1 1");
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, PAST_MS, OURS " 1"), "1 -1");
    check_str(redis_str(server, "HGETALL n"), "other:1 1");
}

Law(script_reclaim, that_runs_late_renews_what_is_there)
{
    redis_do(server, "HSET n %s 2", OURS);
    redis_do(server, "PEXPIRE n 2000");
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, PAST_MS, OURS " 3"), "1 2");
    check(redis_int(server, "PTTL n") > 4000);
}

Law(script_reclaim, removes_an_older_owner_and_keeps_no_field_of_it)
{
    redis_do(server, "HSET n other:1 2");
    redis_do(server, "PEXPIRE n 60000");
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, NEVER_MS, OURS " 1"), "");
    check_str(redis_str(server, "HGETALL n"), OURS " 1");
    check(redis_int(server, "PTTL n") <= 5000);
}

Law(script_reclaim, with_a_count_of_0_only_renews)
{
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, NEVER_MS, OURS " 0"), "1 -1");
    check_str(reclaim(HLI_SCRIPT_RW_READ_RECLAIM, NEVER_MS, OURS " 0"), "1 -1");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_reclaim, never_shortens_an_expiry)
{
    redis_do(server, "HSET n %s 1", OURS);
    redis_do(server, "PEXPIRE n 60000");
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, NEVER_MS, OURS " 1"), "");
    check(redis_int(server, "PTTL n") > 50000);
}

Law(script_reclaim, leaves_a_key_of_another_kind_alone)
{
    redis_do(server, "SET n word");
    check_str(reclaim(HLI_SCRIPT_LOCK_RECLAIM, NEVER_MS, OURS " 1"), "1 -1");
    check_str(reclaim(HLI_SCRIPT_RW_READ_RECLAIM, NEVER_MS, OURS " 1"), "1 -1");
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "0123456789abcdef 1"), "1 -1");
    check_str(redis_str(server, "GET n"), "word");
}

/* What another owner of the same client had is over, as what other clients had. */
Law(script_reclaim, of_a_writer_keeps_its_own_reading_only)
{
    redis_do(server, "HSET n mode read other:1 1 " RAW_CLIENT ":4 1 " RAW_CLIENT ":5 2");
    redis_do(server, "PEXPIRE n 60000");
    check_str(reclaim_beside(HLI_SCRIPT_LOCK_RECLAIM, NEVER_MS, OURS ":write 1", RAW_CLIENT ":5"),
              "");
    check_str(redis_str(server, "HGET n mode"), "write");
    check_int(redis_int(server, "HGET n %s", OURS ":write"), 1);
    check_int(redis_int(server, "HGET n %s", RAW_CLIENT ":5"), 2);
    check_int(redis_int(server, "HLEN n"), 3);
}

Law(script_reclaim, of_a_reader_keeps_other_readers_and_its_own_writing_only)
{
    redis_do(server, "HSET n mode read other:1 1");
    redis_do(server, "PEXPIRE n 60000");
    check_str(reclaim(HLI_SCRIPT_RW_READ_RECLAIM, NEVER_MS, OURS " 2"), "1 2");
    check_int(redis_int(server, "HLEN n"), 3);
    check(redis_int(server, "PTTL n") > 50000);
    check_int(redis_int(server, "EXISTS {n}:%s:rwlock_timeout:2", OURS), 1);
    redis_do(server, "DEL n");
    redis_do(server, "HSET n mode write other:1:write 1 " RAW_CLIENT ":4:write 1");
    check_str(reclaim(HLI_SCRIPT_RW_READ_RECLAIM, NEVER_MS, OURS " 1"), "");
    check_str(redis_str(server, "HGET n mode"), "read");
    check_int(redis_int(server, "HLEN n"), 2);
    redis_do(server, "DEL n");
    redis_do(server, "HSET n mode write " RAW_CLIENT ":5:write 1");
    check_str(
        reclaim_beside(HLI_SCRIPT_RW_READ_RECLAIM, NEVER_MS, OURS " 1", RAW_CLIENT ":5:write"), "");
    check_str(redis_str(server, "HGET n mode"), "write");
    check_int(redis_int(server, "HLEN n"), 3);
}

Law(script_reclaim, of_a_permit_takes_it_from_those_that_are_left)
{
    redis_do(server, "SET n 1");
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "0123456789abcdef 1"), "");
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "0123456789abcdef 1"), "");
    check_int(redis_int(server, "GET n"), 0);
    check_int(redis_int(server, "ZCARD {n}:timeout"), 1);
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "fedcba9876543210 1"), "");
    check_int(redis_int(server, "GET n"), -1);
    redis_do(server, "ZADD {n}:timeout 1 0123456789abcdef"); /* expired, and not taken back */
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "0123456789abcdef 1"), "");
    check_int(redis_int(server, "GET n"), -1);
}

/* As a renewal does: the number does not expire before the permit, nor the permit behind it. */
Law(script_reclaim, of_a_permit_whose_semaphore_has_a_time_to_live_makes_that_long_enough)
{
    redis_do(server, "SET n 1 PX 30000");
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "0123456789abcdef 1"), "");
    check(redis_int(server, "PTTL n") > 30000);
    check(redis_int(server, "PTTL {n}:timeout") > 30000);
    redis_do(server, "DEL n {n}:timeout");
    redis_do(server, "SET n 1 PX 300000");
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "0123456789abcdef 1"), "");
    check(redis_int(server, "PTTL {n}:timeout") > 30000);
    check(redis_int(server, "PTTL n") <= 300000);
}

Law(script_reclaim, of_permits_takes_a_hash_for_no_number)
{
    redis_do(server, "HSET n a 1");
    check_str(reclaim(HLI_SCRIPT_PERMIT_RECLAIM, NEVER_MS, "0123456789abcdef 1"), "1 -1");
}

static const char *greet(int64_t grace_ms)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_TERM);

    return redis_str(server, "EVAL %b 0 %d 7 0", (const char *)script->text, script->length,
                     (int)grace_ms);
}

/* The answer to a client with this option: what is left of the grace, another client's option. */
static void expect_greeting(int64_t grace_ms, bool is_in_grace, int64_t others_ms)
{
    long left = -1, others = -1;

    check_int(sscanf(greet(grace_ms), "1 %ld %*d %ld 7 ", &left, &others), 2);
    check_int(left > 10000, is_in_grace);
    check_int(others, others_ms);
}

SingleLaw(script_term, tells_of_other_options)
{
    expect_greeting(20000, true, 20000);
    expect_greeting(1, true, 20000);     /* they say how long the grace lasts at most, ... */
    expect_greeting(20000, true, 20000); /* ... so it lasts */
    redis_do(server, "DEL hirelock_term");
    while (strncmp(greet(1), "1 0 ", 4) != 0)
        deadline_nap();
    expect_greeting(30000, false, 1);
    expect_greeting(40000, false, 30000);
    expect_greeting(40000, false, 40000);
}

SingleLaw(script_term, begins_a_grace_once_and_never_makes_it_longer)
{
    long left = 0, again = 0;

    check_int(sscanf(greet(20000), "1 %ld", &left), 1);
    check(left > 10000);
    check_int(sscanf(greet(90000), "1 %ld", &again), 1);
    check(again <= left);
    redis_do(server, "SET hirelock_term %s", "0000000000000000000000000000000000000000");
    check_int(sscanf(greet(30000), "1 %ld", &again), 1); /* another term */
    check(again > 25000);
}

SingleLaw(script_term, begins_on_a_full_server_too)
{
    long left = 0;

    redis_do(server, "CONFIG SET maxmemory 1");
    check_int(sscanf(greet(20000), "1 %ld", &left), 1);
    check(left > 10000);
    redis_do(server, "CONFIG SET maxmemory 0");
}

/* The end that was written is far ahead of a clock that was set back. */
SingleLaw(script_term, is_no_longer_than_it_was_asked_for)
{
    char id[41];
    long left = 0;

    check_int(sscanf(greet(1), "1 %*d %*d 1 7 %40s", id), 1);
    redis_do(server, "SET hirelock_term %b", id, (size_t)40);
    redis_do(server, "APPEND hirelock_term %b", " 99999999999999 20000 7", (size_t)23);
    check_int(sscanf(greet(20000), "1 %ld", &left), 1);
    check_int(left, 20000);
}
