/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts, called raw: the queue, and the word about waiters. */

#include "script_raw.h"

Law(script_queue, a_busy_answer_tells_the_holder_the_lease_and_the_time)
{
    long long now, pttl, seconds, microseconds;
    int read = 0;
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(acquire("A:1 5000 2"), RAW_HAD);
    redisReply *time = redis_command(server, "TIME");
    now = strtoll(time->element[0]->str, NULL, 10);
    freeReplyObject(time);
    const char *said = acquire("B:1 5000 1");
    check(sscanf(said, "0 %lld %lld %lld A:1 2%n", &pttl, &seconds, &microseconds, &read) == 3);
    check_int(read, strlen(said));
    check(pttl > 0 && pttl <= 5000);
    check(seconds >= now && seconds <= now + slow_ms(5000) / 1000);
    check(microseconds >= 0 && microseconds < 1000000);
    check(strtoll(redis_str(server, "ZSCORE " RAW_QUEUE " B:1"), NULL, 10) ==
          seconds * 1000000 + microseconds);
}

Law(script_queue, a_waiter_that_asks_again_keeps_its_place)
{
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    queue_up("B:1");
    char first[64];
    snprintf(first, sizeof first, "%s", redis_str(server, "ZSCORE " RAW_QUEUE " B:1"));
    redis_do(server, "PEXPIRE " RAW_QUEUE " 10000");
    queue_up("C:1");
    queue_up("B:1");
    check_str(redis_str(server, "ZSCORE " RAW_QUEUE " B:1"), first);
    check_str(redis_str(server, "ZRANGE " RAW_QUEUE " 0 -1"), "B:1 C:1");
    int64_t left = redis_int(server, "PTTL " RAW_QUEUE); /* it stands while a waiter asks */
    check(left > 10000 && left <= RAW_QUEUE_MS);
}

Law(script_queue, a_try_and_a_nested_acquire_do_not_queue)
{
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    check(strncmp(acquire_unqueued("B:1 5000 1"), "0 ", 2) == 0);
    check_str(acquire("B:1 5000 2"), "-1");
    check_int(redis_int(server, "EXISTS " RAW_QUEUE), 0);
}

/* By the first in the queue, by a try, which does not queue, and by a waiter that asks again. */
Law(script_queue, a_busy_answer_tells_the_holder_of_a_waiter)
{
    redisContext *holder = ear_open("hirelock:A");
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    queue_up("B:1");
    ear_check(holder, "hirelock:A", "w n");
    queue_up("C:1"); /* the holder knows of B */
    ear_check_end(holder, "hirelock:A");
    queue_up("C:1");
    ear_check(holder, "hirelock:A", "w n");
    acquire_unqueued("D:1 5000 1");
    ear_check(holder, "hirelock:A", "w n");
    redis_do(server, "DEL " RAW_QUEUE);
    redis_do(server, "SET " RAW_QUEUE " stranger"); /* the place is refused */
    queue_up("E:1");
    ear_check(holder, "hirelock:A", "w n");
    ear_check_end(holder, "hirelock:A");
    redisFree(holder);
}

Law(script_queue, an_acquire_without_a_key_forgets_the_queue)
{
    queue_of("B:1 C:1");
    check_str(acquire("A:1 5000 2"), RAW_HAD); /* the holder does not */
    check_int(queue_length(), 2);
    redis_do(server, "DEL n");
    check_str(acquire("D:1 5000 2"), "-1"); /* nor does who takes nothing */
    check_int(queue_length(), 2);
    check_str(acquire("D:1 5000 1"), RAW_TAKEN);
    check_int(redis_int(server, "EXISTS " RAW_QUEUE), 0);
}

/* Memory is full: what needs more of it is refused, and nothing else. */
Law(script_queue, a_full_server_answers_busy_and_grants)
{
    redisContext *b = ear_open("hirelock:B");
    queue_of("B:1");
    redis_do(server, "CONFIG SET maxmemory 1");
    check(strncmp(acquire("C:1 5000 1"), "0 ", 2) == 0);
    check_str(redis_str(server, "ZRANGE " RAW_QUEUE " 0 -1"), "B:1");
    check_str(release("A:1 0 0 0"), "1 B:1 -1");
    check_grant(b, "B:1", 0);
    check_holder("B:1 1");
    check_str(release("B:1 0 0 0"), RAW_DONE);
    check_int(redis_int(server, "DBSIZE"), 0);
    redisFree(b);
}

Law(script_queue, a_key_that_is_no_queue_is_left_alone)
{
    redisContext *r = ear_open(RAW_REDISSON " " RAW_OWN);
    redis_do(server, "SET " RAW_QUEUE " stranger");
    check_str(acquire("A:1 5000 1"), RAW_TAKEN); /* and is forgotten, as any other */
    check_int(redis_int(server, "EXISTS " RAW_QUEUE), 0);
    redis_do(server, "SET " RAW_QUEUE " stranger");
    check(strncmp(acquire("B:1 5000 1"), "0 ", 2) == 0);
    check_str(keep("A:1 5000"), "1 1"); /* who cannot be counted counts */
    check_str(release("B:1 0 0 0"), "0");
    check_str(release("A:1 0 0 0"), RAW_UNSEEN);
    ear_check(r, RAW_REDISSON, "0");
    check_str(redis_str(server, "GET " RAW_QUEUE), "stranger");
    redisFree(r);
}

Law(script_queue, a_wait_that_is_over_leaves_the_queue)
{
    queue_of("B:1 B:2");
    check_str(release("B:1 1 5000 0"), "0"); /* a nested release has no place to leave */
    check_int(queue_length(), 2);
    check_str(release("B:1 0 0 0"), "0");
    check_str(redis_str(server, "ZRANGE " RAW_QUEUE " 0 -1"), "B:2");
    check_str(release("B:1 0 0 0"), "0");
    check_holder("A:1 1");
}

Law(script_queue, keep_extends_and_never_shortens)
{
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(keep("A:1 9000"), "1 0");
    check(redis_int(server, "PTTL n") > 6000);
    check_str(keep("A:1 1000"), "1 0");
    check(redis_int(server, "PTTL n") > 6000);
    redis_do(server, "PERSIST n");
    check_str(keep("A:1 4000"), "1 0");
    int64_t left = redis_int(server, "PTTL n");
    check(left > 2000 && left <= 4000);
    check_str(acquire("A:1 4000 3"), RAW_HAD);
    check_str(keep("A:1 4000"), "3 0");
}

Law(script_queue, keep_counts_the_queue_and_redisson)
{
    redisContext *ours = ear_open(RAW_REDISSON " " RAW_OWN), *java = ear_open(RAW_REDISSON);
    queue_of("B:1 C:1");
    check_str(keep("A:1 5000"), "1 3");
    redisFree(java);
    check(redis_wait_subscribers(server, RAW_REDISSON, 1, 5000));
    check_str(keep("A:1 5000"), "1 2");
    redis_do(server, "DEL " RAW_QUEUE);
    check_str(keep("A:1 5000"), "1 0");
    redisFree(ours);
    redisContext *own_only = ear_open(RAW_OWN); /* more of ours than of all: not below 0 */
    check_str(keep("A:1 5000"), "1 0");
    redisFree(own_only);
}

Law(script_queue, keep_reports_a_lost_key_and_creates_nothing)
{
    check_str(keep("A:1 5000"), "-1 0");
    check_int(redis_int(server, "DBSIZE"), 0);
    queue_of("C:1");
    check_str(keep("B:1 60000"), "-1 0"); /* another's */
    check(redis_int(server, "PTTL n") <= 5000);
    check_str(release("A:1 0 0 900"), RAW_UNSEEN);
    check_str(keep("A:1 60000"), "-1 0"); /* it rests */
    check(redis_int(server, "PTTL n") <= 900);
    redis_do(server, "HSET n A:1 odd");
    check_str(keep("A:1 60000"), "-1 0");
    check(redis_int(server, "PTTL n") <= 900);
}
