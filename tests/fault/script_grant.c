/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts, called raw: which waiter a release grants the lock to, and its messages. */

#include "script_raw.h"
#include "support/kinds.h"

Law(script_grant, a_grant_goes_to_the_first_waiter_that_listens)
{
    redisContext *b = ear_open("hirelock:B"), *c = ear_open("hirelock:C");
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    queue_up("B:1");
    queue_up("C:1");
    check_str(release("A:1 0 0 0"), "1 B:1 -1");
    check_grant(b, "B:1", 1);
    check_holder("B:1 1");
    int64_t left = redis_int(server, "PTTL n");
    check(left > RAW_CLAIM_MS / 2 && left <= RAW_CLAIM_MS);
    check_str(release("A:1 0 0 0"), "0"); /* a second copy takes nothing from B */
    check_holder("B:1 1");
    check_str(release("B:1 0 0 0"), "1 C:1 -1");
    check_grant(c, "C:1", 0);
    check_str(release("C:1 0 0 0"), RAW_DONE);
    check_int(redis_int(server, "DBSIZE"), 0);
    ear_check_end(b, "hirelock:B"); /* each was told once */
    ear_check_end(c, "hirelock:C");
    redisFree(b);
    redisFree(c);
}

/* As the server tells it: what stood before is gone, the field and its expiry stand, and then. */
Law(script_grant, a_grant_is_written_before_it_is_told)
{
    static const char *const order[] = {"\"DEL\" \"n\"", "\"HSET\" \"n\" \"B:1\"",
                                        "\"PEXPIRE\" \"n\" \"4000\"", "\"PUBLISH\" \"hirelock:B\""};
    redisContext *b = ear_open("hirelock:B");
    redisContext *monitor = redis_link_connect(redis_server_socket(server));
    redisReply *reply = NULL;
    queue_of("B:1");
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    check_str(release("A:1 0 0 0"), "1 B:1 -1");
    for (size_t step = 0; step < sizeof order / sizeof order[0];) {
        must(redisGetReply(monitor, (void **)&reply) == REDIS_OK);
        for (size_t later = step + 1; later < sizeof order / sizeof order[0]; later++)
            check_msg(!strstr(reply->str, order[later]), "%s before %s", reply->str, order[step]);
        step += strstr(reply->str, order[step]) != NULL;
        freeReplyObject(reply);
    }
    redisFree(monitor);
    redisFree(b);
}

Law(script_grant, a_grant_stands_that_may_not_be_told)
{
    redisContext *b = ear_open("hirelock:B");
    queue_of("B:1");
    redis_do(server, "ACL SETUSER hltest -publish");
    check_str(release("A:1 0 0 0"), "1 B:1 -1");
    check_holder("B:1 1"); /* B finds it when it polls */
    check(strncmp(acquire("B:1 9000 1"), "1 ", 2) == 0);
    check(redis_int(server, "PTTL n") > RAW_CLAIM_MS);
    redisFree(b);
}

/* A grant whose field may not be written is none: the lock is free, and waiters are told to ask. */
static void check_not_granted(const char *denied)
{
    redisContext *b = ear_open("hirelock:B " RAW_REDISSON);
    redis_do(server, "ACL SETUSER hltest +@all");
    queue_of("B:1 C:1");
    redis_do(server, "ACL SETUSER hltest -%s", denied);
    check_str(release("A:1 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "EXISTS n"), 0);
    ear_check(b, RAW_REDISSON, "0");
    ear_check_end(b, RAW_REDISSON);
    redisFree(b);
}

Law(script_grant, a_grant_that_may_have_no_expiry_is_none)
{
    check_not_granted("pexpire");
}

Law(script_grant, a_grant_that_may_not_be_written_is_none)
{
    check_not_granted("hset");
}

Law(script_grant, the_releasers_own_and_dead_clients_and_odd_entries_are_passed_over)
{
    redisContext *a = ear_open("hirelock:A"), *c = ear_open("hirelock:C");
    queue_of("A:2 B:1 odd C:1 D:1");
    redis_do(server,
             "ZREM " RAW_QUEUE " :"); /* a client without a name would be one that listens */
    check_str(release("A:1 0 0 0"), "1 C:1 -1");
    check_grant(c, "C:1", 1);
    check_str(redis_str(server, "ZRANGE " RAW_QUEUE " 0 -1"), "D:1");
    ear_check_end(a, "hirelock:A");
    redisFree(a);
    redisFree(c);
}

static void queue_of_dead_and(int dead, const char *living)
{
    char fields[256];
    int at = 0;
    for (int i = 0; i < dead; i++)
        at += snprintf(fields + at, sizeof fields - (size_t)at, "X%d:1 ", i);
    snprintf(fields + at, sizeof fields - (size_t)at, "%s", living);
    queue_of(fields);
}

Law(script_grant, the_sixteenth_is_looked_at)
{
    redisContext *c = ear_open("hirelock:C");
    queue_of_dead_and(15, "C:1");
    check_str(release("A:1 0 0 0"), "1 C:1 -1");
    check_int(queue_length(), 0);
    redisFree(c);
}

Law(script_grant, the_seventeenth_waits_for_the_next_release)
{
    redisContext *c = ear_open("hirelock:C " RAW_REDISSON);
    queue_of_dead_and(20, "C:1");
    check_str(release("A:1 0 0 0"), RAW_UNSEEN);
    ear_check(c, RAW_REDISSON, "0"); /* the waiters are told to ask, and forget the queue */
    check_int(redis_int(server, "EXISTS n"), 0);
    check_int(queue_length(), 5);
    redisFree(c);
}

/* This waiter's last request is a sign of life for so long from now. */
static void sign_of(const char *field, int ms)
{
    redis_do(server, "ZADD " RAW_QUEUE " %lld @%s",
             (long long)((server_now_ms() + ms) * 1000 + INT64_C(4000000000000000)), field);
}

Law(script_grant, a_grant_goes_to_a_waiter_that_no_message_reaches_while_its_sign_of_life_stands)
{
    queue_of("B:1 C:1 D:1");
    sign_of("B:1", 60000);
    sign_of("C:1", -1);
    check_str(release("A:1 0 0 0"), "1 B:1 -1");
    check_holder("B:1 1");
    check_str(redis_str(server, "ZRANGE " RAW_QUEUE " 0 -1"), "C:1 D:1 @C:1");
    check_str(release("B:1 0 0 0"), RAW_DONE);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_grant, a_waiter_that_leaves_takes_its_sign_of_life_along)
{
    queue_of("B:1");
    sign_of("B:1", 60000);
    check_str(release("B:1 0 0 0"), "0");
    check_int(queue_length(), 0);
}

Law(script_grant, a_queue_of_dead_clients_ends_in_a_plain_release)
{
    redisContext *r = ear_open(RAW_REDISSON " " RAW_OWN);
    queue_of("B:1 C:1");
    check_str(release("A:1 0 0 0"), RAW_UNSEEN);
    ear_check(r, RAW_REDISSON, "0");
    check_int(redis_int(server, "DBSIZE"), 0);
    redisFree(r);
}

Law(script_grant, a_partial_release_and_a_key_in_its_minimum_time_are_not_granted)
{
    redisContext *b = ear_open("hirelock:B");
    queue_of("B:1");
    check_str(acquire("A:1 5000 2"), RAW_HAD);
    check_str(release("A:1 1 5000 0"), RAW_UNSEEN);
    check_holder("A:1 1");
    check_str(release("A:1 0 0 900"), RAW_UNSEEN);
    check_holder("A:1 0");
    check_int(queue_length(), 1);
    ear_check_end(b, "hirelock:B");
    redisFree(b);
}

/* One ear for a client that waits, one for a Redisson. */
Law(script_grant, a_yielding_release_frees_the_lock_for_redisson)
{
    redisContext *b = ear_open("hirelock:B " RAW_REDISSON " " RAW_OWN);
    redisContext *java = ear_open(RAW_REDISSON);
    queue_of("B:1");
    check_str(release_courteously("A:1 0 0 0"), "1  1");
    ear_check(b, RAW_OWN, "y"); /* stands back, before it is told that it is free */
    ear_check(b, RAW_REDISSON, "0");
    ear_check(java, RAW_REDISSON, "0");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_int(queue_length(), 1);
    redisFree(b);
    redisFree(java);
}

Law(script_grant, a_release_that_need_not_yield_grants_and_does_not_look_for_redisson)
{
    redisContext *b = ear_open("hirelock:B " RAW_REDISSON " " RAW_OWN);
    redisContext *java[] = {ear_open(RAW_REDISSON), ear_open(RAW_REDISSON)};
    queue_of("B:1 C:1");
    check_str(release("A:1 0 0 0"), "1 B:1 -1");
    check_grant(b, "B:1", 1);
    ear_check_end(b, RAW_REDISSON);
    for (int i = 0; i < 2; i++) {
        ear_check(java[i], RAW_REDISSON, "end");
        redisFree(java[i]);
    }
    redisFree(b);
}

Law(script_grant, a_yielding_release_without_redisson_grants)
{
    redisContext *b = ear_open("hirelock:B " RAW_REDISSON " " RAW_OWN);
    queue_of("B:1");
    check_str(release_courteously("A:1 0 0 0"), "1 B:1 0");
    check_grant(b, "B:1", 0);
    redisFree(b);
}

Law(script_grant, a_yielding_release_sees_redisson_without_a_queue_beside_it)
{
    redisContext *java = ear_open(RAW_REDISSON), *ours = ear_open(RAW_REDISSON " " RAW_OWN);
    check_str(acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(release_courteously("A:1 0 0 0"), "1  1");
    ear_check(java, RAW_REDISSON, "0");
    check_str(acquire("A:2 5000 1"), RAW_TAKEN);
    check_str(release("A:2 0 0 0"), RAW_UNSEEN); /* not looked at */
    ear_check(java, RAW_REDISSON, "0");
    for (int i = 0; i < 2; i++)
        ear_check(ours, RAW_REDISSON, "0"); /* no waiter stood in the queue: no `y` */
    redisFree(java);
    redisFree(ours);
}

Law(script_grant, a_client_that_may_not_count_listeners_releases_plainly)
{
    redisContext *b = ear_open("hirelock:B " RAW_REDISSON " " RAW_OWN);
    queue_of("B:1");
    redis_deny(server, "hltest", "pubsub|numsub");
    check_str(keep("A:1 5000"), "1 1");
    check_str(release_courteously("A:1 0 0 0"), RAW_DONE);
    ear_check(b, RAW_REDISSON, "0");
    check_int(redis_int(server, "EXISTS n"), 0);
    redisFree(b);
}

Law(script_grant, a_wait_that_is_over_and_was_granted_passes_it_on)
{
    redisContext *b = ear_open("hirelock:B"), *c = ear_open("hirelock:C");
    queue_of("B:1 C:1");
    check_str(release("A:1 0 0 0"), "1 B:1 -1");
    check_str(release("B:1 0 0 0"), "1 C:1 -1");
    check_grant(c, "C:1", 0);
    check_holder("C:1 1");
    redisFree(b);
    redisFree(c);
}

/* Released when the other one has asked, and once more as it listens by then, and sleeps. */
static void pass_by_grant(hl_lock *mine, hl_lock *others, hl_client *waiter)
{
    expect_ok(hl_lock_acquire(mine, NULL));
    int64_t asked = redis_evalsha_calls(server);
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = slow_ms(10000)));
    while (redis_evalsha_calls(server) < asked + 2)
        deadline_nap();
    expect_ok(hl_client_ping(waiter, -1, NULL));
    expect_ok(hl_lock_release(mine, NULL));
    check_msg(actor_end(call) == 0, "%s", actor_error(call));
    expect_ok(actor_release(call, others, NULL));
    actor_stop(call);
}

/* Whole, from the release of one client through the grant to another, which knows it by its name.
 */
Law(script_grant, a_name_of_any_bytes_comes_through_its_grant)
{
    static const struct {
        const char *bytes;
        size_t length;
    } names[] = {{"a\0b", 3},  {"\0", 1},        {"two words", 9},
                 {" ", 1},     {"{tag}x", 6},    {"a{b}c}{", 7},
                 {"%", 1},     {"100%s%n%d", 9}, {"\r\n*1\r\n:1\r\n", 10},
                 {"1 2 3", 5}, {"\xff\xfe", 2},  {"\"quote'", 7}};
    hl_client_options patient = fault_options(NULL);
    patient.poll_ms = slow_ms(20000); /* only a grant comes in time */
    hl_client *one = open_impatient(NULL);
    hl_client *two = open_client(&patient);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hl_lock *mine = NULL, *others = NULL;
        expect_ok(lock_new_bytes(one, names[i].bytes, names[i].length, &mine, NULL));
        expect_ok(lock_new_bytes(two, names[i].bytes, names[i].length, &others, NULL));
        keep_lock(mine), keep_lock(others);
        pass_by_grant(mine, others, two);
        check_msg(stats_of(two).grants == i + 1, "name %zu", i);
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}
