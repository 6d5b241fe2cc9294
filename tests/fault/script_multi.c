/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts for several locks at once, called raw on the names "a", "b" and "c": all or nothing,
 * and the cases that they leave to the scripts for one lock. */

#include "script_raw.h"

static const char *run(hli_script_id id, const char *words)
{
    const struct hli_script *script = hli_script_get(id);
    char line[1024];
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    snprintf(line, sizeof line, "EVALSHA %s 3 a b c %s", script->sha1, words);
    return redis_str(server, line);
}

/* lease waits, and the number of the client's fields */
static const char *take_as(const char *client, const char *lease, int waits)
{
    char words[512];
    snprintf(words, sizeof words,
             "%s %d 30000 hirelock: %s:1 hirelock_queue:{a} hirelock_holder:{a} "
             "%s:2 hirelock_queue:{b} hirelock_holder:{b} "
             "%s:3 hirelock_queue:{c} hirelock_holder:{c}",
             lease, waits, client, client, client);
    return run(HLI_SCRIPT_MULTI_ACQUIRE, words);
}

static const char *leave_as(const char *client, int yields)
{
    char words[1024];
    int used = snprintf(words, sizeof words, "PUBLISH NUMSUB");
    for (int i = 0; i < 3; i++)
        used += snprintf(words + used, sizeof words - (size_t)used,
                         " %s:%d redisson_lock__channel:{%c} hirelock_queue:{%c} hirelock:{%c} %d",
                         client, i + 1, 'a' + i, 'a' + i, 'a' + i, yields);
    return run(HLI_SCRIPT_MULTI_RELEASE, words);
}

static void check_is(const char *name, const char *fields)
{
    check_str(redis_str(server, "HGETALL %s", name), fields);
}

Law(script_multi, takes_the_free_members_and_reports_each)
{
    check_str(take_as("A", "5000", 0), "1 1 1 1 1 1");
    check_is("a", "A:1 1");
    check_is("b", "A:2 1");
    check_is("c", "A:3 1");
    for (const char *name = "abc"; *name; name++)
        check(redis_int(server, "PTTL %b", name, (size_t)1) > 4000);
}

Law(script_multi, takes_nothing_when_one_hash_is_no_lock)
{
    for (size_t i = 0; raw_odd_hash(i); i++) {
        int64_t fields = redis_int(server, "HLEN n");
        redis_do(server, "RENAME n b");
        const char *said = take_as("A", "5000", 1);
        redis_do(server, "RENAME b n");
        raw_check_no_lock(said, fields);
        check_int(redis_int(server, "DBSIZE"), 1);
    }
}

Law(script_multi, repeated_changes_nothing_and_shortens_no_lease)
{
    check_str(take_as("A", "90000", 0), "1 1 1 1 1 1");
    check_str(take_as("A", "1000", 0), "1 0 1 0 1 0");
    check_is("b", "A:2 1");
    check(redis_int(server, "PTTL b") > 60000);
    check_str(take_as("A", "95000", 0), "1 0 1 0 1 0");
    check(redis_int(server, "PTTL c") > 90000);
}

Law(script_multi, takes_nothing_when_one_is_busy)
{
    for (const char *name = "abc"; *name; name++) {
        redis_do(server, "HSET %b B:9 1", name, (size_t)1);
        redis_do(server, "PEXPIRE %b 5000", name, (size_t)1);
        const char *said = take_as("A", "5000", 0);
        check_msg(strstr(said, "B:9 1") != NULL, "%s", said);
        check_msg(strncmp(said, "2 2 0 ", (size_t)(2 * (name[0] - 'a') + 2)) != 0 || *name == 'c',
                  "%s", said);
        check_int(redis_int(server, "DBSIZE"), 1);
        redis_do(server, "DEL %b", name, (size_t)1);
    }
}

Law(script_multi, takes_the_members_before_the_busy_one_and_queues_there_for_a_caller_that_waits)
{
    redis_do(server, "HSET b B:9 1");
    redis_do(server, "PEXPIRE b 5000");
    redisContext *ear = ear_open("hirelock:B");
    const char *said = take_as("A", "5000", 1);
    check_msg(strncmp(said, "1 1 0 ", 6) == 0, "%s", said);
    check_is("a", "A:1 1");
    check_is("b", "B:9 1");
    check_int(redis_int(server, "EXISTS c"), 0);
    check_str(redis_str(server, "ZRANGE hirelock_queue:{b} 0 -1"), "A:2");
    check(redis_int(server, "PTTL hirelock_queue:{b}") > 20000);
    check_int(redis_int(server, "EXISTS hirelock_queue:{a} hirelock_queue:{c}"), 0);
    ear_check(ear, "hirelock:B", "w b");
    redisFree(ear);
}

Law(script_multi, forgets_the_queue_of_a_free_member)
{
    redis_do(server, "ZADD hirelock_queue:{b} 1 D:1");
    check_str(take_as("A", "5000", 1), "1 1 1 1 1 1");
    check_int(redis_int(server, "EXISTS hirelock_queue:{b}"), 0);
}

Law(script_multi, takes_nothing_when_one_key_is_no_lock)
{
    redis_do(server, "SET c x");
    check_has(take_as("A", "5000", 1), "WRONGTYPE");
    check_int(redis_int(server, "DBSIZE"), 1);
    check_has(leave_as("A", 0), "WRONGTYPE");
}

Law(script_multi, refuses_bad_leases_and_leaves_nothing_behind)
{
    static const char *const bad[] = {"-1", "0", "1.5", "100000000001", "x", "1e3", "0x10"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_has(take_as("A", bad[i], 0), "HIRELOCK");
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

Law(script_multi, takes_all_back_when_an_expiry_is_refused)
{
    redis_do(server, "ACL SETUSER hltest -pexpire");
    check(strncmp(take_as("A", "5000", 0), "1 ", 2) != 0);
    redis_do(server, "ACL SETUSER hltest +pexpire");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_multi, releases_all_and_tells_each)
{
    check_str(take_as("A", "5000", 0), "1 1 1 1 1 1");
    redisContext *ear = ear_open("redisson_lock__channel:{a} redisson_lock__channel:{c}");
    check_str(leave_as("A", 0), "1  -1 1  0 1  -1");
    check_int(redis_int(server, "DBSIZE"), 0);
    ear_check(ear, "redisson_lock__channel:{a}", "0");
    ear_check(ear, "redisson_lock__channel:{c}", "0");
    check_str(leave_as("A", 0), "0 0 0");
    ear_check_end(ear, "redisson_lock__channel:{a}");
    redisFree(ear);
}

Law(script_multi, counts_redissons_waiters_when_it_is_asked_to)
{
    check_str(take_as("A", "5000", 0), "1 1 1 1 1 1");
    redisContext *ear = ear_open("redisson_lock__channel:{a}");
    check_str(leave_as("A", 1), "1  1 1  0 1  0");
    redisFree(ear);
}

Law(script_multi, leaves_members_with_waiters_to_the_other_script)
{
    check_str(take_as("A", "5000", 0), "1 1 1 1 1 1");
    redis_do(server, "ZADD hirelock_queue:{b} 1 D:1");
    check_str(leave_as("A", 0), "1  0 2 1  0");
    check_is("b", "A:2 1");
    check_int(redis_int(server, "EXISTS a c"), 0);
}

Law(script_multi, leaves_the_queue_of_a_member_that_it_does_not_hold)
{
    redis_do(server, "HSET b B:9 1");
    redis_do(server, "ZADD hirelock_queue:{b} 1 A:2 2 D:1");
    check_str(leave_as("A", 0), "0 0 0");
    check_str(redis_str(server, "ZRANGE hirelock_queue:{b} 0 -1"), "D:1");
    check_is("b", "B:9 1");
}

Law(script_multi, release_at_maxmemory)
{
    check_str(take_as("A", "5000", 0), "1 1 1 1 1 1");
    redis_do(server, "CONFIG SET maxmemory 1");
    check_has(take_as("B", "5000", 0), "0 ");
    check_str(leave_as("A", 0), "1  0 1  0 1  0");
    check_has(take_as("B", "5000", 0), "OOM");
    check_int(redis_int(server, "DBSIZE"), 0);
}
