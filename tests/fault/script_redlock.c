/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts of the classic lock "n", called raw: they compare the whole value, shorten nothing,
 * and repeat without harm. */

#include "script_raw.h"

#define CHANNEL "hirelock_redlock:{n}"

static const char *take(const char *words)
{
    return run_script(HLI_SCRIPT_REDLOCK_ACQUIRE, "n", words);
}

/* value rest */
static const char *leave(const char *words)
{
    return raw_run(HLI_SCRIPT_REDLOCK_RELEASE, words, CHANNEL " PUBLISH");
}

static const char *prolong(const char *words)
{
    return run_script(HLI_SCRIPT_REDLOCK_RENEW, "n", words);
}

Law(script_redlock, acquire_sets_a_key_with_an_expiry_once)
{
    check_str(take("A:1 5000"), "1 1");
    check_str(redis_str(server, "GET n"), "A:1");
    check(redis_int(server, "PTTL n") > 0);
    check_str(take("A:1 5000"), "1 0"); /* a second copy */
    check(strncmp(take("B:1 5000"), "0 ", 2) == 0);
    check_has(take("B:1 5000"), " A:1 1");
    check_str(redis_str(server, "GET n"), "A:1");
}

/* "n", while the data are younger than so many milliseconds */
static const char *take_unless_young(int64_t young_ms)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_REDLOCK_ACQUIRE);
    char line[256];

    take("A:2 5000"); /* loads it */
    redis_do(server, "DEL n");
    snprintf(line, sizeof line, "EVALSHA %s 2 n hirelock_data A:1 5000 %jd", script->sha1,
             (intmax_t)young_ms);
    return redis_str(server, line);
}

Law(script_redlock, acquire_gives_nothing_while_the_data_are_young)
{
    const int64_t long_ms = 600000;
    int64_t age_ms = -1;

    check_str(take_unless_young(long_ms), "-1 0"); /* marked just now */
    check_int(redis_int(server, "PTTL hirelock_data"), -1);
    const char *since = redis_str(server, "GET hirelock_data");
    check_int(sscanf(take_unless_young(long_ms), "-1 %jd", (intmax_t *)&age_ms), 1);
    check(age_ms >= 0);
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(redis_str(server, "GET hirelock_data"), since);
    redis_do(server, "SET hirelock_data 0");
    check_str(take_unless_young(long_ms), "1 1");
    redis_do(server, "SET hirelock_data junk");
    check_str(take_unless_young(long_ms), "-1 0");
    redis_do(server, "DEL hirelock_data");
    redis_do(server, "HSET hirelock_data a 1");
    check_has(take_unless_young(long_ms), "WRONGTYPE");
    check_int(redis_int(server, "EXISTS n"), 0);
}

Law(script_redlock, acquire_by_its_holder_extends_and_never_shortens)
{
    check_str(take("A:1 5000"), "1 1");
    check_str(take("A:1 600000"), "1 0");
    check(redis_int(server, "PTTL n") > 5000);
    check_str(take("A:1 5000"), "1 0");
    check(redis_int(server, "PTTL n") > 5000);
}

Law(script_redlock, acquire_compares_the_whole_value)
{
    check_str(take("A:11 5000"), "1 1");
    check(strncmp(take("A:1 5000"), "0 ", 2) == 0);
    check(strncmp(take("A:111 5000"), "0 ", 2) == 0);
}

Law(script_redlock, acquire_repeats_no_more_than_the_first_bytes_of_a_value)
{
    redis_do(server, "EVAL %s 1 n", "redis.call('SET', KEYS[1], string.rep('x', 1000000))");
    const char *said = take("A:1 5000");
    check(strncmp(said, "0 -1 ", 5) == 0);
    check(strlen(said) < 128);
}

Law(script_redlock, acquire_refuses_bad_leases_and_leaves_nothing)
{
    static const char *const bad[] = {"0", "-1", "1.5", "1e3", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char words[32];
        snprintf(words, sizeof words, "A:1 %s", bad[i]);
        check(strncmp(take(words), "1 ", 2) != 0);
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

Law(script_redlock, refuse_keys_of_other_types)
{
    redis_do(server, "HSET n A:1 1");
    check_has(take("A:1 5000"), "WRONGTYPE");
    check_str(leave("A:1 0"), "0");
    check_str(prolong("5000 A:1"), "1 -1");
    check_has(run_script(HLI_SCRIPT_REDLOCK_INSPECT, "n", ""), "WRONGTYPE");
    check_str(redis_str(server, "HGETALL n"), "A:1 1");
}

Law(script_redlock, release_deletes_its_own_value_only)
{
    redisContext *ear = ear_open(CHANNEL);
    check_str(leave("A:1 0"), "0");
    check_str(take("A:1 5000"), "1 1");
    check_str(leave("B:1 0"), "0");
    check_str(redis_str(server, "GET n"), "A:1");
    check_str(leave("A:1 0"), "1");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(leave("A:1 0"), "0");
    ear_check(ear, CHANNEL, "0");
    ear_check_end(ear, CHANNEL); /* one message, of the one release */
    redisFree(ear);
}

Law(script_redlock, release_may_leave_the_key_for_a_while)
{
    check_str(take("A:1 5000"), "1 1");
    check_str(leave("A:1 600000"), "1");
    check(redis_int(server, "PTTL n") > 5000);
    check(strncmp(take("B:1 5000"), "0 ", 2) == 0);
}

Law(script_redlock, renew_extends_what_is_held_and_names_the_rest)
{
    check_str(prolong("5000 A:1"), "1 -1");
    check_int(redis_int(server, "EXISTS n"), 0); /* it creates nothing */
    check_str(take("A:1 5000"), "1 1");
    check_str(prolong("600000 A:1"), "");
    check(redis_int(server, "PTTL n") > 5000);
    check_str(prolong("5000 A:1"), "");
    check(redis_int(server, "PTTL n") > 5000);
    check_str(prolong("600000 B:1"), "1 -1");
}

Law(script_redlock, renew_names_the_holds_of_a_batch_that_are_gone)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_REDLOCK_RENEW);
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    redis_do(server, "SET a A:1 PX 5000");
    redis_do(server, "SET c other PX 5000");
    redis_do(server, "SET d A:4 PX 5000");
    redis_do(server, "HSET e A:5 1");
    check_str(redis_str(server, "EVALSHA %s 5 a b c d e 60000 A:1 A:2 A:3 A:4 A:5", script->sha1),
              "2 -1 3 -1 5 -1");
    check(redis_int(server, "PTTL a") > 5000);
    check(redis_int(server, "PTTL d") > 5000);
}

Law(script_redlock, work_at_maxmemory_but_for_the_acquire)
{
    check_str(take("A:1 5000"), "1 1");
    redis_do(server, "CONFIG SET maxmemory 1");
    check_str(prolong("600000 A:1"), "");
    check_str(leave("A:1 0"), "1");
    check_has(take("A:1 5000"), "OOM");
    redis_do(server, "CONFIG SET maxmemory 0");
    check_int(redis_int(server, "EXISTS n"), 0);
}
