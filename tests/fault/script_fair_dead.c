/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fair lock's scripts, called raw: which waiters are taken for dead. */

#include "script_fair.h"

#define HEARS(field) ear_open(FAIR_CHANNEL(field))

Law(script_fair_dead, a_head_without_a_listener_is_passed_over_by_the_release)
{
    redisContext *c = HEARS("C:1");
    fair_queue_of("B:1 C:1");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    check_str(fair_release("A:1"), FAIR_SEEN);
    ear_check(c, FAIR_CHANNEL("C:1"), "0");
    fair_check_queue("C:1");
    check_str(fair_ask("C:1"), RAW_TAKEN);
    redisFree(c);
}

Law(script_fair_dead, the_dead_of_a_row_go_together)
{
    redisContext *d = HEARS("D:1");
    fair_queue_of("B:1 B:2 C:1 D:1 E:1");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    fair_asked("B:2", FAIR_GRACE_MS + 1);
    fair_asked("C:1", FAIR_GRACE_MS + 1);
    fair_asked("E:1", FAIR_GRACE_MS + 1);
    check_str(fair_release("A:1"), FAIR_SEEN);
    ear_check(d, FAIR_CHANNEL("D:1"), "0");
    fair_check_queue("D:1");
    redisFree(d);
}

Law(script_fair_dead, a_waiter_that_has_just_asked_is_spared_for_a_known_time)
{
    long long spared = 0;
    redisContext *c = HEARS("C:1");
    fair_queue_of("B:1 C:1 D:1");
    check_str(fair_release("A:1"), FAIR_SEEN); /* it may not have subscribed yet */
    fair_check_queue("B:1 C:1 D:1");
    check_int(sscanf(fair_ask("C:1"), "0 %lld", &spared), 1);
    check(spared > 0 && spared <= FAIR_GRACE_MS);
    check(strncmp(fair_ask("D:1"), "0 -1 ", 5) == 0); /* for C lives */
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    check_str(fair_ask("C:1"), RAW_TAKEN);
    fair_check_queue("D:1");
    redisFree(c);
}

Law(script_fair_dead, a_newcomer_drops_the_dead_and_takes_a_free_lock)
{
    fair_queue_of("B:1 C:1");
    redis_do(server, "DEL n");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    fair_asked("C:1", FAIR_GRACE_MS + 1);
    check_str(fair_try("D:1"), RAW_TAKEN);
    check_int(redis_int(server, "DBSIZE"), 1);
}

Law(script_fair_dead, a_try_between_two_dead_tells_the_living_head)
{
    redisContext *c = HEARS("C:1");
    fair_queue_of("B:1 C:1 D:1");
    redis_do(server, "DEL n");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    check_has(fair_try("E:1"), " C:1 0");
    ear_check(c, FAIR_CHANNEL("C:1"), "0");
    redisFree(c);
}

Law(script_fair_dead, a_listener_that_does_not_ask_is_passed_over_in_time)
{
    redisContext *b = HEARS("B:1"), *c = HEARS("C:1");
    fair_queue_of("B:1 C:1");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check(strncmp(fair_ask("C:1"), "0 -1 ", 5) == 0);
    fair_asked("B:1", FAIR_STAND_MS + 1);
    check_str(fair_ask("C:1"), RAW_TAKEN);
    redisFree(b);
    redisFree(c);
}

Law(script_fair_dead, a_place_stands_as_long_as_its_owner_said)
{
    redisContext *b = HEARS("B:1");
    fair_queue_of("B:1 C:1");
    redis_do(server, "HSET " FAIR_SIGNS " B:1 %lld:60000", (long long)(server_now_ms() - 30000));
    check_str(fair_release("A:1"), FAIR_SEEN);
    check(strncmp(fair_ask("C:1"), "0 ", 2) == 0);
    fair_check_queue("B:1 C:1");
    redisFree(b);
}

Law(script_fair_dead, a_held_locks_dead_waiters_are_dropped_by_any_waiter_that_asks_again)
{
    fair_queue_of("B:1 C:1 D:1");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    fair_asked("D:1", FAIR_GRACE_MS + 1);
    long long pttl = 0;
    check_int(sscanf(fair_ask("C:1"), "0 %lld", &pttl), 1);
    check(pttl > 20000); /* it is the head now */
    fair_check_queue("C:1");
    check_holder("A:1 1");
}

Law(script_fair_dead, a_held_locks_queue_is_not_searched_by_each_request)
{
    fair_queue_of("B:1 C:1");
    fair_ask("C:1");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    fair_ask_at_once("C:1");
    fair_check_queue("B:1 C:1");
    fair_ask("C:1");
    fair_check_queue("C:1");
}

/* Nor is the head of a free lock told by each. */
Law(script_fair_dead, a_free_locks_head_is_told_again_now_and_then)
{
    redisContext *b = HEARS("B:1");
    fair_queue_of("B:1 C:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    ear_check(b, FAIR_CHANNEL("B:1"), "0");
    check(strncmp(fair_ask("C:1"), "0 -1 ", 5) == 0);
    ear_check(b, FAIR_CHANNEL("B:1"), "0");
    /* Who comes right after that looks when the head would be dead. */
    char again[16];
    int length = snprintf(again, sizeof again, "0 %d ", FAIR_GRACE_MS);
    check(strncmp(fair_ask_at_once("C:1"), again, (size_t)length) == 0);
    check(strncmp(fair_ask_at_once("D:1"), again, (size_t)length) == 0);
    ear_check_end(b, FAIR_CHANNEL("B:1"));
    redisFree(b);
}

/* These fields have asked, and died so long ago. */
static void row_of_dead(int count, int64_t ms_ago)
{
    char field[16];
    for (int i = 1; i <= count; i++) {
        snprintf(field, sizeof field, "B:%d", i);
        redis_do(server, "RPUSH " FAIR_QUEUE " %s", field);
        redis_do(server, "ZADD " FAIR_ENDS " %lld %s", (long long)server_now_ms() + 10000, field);
        fair_asked(field, ms_ago);
    }
}

Law(script_fair_dead, all_of_a_long_row_go_in_one_look_and_the_first_that_lives_is_told)
{
    redisContext *c = HEARS("C:1");
    fair_queue_of("");
    row_of_dead(200, FAIR_GRACE_MS + 1);
    fair_ask_at_once("C:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_int(fair_again_ms, 0);
    ear_check(c, FAIR_CHANNEL("C:1"), "0");
    fair_check_queue("C:1");
    redisFree(c);
}

Law(script_fair_dead, who_stands_behind_a_long_row_is_told_when_all_of_it_are_over)
{
    long long spared = 0;
    redisContext *c = HEARS("C:1");
    fair_queue_of("");
    row_of_dead(200, 0);
    fair_asked("B:1", FAIR_GRACE_MS + 1); /* the first of them is, the last is not */
    fair_ask_at_once("C:1");
    redis_do(server, "DEL n");
    check_int(sscanf(fair_ask("C:1"), "0 %lld", &spared), 1);
    check(spared > 0 && spared <= FAIR_GRACE_MS);
    check_int(redis_int(server, "LLEN " FAIR_QUEUE), 200);
    redisFree(c);
}

/* The work of one look has a bound, and the next goes on at once. */
Law(script_fair_dead, an_endless_row_goes_a_thousand_at_a_time)
{
    fair_queue_of("");
    row_of_dead(1500, FAIR_GRACE_MS + 1);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_int(redis_int(server, "LLEN " FAIR_QUEUE), 1500 - 1024);
    check_str(fair_run(HLI_SCRIPT_FAIR_LOCK_ACQUIRE, "C:1 30000 1 1"), RAW_TAKEN);
    check_int(redis_int(server, "DBSIZE"), 1);
}

/* Redisson's waiters: played as their scripts leave the keys. */

Law(script_fair_dead, a_waiter_of_redissons_is_told_and_is_never_passed_over_while_it_listens)
{
    redisContext *java = HEARS("J:1");
    fair_queue_of("");
    fair_java_queues("J:1", 330000);
    fair_ask("B:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    ear_check(java, FAIR_CHANNEL("J:1"), "0");
    check(strncmp(fair_ask("B:1"), "0 -1 ", 5) == 0);
    ear_check(java, FAIR_CHANNEL("J:1"), "0"); /* once more, should it have been lost */
    fair_check_queue("J:1 B:1");
    check_int(redis_int(server, "HEXISTS " FAIR_SIGNS " J:1"), 0);
    redisFree(java);
}

Law(script_fair_dead, a_waiter_of_redissons_that_does_not_listen_yet_is_suspected_first)
{
    long long spared = 0;
    fair_queue_of("");
    fair_java_queues("J:1", 330000);
    fair_ask("B:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    fair_check_queue("J:1 B:1");
    check_int(redis_int(server, "HEXISTS " FAIR_SIGNS " J:1"), 1);
    check_int(sscanf(fair_ask("B:1"), "0 %lld", &spared), 1);
    check(spared > 0 && spared <= FAIR_GRACE_MS);
    redisContext *java = HEARS("J:1");
    check(strncmp(fair_ask("B:1"), "0 -1 ", 5) == 0);
    ear_check(java, FAIR_CHANNEL("J:1"), "0");
    check_int(redis_int(server, "HEXISTS " FAIR_SIGNS " J:1"), 0); /* it is cleared */
    redisFree(java);
}

Law(script_fair_dead, a_waiter_of_redissons_that_vanished_is_passed_over)
{
    fair_queue_of("");
    fair_java_queues("J:1", 330000);
    fair_java_queues("J:2", 630000);
    fair_ask("B:1");
    check_str(fair_release("A:1"), FAIR_SEEN); /* suspects both at once */
    fair_suspected("J:1", FAIR_GRACE_MS + 1);
    fair_suspected("J:2", FAIR_GRACE_MS + 1);
    check_str(fair_ask("B:1"), RAW_TAKEN);
    check_str(fair_release("B:1"), FAIR_SEEN);
    fair_check_nothing_left();
}

/* No process of ours is in the queue, so the releaser is asked to look again. */
Law(script_fair_dead, a_release_before_dead_waiters_of_redissons_is_repeated_and_serves_the_living)
{
    char field[16];
    redisContext *java = HEARS("J:101");
    fair_queue_of("");
    for (int i = 1; i <= 101; i++) {
        snprintf(field, sizeof field, "J:%d", i);
        fair_java_queues(field, 330000);
    }
    check_str(fair_release("A:1"), FAIR_SEEN);
    check(fair_again_ms > 0 && fair_again_ms <= FAIR_GRACE_MS);
    for (int i = 1; i <= 100; i++) {
        snprintf(field, sizeof field, "J:%d", i);
        check_int(redis_int(server, "HEXISTS " FAIR_SIGNS " %s", field), 1); /* all at once */
        fair_suspected(field, FAIR_GRACE_MS + 1);
    }
    check_str(fair_release("A:1"), FAIR_NONE);
    check_int(fair_again_ms, 0);
    ear_check(java, FAIR_CHANNEL("J:101"), "0");
    fair_check_queue("J:101");
    redisFree(java);
}

/* Its process stands still, so it does not come; Redisson's own rule. */
Law(script_fair_dead, a_waiter_of_redissons_whose_end_has_come_does_not_keep_a_free_lock)
{
    redisContext *java = HEARS("J:1");
    fair_queue_of("");
    fair_java_queues("J:1", -1);
    fair_ask("B:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    check_str(fair_ask("B:1"), RAW_TAKEN);
    redisFree(java);
}

/* Redisson itself would drop it, after a wait of five minutes. */
Law(script_fair_dead, the_end_of_a_living_head_is_moved_on_while_the_lock_is_held)
{
    redisContext *java = HEARS("J:1");
    fair_queue_of("");
    fair_java_queues("J:1", FAIR_STAND_MS / 2);
    fair_ask("B:1");
    fair_ask("B:1");
    fair_check_left("J:1", FAIR_WAIT_MS);
    fair_check_left("B:1", INT64_C(2) * FAIR_WAIT_MS + 3 * FAIR_STAND_MS / 2);
    redisFree(java);
}

/* Its connection may be on its way back, and Redisson does not queue anew. */
Law(script_fair_dead,
    a_waiter_of_redissons_that_nobody_hears_keeps_its_place_while_the_lock_is_held)
{
    fair_queue_of("");
    fair_java_queues("J:1", 400000);
    fair_ask("B:1");
    fair_suspected("J:1", FAIR_GRACE_MS + 1);
    fair_ask("B:1");
    fair_check_queue("J:1 B:1");
    redisContext *java = HEARS("J:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    ear_check(java, FAIR_CHANNEL("J:1"), "0"); /* in time */
    redisFree(java);
}

/* So one that is moved on by a look is not over before the next. */
Law(script_fair_dead, a_frequent_asker_looks_often_and_misses_no_end)
{
    redisContext *java = HEARS("J:1");
    fair_queue_of("");
    fair_java_queues("J:1", 400000);
    fair_ask("B:1");
    for (int i = 0; i < 10; i++) {
        int64_t before_ms = server_now_ms();
        redis_do(server, "HSET " FAIR_SIGNS " look %lld", (long long)before_ms - 250);
        run_script(HLI_SCRIPT_FAIR_LOCK_ACQUIRE, "n",
                   "PUBLISH NUMSUB 500 1000 B:1 30000 1 1"); /* its place stands for 500 */
        check(redis_int(server, "HGET " FAIR_SIGNS " look") >= before_ms);
    }
    redisFree(java);
}

/* By the ends, as Redisson does; of our waiters only those that do not ask. */
Law(script_fair_dead, a_client_that_may_not_count_listeners_goes_by_the_ends)
{
    fair_queue_of("B:1 C:1");
    fair_java_queues("J:1", 400000);
    redis_deny(server, "hltest", "pubsub|numsub");
    fair_asked("B:1", FAIR_GRACE_MS + 1);
    check_str(fair_release("A:1"), FAIR_SEEN);
    check(strncmp(fair_ask("C:1"), "0 ", 2) == 0);
    fair_check_queue("B:1 C:1 J:1");
    fair_asked("B:1", FAIR_STAND_MS + 1);
    check_str(fair_ask("C:1"), RAW_TAKEN);
    fair_ask("D:1");
    check_str(fair_release("C:1"), FAIR_SEEN);
    check(strncmp(fair_ask("D:1"), "0 ", 2) == 0);
    redis_do(server, "ZADD " FAIR_ENDS " 1 J:1");
    check_str(fair_ask("D:1"), RAW_TAKEN);
}

Law(script_fair_dead, a_member_without_an_end_is_dropped_as_any_other)
{
    fair_queue_of("");
    redis_do(server, "RPUSH " FAIR_QUEUE " J:1");
    fair_ask("B:1");
    check_str(fair_release("A:1"), FAIR_SEEN);
    fair_suspected("J:1", FAIR_GRACE_MS + 1);
    check_str(fair_ask("B:1"), RAW_TAKEN);
    check_int(redis_int(server, "DBSIZE"), 1);
}
