/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The permits' scripts, called raw: their keys in Redis afterwards, and their messages. How long a
 * permit lasts is in script_permit_leases.c. */

#include "script_permits.h"

Law(script_permits, a_permit_is_an_id_of_16_bytes_with_its_end_in_the_servers_time)
{
    redis_do(server, "SET n 2");
    check_str(take(A " 60000"), "1 1");
    check_int(redis_int(server, "GET n"), 1);
    check_lasts(A, 60000);
    check_str(take(B " 0"), "1 1");
    check_str(redis_str(server, "ZSCORE " PERMIT_IDS " " B), PERMIT_NEVER);
    check_str(give(A), "1  -1");
    check_str(give(B), "1  -1");
    check_int(redis_int(server, "GET n"), 2);
    check_str(redis_str(server, "KEYS *"), "n");
}

Law(script_permits, a_name_with_a_tag_has_its_ids_beside_it)
{
    redis_do(server, "SET a{b}c 1");
    check_str(run_script(HLI_SCRIPT_PERMIT_ACQUIRE, "a{b}c", A " 5000 ch PUBLISH"), "1 1");
    check_int(redis_int(server, "ZCARD a{b}c:timeout"), 1);
}

Law(script_permits, an_id_is_any_16_bytes)
{
    static const char id[16] = {'\0', ' ', '\r', '\n', '\xff', '{', '}', '%', '\0', '1'};
    const struct hli_script *acquire_script = hli_script_get(HLI_SCRIPT_PERMIT_ACQUIRE);
    const struct hli_script *release_script = hli_script_get(HLI_SCRIPT_PERMIT_RELEASE);
    redis_do(server, "SET n 1");
    check_str(take(A " 5000"), "1 1");
    check_str(give(A), "1  -1"); /* both scripts are loaded */
    check_str(
        redis_str(server, "EVALSHA %s 1 n %b 5000 c PUBLISH", acquire_script->sha1, id, sizeof id),
        "1 1");
    check_int(redis_int(server, "ZSCORE " PERMIT_IDS " %b", id, sizeof id) > 0, 1);
    check_str(redis_str(server, "EVALSHA %s 1 n %b c PUBLISH", release_script->sha1, id, sizeof id),
              "1  -1");
    check_int(redis_int(server, "EXISTS " PERMIT_IDS), 0);
}

Law(script_permits, several_are_taken_all_or_none)
{
    redis_do(server, "SET n 2");
    check_has(take(A B C " 5000"), "0 -1 ");
    check_int(redis_int(server, "GET n"), 2);
    check_int(redis_int(server, "EXISTS " PERMIT_IDS), 0);
    check_str(take(A B " 5000"), "1 1");
    check_int(redis_int(server, "GET n"), 0);
    check_int(redis_int(server, "ZCARD " PERMIT_IDS), 2);
}

Law(script_permits, a_repeated_acquire_takes_nothing_and_never_shortens)
{
    redis_do(server, "SET n 5");
    check_str(take(A B " 50000"), "1 1");
    check_str(take(A B " 50000"), "1 0");
    check_str(take(A B " 1000"), "1 0");
    check_int(redis_int(server, "GET n"), 3);
    check_lasts(A, 50000);
    check_str(take(A B " 90000"), "1 0");
    check_lasts(B, 90000);
    check_str(take(A B " 0"), "1 0");
    check_str(take(A B " 1000"), "1 0");
    check_str(redis_str(server, "ZSCORE " PERMIT_IDS " " A), PERMIT_NEVER);
}

/* Another client gave one of them back meanwhile. */
Law(script_permits, an_acquire_of_which_a_part_stands_takes_the_rest)
{
    redis_do(server, "SET n 2");
    check_str(take(A B " 5000"), "1 1");
    check_str(give(B), "1  -1");
    check_str(take(A B " 5000"), "1 1");
    check_int(redis_int(server, "GET n"), 0);
}

Law(script_permits, busy_says_when_enough_will_have_expired)
{
    redis_do(server, "SET n 3");
    check_str(take(A " 20000"), "1 1");
    check_str(take(B " 40000"), "1 1");
    check_str(take(C " 0"), "1 1");
    check_busy(take("dddddddddddddddd 5000"), 1, 20000, 0);
    check_busy(take("ddddddddddddddddeeeeeeeeeeeeeeee 5000"), 20001, 40000, 0);
    check_busy(take("ddddddddddddddddeeeeeeeeeeeeeeeeffffffffffffffff 5000"), -1, -1, 0);
    redis_do(server, "SET n 1");
    check_busy(take("ddddddddddddddddeeeeeeeeeeeeeeee 5000"), 1, 20000, 1);
    redis_do(server, "SET n -1");
    check_busy(take("dddddddddddddddd 5000"), 20001, 40000, 0);
}

Law(script_permits, a_semaphore_that_is_not_there_has_no_permits)
{
    check_busy(take(A " 5000"), -1, -1, 0);
    check_str(inspect(), "1 0 0");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_permits, thousands_are_taken_and_given_back_at_once)
{
    enum { MANY = 10000 };
    static char ids[MANY * 16 + 1];
    for (int i = 0; i < MANY; i++)
        snprintf(ids + (size_t)i * 16, 17, "%016d", i);
    redis_do(server, "SET n %d", MANY + 1);
    check_str(give(A), "0 0");
    check_str(take(A " 5000"), "1 1"); /* both are loaded */
    check_str(redis_str(server, "EVALSHA %s 1 n %b 60000 c PUBLISH",
                        hli_script_get(HLI_SCRIPT_PERMIT_ACQUIRE)->sha1, ids, (size_t)MANY * 16),
              "1 1");
    check_str(inspect(), "1 0 10001");
    check_str(redis_str(server, "EVALSHA %s 1 n %b c PUBLISH",
                        hli_script_get(HLI_SCRIPT_PERMIT_RELEASE)->sha1, ids, (size_t)MANY * 16),
              "1  -1");
    check_str(inspect(), "1 10000 1");
}

Law(script_permits, a_release_tells_what_is_available_and_a_repeated_one_nothing)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    redis_do(server, "SET n 3");
    check_str(take(A B " 5000"), "1 1");
    check_str(give(A), "1  -1");
    ear_check(ear, PERMIT_CHANNEL, "2");
    check_str(give(A), "0 0");
    check_str(give(A B), "1 01 -1");
    ear_check(ear, PERMIT_CHANNEL, "3");
    check_int(redis_int(server, "GET n"), 3);
    ear_check_end(ear, PERMIT_CHANNEL);
    redisFree(ear);
}

Law(script_permits, a_negative_number_is_never_told)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    redis_do(server, "SET n -2");
    put(A, 60000);
    put(B, 60000);
    check_str(give(A), "1  -1");
    put(C, -1);
    check_str(inspect(), "1 0 1");
    check_str(give(B), "1  -1");
    ear_check(ear, PERMIT_CHANNEL, "1");
    redisFree(ear);
}

Law(script_permits, a_whole_release_gives_all_back_or_none_and_a_repeated_one_nothing)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    redis_do(server, "SET n 3");
    check_str(take(A B " 60000"), "1 1");
    check_str(give_whole(A C B), "0 101");
    check_str(inspect(), "1 1 2");
    check_lasts(A, 60000);
    ear_check_end(ear, PERMIT_CHANNEL);
    check_str(give_whole(A B), "1  -1");
    ear_check(ear, PERMIT_CHANNEL, "3");
    check_str(give_whole(A B), "0 00");
    check_int(redis_int(server, "GET n"), 3);
    ear_check_end(ear, PERMIT_CHANNEL);
    redisFree(ear);
}

/* What has expired comes back by itself, and is told. */
Law(script_permits, a_whole_release_with_an_expired_permit_gives_none_of_the_others_back)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    redis_do(server, "SET n 0");
    put(A, 60000);
    put(B, -1);
    check_str(give_whole(A B), "0 1x");
    ear_check(ear, PERMIT_CHANNEL, "1");
    check_str(inspect(), "1 1 1");
    check_str(give_whole(A B), "0 10");
    check_str(inspect(), "1 1 1");
    check_str(give_whole(A), "1  -1");
    ear_check(ear, PERMIT_CHANNEL, "2");
    ear_check_end(ear, PERMIT_CHANNEL);
    redisFree(ear);
}

Law(script_permits, a_whole_release_counts_an_id_once_that_is_named_twice)
{
    redis_do(server, "SET n 1");
    check_str(take(A " 60000"), "1 1");
    check_str(give_whole(A A), "1 11 -1");
    check_str(inspect(), "1 1 0");
}

Law(script_permits, permits_are_set_once_or_anew_and_told)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    check_str(run(HLI_SCRIPT_PERMIT_SET, "3 1 0"), "1");
    ear_check(ear, PERMIT_CHANNEL, "3");
    check_str(run(HLI_SCRIPT_PERMIT_SET, "9 1 0"), "0");
    check_str(take(A B " 60000"), "1 1");
    check_str(run(HLI_SCRIPT_PERMIT_SET, "5 0 0"), "1");
    ear_check(ear, PERMIT_CHANNEL, "3");
    check_str(run(HLI_SCRIPT_PERMIT_SET, "5 0 0"), "1"); /* again: nothing is new */
    check_str(inspect(), "1 3 2");
    check_str(run(HLI_SCRIPT_PERMIT_SET, "1 0 0"), "1");
    check_str(inspect(), "1 -1 2");
    check_str(run(HLI_SCRIPT_PERMIT_SET, "0 0 0"), "1");
    check_str(inspect(), "1 -2 2");
    ear_check_end(ear, PERMIT_CHANNEL);
    redisFree(ear);
}

Law(script_permits, permits_are_made_more_and_fewer)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    check_str(run(HLI_SCRIPT_PERMIT_ADD, "0"), "1"); /* neither makes a semaphore, nor tells */
    check_int(redis_int(server, "DBSIZE"), 0);
    check_str(run(HLI_SCRIPT_PERMIT_ADD, "2"), "1");
    ear_check(ear, PERMIT_CHANNEL, "2");
    check_str(run(HLI_SCRIPT_PERMIT_ADD, "-5"), "1");
    check_str(run(HLI_SCRIPT_PERMIT_ADD, "1"), "1");
    check_str(inspect(), "1 -2 0");
    check_str(run(HLI_SCRIPT_PERMIT_ADD, "2147483647"), "1");
    ear_check(ear, PERMIT_CHANNEL, "2147483645");
    check_has(run(HLI_SCRIPT_PERMIT_ADD, "3"), "HIRELOCK");
    check_int(redis_int(server, "GET n"), 2147483645);
    ear_check_end(ear, PERMIT_CHANNEL);
    redisFree(ear);
}

Law(script_permits, bad_arguments_are_refused_and_leave_nothing_behind)
{
    static const struct {
        hli_script_id id;
        const char *words;
    } bad[] = {{HLI_SCRIPT_PERMIT_ACQUIRE, "aaa 5000"},
               {HLI_SCRIPT_PERMIT_ACQUIRE, A "b 5000"},
               {HLI_SCRIPT_PERMIT_ACQUIRE, A " -5"},
               {HLI_SCRIPT_PERMIT_ACQUIRE, A " 1e3"},
               {HLI_SCRIPT_PERMIT_ACQUIRE, A " 100000000001"},
               {HLI_SCRIPT_PERMIT_RELEASE, "aaa"},
               {HLI_SCRIPT_PERMIT_UPDATE_LEASE, A B " 5000"},
               {HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " x"},
               {HLI_SCRIPT_PERMIT_LEASE_LEFT, "a"},
               {HLI_SCRIPT_PERMIT_SET, "-1 0 0"},
               {HLI_SCRIPT_PERMIT_SET, "2147483648 0 0"},
               {HLI_SCRIPT_PERMIT_SET, "x 0 0"},
               {HLI_SCRIPT_PERMIT_ADD, "1.5"},
               {HLI_SCRIPT_PERMIT_ADD, "-2147483648"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *said = run(bad[i].id, bad[i].words);
        check_msg(strncmp(said, "HIRELOCK", 8) == 0, "\"%s\" is answered %s", bad[i].words, said);
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

static void check_all_say_wrongtype(void)
{
    check_has(take(A " 5000"), "WRONGTYPE");
    check_has(give(A), "WRONGTYPE");
    check_has(run(HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " 5000"), "WRONGTYPE");
    check_has(run(HLI_SCRIPT_PERMIT_LEASE_LEFT, A), "WRONGTYPE");
    check_has(inspect(), "WRONGTYPE");
    check_has(run(HLI_SCRIPT_PERMIT_SET, "1 0 0"), "WRONGTYPE");
    check_has(run(HLI_SCRIPT_PERMIT_ADD, "1"), "WRONGTYPE");
}

Law(script_permits, a_key_of_another_kind_is_an_error_and_stays_as_it_is)
{
    redis_do(server, "HSET n u:1 1");
    put(A, -1);
    check_all_say_wrongtype();
    check_int(redis_int(server, "ZCARD " PERMIT_IDS), 1);
    redis_do(server, "DEL n");
    redis_do(server, "SET n stranger");
    check_all_say_wrongtype();
    check_int(redis_int(server, "ZCARD " PERMIT_IDS), 1);
    redis_do(server, "SET n 3");
    redis_do(server, "DEL " PERMIT_IDS);
    redis_do(server, "SET " PERMIT_IDS " stranger");
    check_all_say_wrongtype();
    check_str(renew_permits("5000 " A), "1 -1");
    check_int(redis_int(server, "GET n"), 3);
    check_str(redis_str(server, "GET " PERMIT_IDS), "stranger");
}

Law(script_permits, at_maxmemory_permits_are_renewed_and_released_but_not_taken)
{
    redis_do(server, "SET n 3");
    check_str(take(A " 60000"), "1 1");
    check_str(take(B " 60000"), "1 1");
    check_str(renew_permits("5000 " A), "");
    check_str(run(HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " 60000"), "1"); /* all are loaded */
    check_str(give("dddddddddddddddd"), "0 0");
    redis_do(server, "CONFIG SET maxmemory 1");
    check_str(
        redis_str(server, "EVALSHA %s 1 n 90000 " A, hli_script_get(HLI_SCRIPT_PERMIT_RENEW)->sha1),
        "");
    check_str(redis_str(server, "EVALSHA %s 1 n " A " 120000 c PUBLISH",
                        hli_script_get(HLI_SCRIPT_PERMIT_UPDATE_LEASE)->sha1),
              "1");
    check_has(redis_str(server, "EVALSHA %s 1 n " C " 60000 c PUBLISH",
                        hli_script_get(HLI_SCRIPT_PERMIT_ACQUIRE)->sha1),
              "OOM");
    check_str(redis_str(server, "EVALSHA %s 1 n " A B " c PUBLISH",
                        hli_script_get(HLI_SCRIPT_PERMIT_RELEASE)->sha1),
              "1  -1");
    redis_do(server, "CONFIG SET maxmemory 0");
    check_int(redis_int(server, "GET n"), 3);
    check_int(redis_int(server, "EXISTS " PERMIT_IDS), 0);
}

/* The number is refused after the ids were written. */
Law(script_permits, a_client_that_may_not_count_acquires_nothing)
{
    redis_do(server, "SET n 1");
    redis_do(server, "ACL SETUSER hltest -decrby");
    check(strncmp(take(A " 5000"), "1 ", 2) != 0);
    check_int(redis_int(server, "EXISTS " PERMIT_IDS), 0);
    redis_do(server, "ACL SETUSER hltest +decrby -publish");
    check_str(take(A " 5000"), "1 1");
    check_str(give(A), "1  -1"); /* who waits polls */
    check_int(redis_int(server, "GET n"), 1);
}
