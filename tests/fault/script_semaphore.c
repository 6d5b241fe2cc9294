/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts of the semaphore, called raw: what they take and give back, once however often they
 * come, and what they tell Redisson. */

#include "script_notes.h"

#define SEMAPHORE_CHANNEL "redisson_sc:{n}"

/* waiters need... settled... */
static const char *take(const char *id, const char *rest)
{
    return once_run(HLI_SCRIPT_SEMAPHORE_ACQUIRE, id, "A:1 none 0 0", rest);
}

static const char *run(hli_script_id script, const char *id, const char *rest)
{
    return once_run(script, id, SEMAPHORE_CHANNEL " PUBLISH", rest);
}

/* keep settled... */
static const char *undo(const char *id, const char *rest)
{
    return once_run(HLI_SCRIPT_SEMAPHORE_UNDO, id, SEMAPHORE_CHANNEL " PUBLISH A:1 none", rest);
}

/* permits must_exist settled... */
static const char *add(const char *id, const char *rest)
{
    return run(HLI_SCRIPT_SEMAPHORE_ADD, id, rest);
}

/* permits ttl settled... */
static const char *try_set(const char *id, const char *rest)
{
    return run(HLI_SCRIPT_SEMAPHORE_TRY_SET, id, rest);
}

static const char *drain(const char *id)
{
    return once_run(HLI_SCRIPT_SEMAPHORE_DRAIN, id, "", "0");
}

static const char *available(void)
{
    return run_script(HLI_SCRIPT_SEMAPHORE_AVAILABLE, "n", "");
}

Law(script_semaphore, the_longest_prefix_of_needs_is_served_by_one_command)
{
    static const struct {
        const char *needs, *said;
        int left;
    } cases[] = {
        {"3 4 3 9 0", "1 -1 0 0  3 7", 3},
        {"1 10 0", "1 10", 0},
        {"2 9 2 0", "1 -1 0 0  1 9", 1},
        {"1 11 0", NULL, 10},
        {"2 11 1 0", NULL, 10}, /* the first is not overtaken */
        {"3 1 1 1 0", "1 3", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        redis_do(server, "FLUSHALL");
        redis_do(server, "SET n 10");
        const char *said = cases[i].said ? cases[i].said : "0 -1 0 0  10";
        check_str(take("1", cases[i].needs), said);
        check_int(redis_int(server, "GET n"), cases[i].left);
    }
    check_int(redis_int(server, "PTTL n"), -1);
}

Law(script_semaphore, no_semaphore_has_no_permits_and_is_not_made_by_asking)
{
    check_str(take("1", "1 1 0"), "0 -1 0 0  0");
    check_str(drain("2"), "1 0");
    check_str(available(), "1 0");
    check_str(add("3", "1 1 0"), "0");
    check_str(undo("4", "0 0"), "0");
    check_int(redis_int(server, "EXISTS n"), 0);
}

Law(script_semaphore, a_repeated_acquire_takes_once_and_is_told_the_same)
{
    redis_do(server, "SET n 5");
    check_str(take("7", "2 2 1 0"), "1 3");
    check_str(take("7", "2 2 1 0"), "1 3");
    check_str(take("7", "1 1 0"), "1 3"); /* for any waiter of now */
    check_int(redis_int(server, "GET n"), 2);
    check_note("7", "3");
    check_str(take("8", "1 9 0"), "0 -1 0 0  2");
    check_note("7", "3"); /* what was not given is not noted */
}

Law(script_semaphore, a_settled_record_is_deleted_by_the_next_command)
{
    redis_do(server, "SET n 9");
    check_str(take("1", "1 1 0"), "1 1");
    check_str(take("2", "1 1 1"), "1 1");
    check_note("2", "1");
    check_str(add("3", "1 0 2 1"), "1");
    check_note("3", "1");
    check_str(undo("4", "0 3"), "0");
    check_note("4", "0");
    check_str(take("5", "1 99 4 3"), "0 -1 0 0  8"); /* also by one that is not served */
    check_note("", "");
}

Law(script_semaphore, an_undo_gives_back_what_was_taken_and_once)
{
    redisContext *java = ear_open(SEMAPHORE_CHANNEL);
    redis_do(server, "SET n 5 PX 90000");
    check_str(take("1", "1 4 0"), "1 4");
    check_str(undo("1", "3 0"), "1  -1"); /* one of them */
    check_str(undo("1", "3 0"), "1  -1");
    check_int(redis_int(server, "GET n"), 2);
    check_str(undo("1", "0 0"), "1  -1");
    check_str(undo("1", "0 0"), "1  -1");
    check_str(undo("1", "3 0"), "1  -1"); /* late: takes nothing */
    check_int(redis_int(server, "GET n"), 5);
    check(redis_int(server, "PTTL n") > 30000);
    ear_check(java, SEMAPHORE_CHANNEL, "2");
    ear_check(java, SEMAPHORE_CHANNEL, "5");
    ear_check_end(java, SEMAPHORE_CHANNEL);
    redisFree(java);
}

Law(script_semaphore, an_acquire_that_comes_after_its_undo_takes_nothing)
{
    redis_do(server, "SET n 5");
    check_str(undo("1", "0 0"), "0");
    check_str(take("1", "1 1 0"), "0 -1 0 0  5");
    check_int(redis_int(server, "GET n"), 5);
    check_str(take("2", "1 1 0"), "1 1");
    check_str(undo("2", "0 0"), "1  -1");
    check_str(take("2", "1 1 0"), "0 -1 0 0  5");
    check_int(redis_int(server, "GET n"), 5);
}

Law(script_semaphore, a_semaphore_that_is_gone_gets_nothing_back_from_an_undo)
{
    redisContext *java = ear_open(SEMAPHORE_CHANNEL);
    redis_do(server, "SET n 5");
    check_str(take("1", "1 5 0"), "1 5");
    redis_do(server, "DEL n");
    check_str(undo("1", "0 0"), "1  -1");
    check_int(redis_int(server, "EXISTS n"), 0);
    redis_do(server, "SET n 9");
    check_str(undo("1", "0 0"), "1  -1");
    check_int(redis_int(server, "GET n"), 9);
    ear_check_end(java, SEMAPHORE_CHANNEL);
    redisFree(java);
}

Law(script_semaphore, permits_are_added_once_keep_the_expiry_and_are_told)
{
    redisContext *java = ear_open(SEMAPHORE_CHANNEL);
    check_str(add("1", "2 0 0"), "1"); /* makes one, as Redisson's release does */
    redis_do(server, "PEXPIRE n 90000");
    check_str(add("1", "2 0 0"), "1");
    check_str(add("2", "3 1 0"), "1");
    check_int(redis_int(server, "GET n"), 5);
    check_str(add("3", "-1 0 0"), "1");
    check_str(add("4", "-6 0 0"), "1"); /* a debt: no waiter is woken, and Java's ears stay whole */
    check_str(add("5", "2 0 0"), "1");
    check_str(available(), "1 0");
    check_str(add("6", "3000000000 0 0"), "1"); /* more than an int of Java's */
    check(redis_int(server, "PTTL n") > 30000);
    ear_check(java, SEMAPHORE_CHANNEL, "2");
    ear_check(java, SEMAPHORE_CHANNEL, "5");
    ear_check(java, SEMAPHORE_CHANNEL, "4");
    ear_check(java, SEMAPHORE_CHANNEL, "2147483647");
    ear_check_end(java, SEMAPHORE_CHANNEL);
    redisFree(java);
}

Law(script_semaphore, a_repeated_add_is_done_though_the_semaphore_is_gone)
{
    redis_do(server, "SET n 1");
    check_str(add("1", "1 1 0"), "1");
    redis_do(server, "DEL n");
    check_str(add("1", "1 1 0"), "1");
    check_str(add("2", "1 1 0"), "0");
    check_int(redis_int(server, "EXISTS n"), 0);
}

Law(script_semaphore, a_drain_takes_all_once_and_keeps_the_expiry)
{
    redisContext *java = ear_open(SEMAPHORE_CHANNEL);
    redis_do(server, "SET n 9007199254740993 PX 90000"); /* which no double can hold */
    check_str(drain("1"), "1 9007199254740993");
    check_int(redis_int(server, "GET n"), 0);
    redis_do(server, "INCRBY n 2");
    check_str(drain("1"), "1 9007199254740993");
    check_str(available(), "1 2");
    redis_do(server, "DECRBY n 7");
    check_str(available(), "1 -5");
    check_str(drain("2"), "1 -5");
    check_str(available(), "1 0");
    check(redis_int(server, "PTTL n") > 30000);
    ear_check_end(java, SEMAPHORE_CHANNEL);
    redisFree(java);
}

Law(script_semaphore, is_set_only_where_none_is)
{
    redisContext *java = ear_open(SEMAPHORE_CHANNEL);
    check_str(try_set("1", "4 0 0"), "1");
    check_str(try_set("1", "4 0 0"), "1"); /* its answer was lost */
    check_str(try_set("2", "9 0 0"), "0");
    check_str(redis_str(server, "GET n"), "4");
    check_int(redis_int(server, "PTTL n"), -1);
    redis_do(server, "DEL n");
    check_str(try_set("1", "4 0 0"), "1"); /* late: makes nothing */
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(try_set("3", "5 7000 1"), "1");
    int64_t left = redis_int(server, "PTTL n");
    check(left > 0 && left <= 7000);
    redis_do(server, "DEL n");
    check_str(try_set("4", "0 0 3"), "1"); /* none: no waiter is woken */
    check_str(redis_str(server, "GET n"), "0");
    check_note("4", "1");
    ear_check(java, SEMAPHORE_CHANNEL, "4");
    ear_check(java, SEMAPHORE_CHANNEL, "5");
    ear_check_end(java, SEMAPHORE_CHANNEL);
    redisFree(java);
}

Law(script_semaphore, bad_words_are_refused_and_leave_nothing_behind)
{
    static const char *const needs[] = {"1 0 0",   "1 -1 0", "1 x 0", "2 1 1.5 0", "1 1e3 0",
                                        "1 nan 0", "0 1 0",  "2 1",   "x 1 0"};
    static const char *const adds[] = {"x 0 0", "1.5 0 0", "1e3 0 0", "+1 0 0", "nan 0 0"};
    redis_do(server, "SET n 5");
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        check_has(take("1", needs[i]), "HIRELOCK");
    for (size_t i = 0; i < sizeof adds / sizeof adds[0]; i++)
        check_has(add("1", adds[i]), "HIRELOCK");
    check_has(undo("1", "-1 0"), "HIRELOCK");
    check_has(try_set("1", "-1 0 0"), "HIRELOCK");
    check_has(try_set("1", "1 -1 0"), "HIRELOCK");
    check_str(redis_str(server, "KEYS *"), "n");
    check_str(redis_str(server, "GET n"), "5");
}

/* A semaphore that a foreign client overwrote is an error, and stays as it is. */
Law(script_semaphore, a_value_that_is_no_number_is_an_error_and_leaves_no_record)
{
    static const char *const set[] = {"SET n odd", "SET n 1.5", "HSET n u:1 1"};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        redis_do(server, "DEL n");
        redis_do(server, set[i]);
        check_has(take("1", "1 1 0"), "WRONGTYPE");
        check_has(drain("2"), "WRONGTYPE");
        check_has(available(), "WRONGTYPE");
        check(strncmp(add("3", "1 0 0"), "1", 1) != 0);
        check_str(redis_str(server, "KEYS *"), "n");
    }
}

Law(script_semaphore, an_undo_that_is_refused_may_be_repeated)
{
    redis_do(server, "SET n 5");
    check_str(take("1", "1 3 0"), "1 3");
    redis_do(server, "SET n odd");
    check_has(undo("1", "0 0"), "not an integer");
    check_note("1", "3");
    redis_do(server, "SET n 2");
    check_str(undo("1", "0 0"), "1  -1");
    check_int(redis_int(server, "GET n"), 5);
}

Law(script_semaphore, more_than_a_number_holds_is_refused_and_nothing_is_noted)
{
    redis_do(server, "SET n 9223372036854775807");
    check_has(add("1", "1 0 0"), "overflow");
    check_str(redis_str(server, "GET n"), "9223372036854775807");
    check_note("", "");
}

Law(script_semaphore, a_full_server_goes_on_but_for_a_new_semaphore)
{
    redis_do(server, "SET n 5");
    redis_do(server, "CONFIG SET maxmemory 1");
    check_str(take("1", "1 3 0"), "1 3");
    check_str(undo("1", "1 0"), "1  -1");
    check_str(add("2", "1 0 0"), "1");
    check_str(drain("3"), "1 5");
    check_has(try_set("4", "5 0 0"), "0");
    redis_do(server, "FLUSHALL");
    check_has(try_set("5", "5 0 0"), "OOM");
    check_int(redis_int(server, "DBSIZE"), 0);
    check_str(add("6", "2 0 0"), "1"); /* a release is none of its waiters' business */
    check_str(available(), "1 2");
}

Law(script_semaphore, a_message_that_may_not_be_told_is_no_failure)
{
    redis_do(server, "ACL SETUSER hltest -publish");
    check_str(try_set("1", "5 0 0"), "1");
    check_str(take("2", "1 3 0"), "1 3");
    check_str(undo("2", "0 0"), "1  -1");
    check_str(add("3", "1 0 0"), "1");
    check_int(redis_int(server, "GET n"), 6);
}

Law(script_semaphore, a_command_without_its_record_changes_nothing)
{
    redis_do(server, "SET n 5");
    redis_do(server, "ACL SETUSER hltest resetkeys ~n");
    static const hli_script_id scripts[] = {HLI_SCRIPT_SEMAPHORE_UNDO, HLI_SCRIPT_SEMAPHORE_ADD,
                                            HLI_SCRIPT_SEMAPHORE_TRY_SET};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        check(strncmp(run(scripts[i], "1", "1 0 0"), "1", 1) != 0);
    check(strncmp(take("1", "1 1 0"), "1", 1) != 0);
    check(strncmp(drain("1"), "1", 1) != 0);
    redis_do(server, "ACL SETUSER hltest ~*");
    check_str(redis_str(server, "GET n"), "5");
}
