/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts of the latch, called raw: each command counts once, however often it is repeated; and
 * their messages to Redisson. */

#include "script_notes.h"

#define LATCH_CHANNEL "redisson_countdownlatch__channel__{n}"

static const char *run(hli_script_id script, const char *id, const char *rest)
{
    return once_run(script, id, LATCH_CHANNEL " PUBLISH", rest);
}

/* count settled... */
static const char *set_count(const char *id, const char *rest)
{
    return run(HLI_SCRIPT_LATCH_SET_COUNT, id, rest);
}

static const char *count_down(const char *id, const char *settled)
{
    return run(HLI_SCRIPT_LATCH_COUNT_DOWN, id, settled);
}

static const char *delete_latch(const char *id)
{
    return run(HLI_SCRIPT_LATCH_DELETE, id, "0");
}

static const char *count(void)
{
    return run_script(HLI_SCRIPT_LATCH_COUNT, "n", "");
}

Law(script_latch, is_closed_counted_down_and_opened_by_the_last)
{
    redisContext *java = ear_open(LATCH_CHANNEL);
    check_str(count(), "1 0");
    check_str(set_count("1", "2 0"), "1");
    check_str(redis_str(server, "GET n"), "2");
    check_int(redis_int(server, "PTTL n"), -1);
    check_str(count(), "0 -1 0 0  2");
    check_str(count_down("2", "0"), "0");
    check_str(count(), "0 -1 0 0  1");
    check_str(count_down("3", "0"), "1");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(count(), "1 0");
    ear_check(java, LATCH_CHANNEL, "1");
    ear_check(java, LATCH_CHANNEL, "0");
    ear_check_end(java, LATCH_CHANNEL);
    redisFree(java);
}

Law(script_latch, an_open_latch_is_not_counted_below_zero)
{
    redisContext *java = ear_open(LATCH_CHANNEL);
    check_str(count_down("1", "0"), "1");
    check_int(redis_int(server, "DBSIZE"), 0);
    check_str(set_count("2", "1 0"), "1");
    check_str(count_down("3", "0"), "1");
    check_str(count_down("4", "0"), "1");
    check_int(redis_int(server, "EXISTS n"), 0);
    ear_check(java, LATCH_CHANNEL, "1");
    ear_check(java, LATCH_CHANNEL, "0");
    ear_check_end(java, LATCH_CHANNEL);
    redisFree(java);
}

Law(script_latch, a_repeated_command_counts_once_whatever_became_of_the_latch)
{
    check_str(set_count("1", "2 0"), "1");
    check_str(set_count("1", "2 0"), "1");
    check_str(count_down("2", "0"), "0");
    check_str(count_down("2", "0"), "0");
    check_str(redis_str(server, "GET n"), "1");
    check_str(count_down("3", "0"), "1");
    check_str(set_count("1", "2 0"), "1"); /* late: closes nothing */
    check_str(count(), "1 0");
    check_str(set_count("4", "3 0"), "1"); /* used again */
    check_str(count_down("3", "0"), "1");
    check_str(count_down("2", "0"), "0");
    check_str(redis_str(server, "GET n"), "3");
}

Law(script_latch, a_closed_latch_is_not_closed_again)
{
    check_str(set_count("1", "2 0"), "1");
    check_str(set_count("2", "5 0"), "0");
    check_str(redis_str(server, "GET n"), "2");
}

Law(script_latch, a_settled_record_is_deleted_by_the_next_command)
{
    check_str(set_count("1", "2 0"), "1");
    check_str(count_down("2", "1"), "0");
    check_note("2", "0");
    check_str(count_down("3", "2"), "1");
    check_note("3", "1");
    check_str(set_count("4", "1 3"), "1");
    check_note("4", "1");
}

Law(script_latch, counting_down_keeps_the_expiry)
{
    redis_do(server, "SET n 3 PX 90000");
    check_str(count_down("1", "0"), "0");
    check(redis_int(server, "PTTL n") > 30000);
}

Law(script_latch, a_deleted_latch_is_told_as_open_and_once)
{
    redisContext *java = ear_open(LATCH_CHANNEL);
    check_str(delete_latch("1"), "0");
    check_str(set_count("2", "7 0"), "1");
    check_str(delete_latch("3"), "1");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(set_count("4", "7 0"), "1");
    check_str(delete_latch("3"), "1"); /* late: the latch is another one by now */
    check_str(redis_str(server, "GET n"), "7");
    ear_check(java, LATCH_CHANNEL, "1");
    ear_check(java, LATCH_CHANNEL, "0");
    ear_check(java, LATCH_CHANNEL, "1");
    ear_check_end(java, LATCH_CHANNEL);
    redisFree(java);
}

/* Redisson sets a count of 0 too, which is open and keeps its key. */
Law(script_latch, a_count_of_nothing_is_open)
{
    redisContext *java = ear_open(LATCH_CHANNEL);
    redis_do(server, "SET n 0");
    check_str(count(), "1 0");
    check_str(count_down("1", "0"), "1");
    check_int(redis_int(server, "EXISTS n"), 0);
    ear_check_end(java, LATCH_CHANNEL);
    redisFree(java);
}

Law(script_latch, bad_counts_are_refused_and_leave_nothing_behind)
{
    static const char *const bad[] = {"0", "-1", "x", "1.5", "1e3", "nan"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char rest[32];
        snprintf(rest, sizeof rest, "%s 0", bad[i]);
        check_has(set_count("1", rest), "HIRELOCK");
    }
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_latch, a_value_that_is_no_number_is_an_error_and_leaves_no_record)
{
    static const char *const set[] = {"SET n odd", "HSET n u:1 1"};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        redis_do(server, "DEL n");
        redis_do(server, set[i]);
        check_has(count(), "WRONGTYPE");
        check_has(count_down("1", "0"), "WRONGTYPE");
        check_str(redis_str(server, "KEYS *"), "n");
    }
    check_has(delete_latch("1"), "WRONGTYPE"); /* a lock is not opened by mistake */
    check_int(redis_int(server, "EXISTS n"), 1);
}

Law(script_latch, a_full_server_goes_on_but_for_a_new_latch)
{
    redis_do(server, "SET n 2");
    redis_do(server, "CONFIG SET maxmemory 1");
    check_str(count_down("1", "0"), "0");
    check_str(count_down("2", "0"), "1");
    check_int(redis_int(server, "DBSIZE"), 2); /* notes */
    redis_do(server, "FLUSHALL");
    check_has(set_count("3", "2 0"), "OOM");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_latch, a_message_that_may_not_be_told_is_no_failure)
{
    redis_do(server, "ACL SETUSER hltest -publish");
    check_str(set_count("1", "1 0"), "1");
    check_str(count_down("2", "0"), "1");
    check_str(set_count("3", "1 0"), "1");
    check_str(delete_latch("4"), "1");
    check_int(redis_int(server, "EXISTS n"), 0);
}

Law(script_latch, a_command_without_its_record_changes_nothing)
{
    redis_do(server, "SET n 2");
    redis_do(server, "ACL SETUSER hltest resetkeys ~n");
    check(strlen(count_down("1", "0")) > 1);
    check(strlen(delete_latch("1")) > 1);
    redis_do(server, "ACL SETUSER hltest ~*");
    check_str(redis_str(server, "KEYS *"), "n");
    check_str(redis_str(server, "GET n"), "2");
}
