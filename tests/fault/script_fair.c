/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fair lock's scripts, called raw: the queue, as Redisson's clients keep it too. */

#include "script_fair.h"

Law(script_fair, a_free_lock_is_taken_as_any_other)
{
    check_str(fair_ask("A:1"), RAW_TAKEN);
    check_str(redis_str(server, "HGETALL n"), "A:1 1");
    check(redis_int(server, "PTTL n") > 20000);
    check_int(redis_int(server, "DBSIZE"), 1);
    check_str(fair_acquire("A:1 90000 3 1"), RAW_HAD);
    check_str(fair_acquire("A:1 1000 2 1"), RAW_HAD); /* late: takes nothing away */
    check_int(redis_int(server, "HGET n A:1"), 3);
    check(redis_int(server, "PTTL n") > 60000);
    check_str(fair_release("A:1"), FAIR_SEEN);
    fair_check_nothing_left();
    check_str(fair_release("A:1"), FAIR_NONE);
}

Law(script_fair, waiters_stand_in_redissons_keys_in_the_order_of_arrival)
{
    fair_queue_of("B:1 C:1 B:2");
    fair_check_queue("B:1 C:1 B:2");
    fair_check_left("B:1", INT64_C(2) * FAIR_STAND_MS);
    check_int(redis_int(server, "TTL " FAIR_QUEUE), -1); /* as Redisson leaves them */
    check_int(redis_int(server, "TTL " FAIR_ENDS), -1);
    check(redis_int(server, "PTTL " FAIR_SIGNS) > FAIR_STAND_MS);
}

Law(script_fair, a_release_tells_the_head_alone_and_only_the_head_gets_in)
{
    redisContext *b = ear_open(FAIR_CHANNEL("B:1")), *c = ear_open(FAIR_CHANNEL("C:1"));
    fair_queue_of("B:1 C:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    ear_check(b, FAIR_CHANNEL("B:1"), "0");
    check(strncmp(fair_ask("C:1"), "0 -1 ", 5) == 0);
    check(strncmp(fair_ask("D:1"), "0 -1 ", 5) == 0); /* behind */
    check_has(fair_try("E:1"), " B:1 0");             /* whose turn it is */
    check_str(fair_ask("B:1"), RAW_TAKEN);
    fair_check_queue("C:1 D:1");
    check_str(fair_ask("B:1"), RAW_HAD);
    ear_check_end(c, FAIR_CHANNEL("C:1"));
    check_str(fair_release("B:1"), FAIR_SEEN);
    ear_check(c, FAIR_CHANNEL("C:1"), "0");
    check_str(fair_ask("C:1"), RAW_TAKEN);
    check_str(fair_release("C:1"), FAIR_SEEN);
    check_str(fair_ask("D:1"), RAW_TAKEN);
    check_str(fair_release("D:1"), FAIR_SEEN);
    fair_check_nothing_left();
    redisFree(b);
    redisFree(c);
}

Law(script_fair, a_repeated_request_keeps_its_place)
{
    fair_queue_of("B:1 C:1 D:1");
    for (int i = 0; i < 3; i++) {
        fair_ask("D:1");
        fair_ask("B:1");
        fair_ask("C:1");
    }
    fair_check_queue("B:1 C:1 D:1");
}

Law(script_fair, a_dropped_waiter_queues_again_at_the_tail)
{
    fair_queue_of("B:1 C:1");
    redis_do(server, "LPOP " FAIR_QUEUE);
    redis_do(server, "ZREM " FAIR_ENDS " B:1"); /* as Redisson drops the stale */
    fair_ask("B:1");
    fair_check_queue("C:1 B:1");
}

Law(script_fair, the_head_is_told_the_lease_and_the_others_that_they_need_not_know)
{
    long long pttl = 0;
    fair_queue_of("B:1 C:1");
    check_int(sscanf(fair_ask("B:1"), "0 %lld", &pttl), 1);
    check(pttl > 20000 && pttl <= 30000);
    check(strncmp(fair_ask("C:1"), "0 -1 ", 5) == 0);
    check_has(fair_ask("C:1"), " A:1 1");
    check_int(sscanf(fair_try("D:1"), "0 %lld", &pttl), 1);
    check(pttl > 20000 && pttl <= 30000);
    redis_do(server, "PERSIST n");
    check(strncmp(fair_ask("B:1"), "0 -1 ", 5) == 0);
}

Law(script_fair, a_busy_answer_tells_the_servers_time)
{
    long long seconds = 0, us = 0;
    fair_queue_of("");
    int64_t before = server_now_ms();
    check_int(sscanf(fair_ask("B:1"), "0 %*d %lld %lld A:1 1", &seconds, &us), 2);
    check(seconds * 1000 + us / 1000 >= before && seconds * 1000 + us / 1000 <= server_now_ms());
    check(us < 1000000);
}

Law(script_fair, a_try_and_a_nested_acquire_do_not_queue)
{
    fair_queue_of("");
    check(strncmp(fair_try("B:1"), "0 ", 2) == 0);
    check_str(fair_acquire("B:1 5000 2 1"), "-1");
    check_int(redis_int(server, "DBSIZE"), 1);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_acquire("B:1 5000 2 1"), "-1");
    check_str(fair_try("B:1"), RAW_TAKEN);
}

Law(script_fair, a_lease_that_ran_out_lets_the_head_in)
{
    redisContext *b = ear_open(FAIR_CHANNEL("B:1"));
    fair_queue_of("B:1 C:1");
    redis_do(server, "DEL n");
    check(strncmp(fair_ask("C:1"), "0 -1 ", 5) == 0);
    check_str(fair_ask("B:1"), RAW_TAKEN);
    redisFree(b);
}

Law(script_fair, a_wait_that_is_over_leaves_the_queue_and_the_others_in_their_order)
{
    fair_queue_of("B:1 C:1 D:1");
    check_str(fair_release("C:1"), FAIR_NONE);
    fair_check_queue("B:1 D:1");
    check_int(redis_int(server, "HEXISTS " FAIR_SIGNS " C:1"), 0);
    check_str(fair_release("C:1"), FAIR_NONE);
    check_str(fair_run(HLI_SCRIPT_FAIR_LOCK_RELEASE, "B:1 1 5000 0"),
              FAIR_NONE); /* a nested one stays */
    fair_check_queue("B:1 D:1");
    check_str(fair_release("D:1"), FAIR_NONE);
    check_str(fair_release("B:1"), FAIR_NONE);
    check_int(redis_int(server, "DBSIZE"), 1);
    check_holder("A:1 1");
}

Law(script_fair, a_head_that_leaves_a_free_lock_tells_the_next)
{
    redisContext *c = ear_open(FAIR_CHANNEL("C:1")), *d = ear_open(FAIR_CHANNEL("D:1"));
    fair_queue_of("B:1 C:1 D:1");
    check_str(fair_release("D:1"), FAIR_NONE); /* no head */
    redis_do(server, "DEL n");
    check_str(fair_release("B:1"), FAIR_NONE);
    ear_check(c, FAIR_CHANNEL("C:1"), "0");
    check_str(fair_ask("C:1"), RAW_TAKEN);
    ear_check_end(c, FAIR_CHANNEL("C:1"));
    ear_check_end(d, FAIR_CHANNEL("D:1"));
    redisFree(c);
    redisFree(d);
}

Law(script_fair, a_head_that_leaves_a_held_lock_publishes_nothing)
{
    redisContext *c = ear_open(FAIR_CHANNEL("C:1"));
    fair_queue_of("B:1 C:1");
    check_str(fair_release("B:1"), FAIR_NONE);
    ear_check_end(c, FAIR_CHANNEL("C:1"));
    redisFree(c);
}

Law(script_fair, a_partial_release_and_a_key_in_its_minimum_time_publish_nothing)
{
    redisContext *b = ear_open(FAIR_CHANNEL("B:1"));
    fair_queue_of("B:1");
    check_str(fair_acquire("A:1 5000 3 1"), RAW_HAD);
    check_str(fair_run(HLI_SCRIPT_FAIR_LOCK_RELEASE, "A:1 1 90000 0"), FAIR_SEEN);
    check_holder("A:1 1");
    check(redis_int(server, "PTTL n") > 60000);
    check_str(fair_run(HLI_SCRIPT_FAIR_LOCK_RELEASE, "A:1 0 0 900"), FAIR_SEEN);
    check_holder("A:1 0");
    check(redis_int(server, "PTTL n") <= 900);
    check_str(fair_run(HLI_SCRIPT_FAIR_LOCK_RELEASE, "A:1 0 0 800"), FAIR_SEEN);
    check(strncmp(fair_ask("B:1"), "0 -1", 4) != 0); /* until then */
    ear_check_end(b, FAIR_CHANNEL("B:1"));
    redisFree(b);
}

Law(script_fair, a_hash_that_is_no_lock_is_a_short_error_and_no_field_queues)
{
    for (size_t i = 0; raw_odd_hash(i); i++) {
        int64_t fields = redis_int(server, "HLEN n");
        raw_check_no_lock(fair_ask("B:1"), fields);
        raw_check_no_lock(fair_force(), fields);
        check_int(redis_int(server, "DBSIZE"), 1);
    }
}

Law(script_fair, a_forced_release_tells_the_head)
{
    redisContext *b = ear_open(FAIR_CHANNEL("B:1"));
    check_str(fair_force(), "0");
    fair_queue_of("B:1 C:1");
    check_has(fair_force(), "WRONGTYPE"); /* A is no client of ours */
    redis_do(server, "DEL n");
    redis_do(server, "HSET n " RAW_CLIENT ":1 1");
    check_str(fair_force(), "1");
    ear_check(b, FAIR_CHANNEL("B:1"), "0");
    check_str(fair_force(), "0");
    fair_check_queue("B:1 C:1");
    check_str(fair_ask("B:1"), RAW_TAKEN);
    ear_check_end(b, FAIR_CHANNEL("B:1"));
    redisFree(b);
}

Law(script_fair, bad_arguments_leave_nothing_behind)
{
    static const char *const bad[] = {"u:1 -1 1 0",   "u:1 0 1 0",     "u:1 1e3 1 0",
                                      "u:1 1.5 1 0",  "u:1 x 1 0",     "u:1 100000000001 1 0",
                                      "u:1 1000 0 0", "u:1 1000 -1 0", "u:1 1000 x 0",
                                      "u:1 1000 1 x", "u:1 1000 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *said = fair_acquire(bad[i]);
        check_msg(strncmp(said, "HIRELOCK", 8) == 0, "\"%s\" is answered %s", bad[i], said);
        fair_check_nothing_left();
    }
}

Law(script_fair, a_name_with_a_brace_has_its_keys_in_its_slot)
{
    check_str(
        run_script(HLI_SCRIPT_FAIR_LOCK_ACQUIRE, "{t}n", "PUBLISH NUMSUB 5000 1000 A:1 5000 1 1"),
        RAW_TAKEN);
    run_script(HLI_SCRIPT_FAIR_LOCK_ACQUIRE, "{t}n", "PUBLISH NUMSUB 5000 1000 B:1 5000 1 1");
    check_int(redis_int(server, "LLEN redisson_lock_queue:{t}n"), 1);
    check_int(redis_int(server, "ZCARD redisson_lock_timeout:{t}n"), 1);
    check_int(redis_int(server, "HLEN hirelock_fair:{t}n"), 1);
}

/* The ends: when Redisson's clients pass a head over. */

Law(script_fair, a_waiter_of_ours_moves_its_own_end_on_while_it_asks)
{
    fair_queue_of("B:1 C:1");
    redis_do(server, "ZADD " FAIR_ENDS " 1 B:1 1 C:1");
    fair_ask("C:1");
    fair_check_left("C:1", INT64_C(2) * FAIR_STAND_MS);
    check_int(redis_int(server, "ZSCORE " FAIR_ENDS " B:1"), 1);
    fair_ask("B:1");
    fair_check_left("B:1", INT64_C(2) * FAIR_STAND_MS);
}

/* It may die, and no other client of ours may be in the queue. */
Law(script_fair, a_head_of_ours_has_a_short_end)
{
    fair_queue_of("B:1 C:1");
    int64_t far_ms = server_now_ms() + 900000;
    redis_do(server, "ZADD " FAIR_ENDS " %lld B:1 %lld C:1", (long long)far_ms, (long long)far_ms);
    fair_ask("B:1");
    fair_ask("C:1");
    fair_check_left("B:1", INT64_C(2) * FAIR_STAND_MS);
    check_int(redis_int(server, "ZSCORE " FAIR_ENDS " C:1"), far_ms);
}

/* The work of a turn does not grow with the queue. */
Law(script_fair, a_turn_of_ours_reads_and_writes_no_end_of_another)
{
    char field[16], ends[8192];
    fair_queue_of("B:1");
    for (int i = 1; i <= 200; i++) {
        snprintf(field, sizeof field, "C:%d", i);
        fair_ask(field);
    }
    redis_do(server,
             "ZADD " FAIR_ENDS " 1 B:1"); /* B has waited for long, and so have the others */
    redis_do(server, "CONFIG RESETSTAT");
    snprintf(ends, sizeof ends, "%s", redis_str(server, "ZRANGE " FAIR_ENDS " 1 -1 WITHSCORES"));
    fair_ask("B:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_ask("B:1"), RAW_TAKEN);
    check_str(redis_str(server, "ZRANGE " FAIR_ENDS " 0 -1 WITHSCORES"), ends);
    check_int(redis_calls(server, "zrangebyscore"), 0);
    check_int(redis_calls(server, "zadd"), 1); /* B's own */
}

Law(script_fair, behind_one_of_redissons_our_end_is_far_and_behind_one_of_ours_it_is_next)
{
    fair_queue_of("");
    fair_java_queues("J:1", 330000);
    fair_ask("B:1");
    fair_ask("C:1");
    fair_check_left("B:1", 330000 + FAIR_WAIT_MS);
    check_int(redis_int(server, "ZSCORE " FAIR_ENDS " C:1"),
              redis_int(server, "ZSCORE " FAIR_ENDS " B:1") + 1);
}

Law(script_fair, a_turn_leaves_redissons_waiters_their_ends_if_these_come_behind_its_lease)
{
    fair_queue_of("B:1");
    fair_java_queues("J:1", INT64_C(2) * FAIR_STAND_MS + 300000); /* behind B, by its own wait */
    fair_java_queues("J:2", INT64_C(2) * FAIR_STAND_MS + 600000);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_ask("B:1"), RAW_TAKEN); /* for 30 s */
    fair_check_left("J:1", INT64_C(2) * FAIR_STAND_MS + 300000);
    fair_check_left("J:2", INT64_C(2) * FAIR_STAND_MS + 600000);
}

/* It has waited behind B for long, and its end would come while B has the lock. */
Law(script_fair, a_turn_gives_redissons_next_waiter_its_wait_anew_if_its_end_comes)
{
    fair_queue_of("B:1");
    fair_java_queues("J:1", 20000);
    fair_java_queues("J:2", 320000);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_ask("B:1"), RAW_TAKEN); /* for 30 s */
    fair_check_left("J:1", 30000 + FAIR_WAIT_MS);
    fair_check_left("J:2", 30000 + 2 * FAIR_WAIT_MS);
}

/* As Redisson's do: else each turn would leave 300 s to those behind. */
Law(script_fair, a_turn_behind_one_of_redissons_takes_back_what_it_had_added)
{
    fair_queue_of("");
    fair_java_queues("J:1", 330000);
    fair_ask("B:1");
    fair_java_queues("J:2", 330000 + 2 * FAIR_WAIT_MS);
    redis_do(server, "LPOP " FAIR_QUEUE); /* J:1 had its turn, and has subtracted its wait */
    redis_do(server, "ZREM " FAIR_ENDS " J:1");
    redis_do(server, "ZINCRBY " FAIR_ENDS " -%d B:1", FAIR_WAIT_MS);
    redis_do(server, "ZINCRBY " FAIR_ENDS " -%d J:2", FAIR_WAIT_MS);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_ask("B:1"), RAW_TAKEN);
    fair_check_left("J:2", 330000);
}

Law(script_fair, a_waiter_that_leaves_takes_its_wait_from_the_waiters_behind_alone)
{
    fair_queue_of("");
    fair_java_queues("J:1", 330000);
    fair_ask("B:1");
    fair_java_queues("J:2", 330000 + 2 * FAIR_WAIT_MS);
    fair_release("B:1");
    fair_check_left("J:1", 330000);
    fair_check_left("J:2", 330000 + FAIR_WAIT_MS);
    fair_check_queue("J:1 J:2");
}

/* Else the next one's end would be over when Redisson's subtracts its wait. */
Law(script_fair, a_waiter_that_goes_leaves_what_it_added_to_the_next_of_ours)
{
    fair_queue_of("");
    fair_java_queues("J:1", 330000);
    fair_ask("B:1");
    fair_ask("C:1");
    fair_ask("D:1");
    fair_java_queues("J:2", 330000 + 2 * FAIR_WAIT_MS);
    fair_release("B:1");
    fair_check_left("C:1", 330000 + FAIR_WAIT_MS);
    fair_ask("C:1"); /* its sign keeps it */
    fair_asked("D:1", FAIR_GRACE_MS + 1);
    fair_release("C:1");
    check_has(redis_str(server, "HGET " FAIR_SIGNS " D:1"), ":300000");
    fair_check_left("J:2", 330000 + 2 * FAIR_WAIT_MS);
    fair_release("D:1");
    fair_check_left("J:2", 330000 + FAIR_WAIT_MS);
}

/* It would be dropped between two of its requests. */
Law(script_fair, a_waiter_behind_one_of_redissons_whose_wait_is_over_has_its_own_end)
{
    fair_queue_of("");
    fair_java_queues("J:1", 10);
    fair_ask("B:1");
    check(fair_left("B:1") > FAIR_WAIT_MS + FAIR_STAND_MS);
}

Law(script_fair, a_thousand_waiters_behind_are_all_moved)
{
    char field[16];
    fair_queue_of("B:1");
    for (int i = 1; i <= 1100; i++) {
        snprintf(field, sizeof field, "J:%d", i);
        fair_java_queues(field, 20000);
    }
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_ask("B:1"), RAW_TAKEN); /* for 30 s */
    fair_check_left("J:1", 30000 + FAIR_WAIT_MS);
    fair_check_left("J:500", 30000 + FAIR_WAIT_MS);
    fair_check_left("J:501", 30000 + FAIR_WAIT_MS);
    fair_check_left("J:1100", 30000 + FAIR_WAIT_MS);
    fair_check_queue(redis_str(server, "LRANGE " FAIR_QUEUE " 0 -1"));
}

/* Memory is full: what needs more of it is refused, and nothing else. */
Law(script_fair, a_full_server_lets_go_and_lets_leave)
{
    redisContext *b = ear_open(FAIR_CHANNEL("B:1"));
    fair_queue_of("B:1 C:1");
    redis_do(server, "CONFIG SET maxmemory 1");
    check_has(fair_ask("D:1"), "OOM");
    check(strncmp(fair_ask("C:1"), "0 ", 2) == 0); /* it still waits */
    fair_check_queue("B:1 C:1");
    check_str(fair_release("C:1"), FAIR_NONE);
    check_str(fair_release("A:1"), FAIR_SEEN);
    ear_check(b, FAIR_CHANNEL("B:1"), "0");
    check_has(fair_ask("B:1"), "OOM");
    fair_check_queue("B:1");
    redis_do(server, "CONFIG SET maxmemory 0");
    check_str(fair_ask("B:1"), RAW_TAKEN);
    redis_do(server, "CONFIG SET maxmemory 1");
    check_str(fair_release("B:1"), FAIR_SEEN);
    fair_check_nothing_left();
    redisFree(b);
}

Law(script_fair, a_key_that_is_no_queue_is_an_error_and_stays_as_it_is)
{
    redis_do(server, "SET " FAIR_QUEUE " stranger");
    check_has(fair_ask("A:1"), "WRONGTYPE");
    check_int(redis_int(server, "EXISTS n"), 0);
    redis_do(server, "HSET n A:1 1");
    check_str(fair_release("A:1"), FAIR_SEEN); /* and is no reason to hold it */
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(fair_release("A:1"), FAIR_NONE);
    check_str(redis_str(server, "GET " FAIR_QUEUE), "stranger");
    redis_do(server, "DEL " FAIR_QUEUE);
    redis_do(server, "SET n stranger");
    check_has(fair_ask("A:1"), "WRONGTYPE");
    check_has(fair_release("A:1"), "WRONGTYPE");
    check_str(redis_str(server, "GET n"), "stranger");
}

Law(script_fair, signs_that_are_none_are_done_without)
{
    fair_queue_of("B:1");
    redis_do(server, "DEL " FAIR_SIGNS);
    redis_do(server, "SET " FAIR_SIGNS " stranger");
    check(strncmp(fair_ask("B:1"), "0 ", 2) == 0);
    check(strncmp(fair_ask("C:1"), "0 ", 2) == 0);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check(strncmp(fair_ask("C:1"), "0 ", 2) == 0);
    check_str(fair_ask("B:1"), RAW_TAKEN);
    fair_check_queue("C:1");
}

Law(script_fair, a_release_that_may_not_publish_is_one)
{
    fair_queue_of("B:1");
    redis_do(server, "ACL SETUSER hltest -publish");
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_ask("B:1"), RAW_TAKEN);
}

Law(script_fair, a_client_that_may_not_queue_leaves_nothing_behind)
{
    fair_queue_of("");
    redis_do(server, "ACL SETUSER hltest -rpush");
    check_has(fair_ask("B:1"), "script");
    check_int(redis_int(server, "DBSIZE"), 1);
    check_str(fair_release("A:1"), FAIR_SEEN);
    redis_do(server, "ACL SETUSER hltest +rpush -pexpire");
    check_has(fair_ask("B:1"), "script");
    fair_check_nothing_left();
}
