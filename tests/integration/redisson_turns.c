/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Turns with Redisson: a Java program that waits beside clients of ours which are as busy as they
 * can be is served all the same, and one that listens and never asks costs them little. The Java
 * program is played by a thread with two plain connections that waits as Redisson's client does, in
 * words of our own: it subscribes, asks, and asks again when a message comes.
 */

#include "support/actor.h"
#include "support/ear.h"
#include "support/fatal.h"
#include "support/kinds.h"
#include "support/redis_link.h"
#include "two_links.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/time.h>

/*
 * A turn of Redisson's comes every 20 ms at the latest, and no thread holds for longer than a
 * moment. That is measured in time in which a thread of ours got on: a machine that lets all of
 * them stand still, or the server, is not to blame the protocol for. But nothing waits for a poll.
 */
enum { RUN_MS = 500, TURN_MS = 20, MARGIN_MS = 100, STANDSTILL_MS = 4, POLL_MS = 30000 };
enum { CLIENTS = 4, THREADS = 2, SLICES = 4 };

static const char channel[] = "redisson_lock__channel:{stock}";
static const char java_field[] = "0a1b2c3d-0000-4000-8000-1234567890ab:71";

/* Nil: it has the lock; else for how long it is held still. */
static const char java_try[] =
    "if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then "
    "return redis.call('PTTL', KEYS[1]) end "
    "redis.call('HINCRBY', KEYS[1], ARGV[2], 1) "
    "redis.call('PEXPIRE', KEYS[1], ARGV[1]) return nil";

static const char java_unlock[] =
    "if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then return 0 end "
    "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[1], '0') return 1";

static atomic_bool is_over;
static atomic_int inside, turns[CLIENTS];
static hl_client *clients[CLIENTS];
static hl_lock *locks[CLIENTS];

static struct {
    pthread_t thread;
    redisContext *commands, *messages;
    int holds;
    int64_t longest_ms, longest_at_work_ms;
} java;

/* The time until the last turn of any thread, without standstills. */
static _Atomic int64_t at_work_ns, last_turn_ns;

static void be_inside(void)
{
    must(atomic_fetch_add(&inside, 1) == 0);
    int64_t passed_ns = now_ns() - atomic_load(&last_turn_ns);
    int64_t most_ns = (int64_t)STANDSTILL_MS * 1000000;
    atomic_fetch_add(&at_work_ns, passed_ns < most_ns ? passed_ns : most_ns);
    atomic_store(&last_turn_ns, now_ns());
    atomic_fetch_sub(&inside, 1);
}

static bool java_tries(void)
{
    redisReply *reply =
        redisCommand(java.commands, "EVAL %s 1 stock 30000 %s", java_try, java_field);
    must(reply && reply->type != REDIS_REPLY_ERROR);
    bool got = reply->type == REDIS_REPLY_NIL;
    freeReplyObject(reply);
    return got;
}

/* The next thing that comes; false when nothing does, for too long. */
static bool java_hears(const char *kind)
{
    redisReply *reply = NULL;
    do {
        if (reply)
            freeReplyObject(reply);
        if (redisGetReply(java.messages, (void **)&reply) != REDIS_OK)
            return false;
    } while (strcmp(reply->element[0]->str, kind) != 0);
    freeReplyObject(reply);
    return true;
}

static void java_says(const char *verb, const char *kind)
{
    int written = 0;
    must(redisAppendCommand(java.messages, "%s %s", verb, channel) == REDIS_OK);
    while (!written)
        must(redisBufferWrite(java.messages, &written) == REDIS_OK);
    must(java_hears(kind));
}

static void java_waits(void)
{
    if (java_tries())
        return;
    java_says("SUBSCRIBE", "subscribe");
    while (!java_tries())
        must(java_hears("message"));
    java_says("UNSUBSCRIBE", "unsubscribe");
}

static int all_turns(void)
{
    int all = 0;
    for (int i = 0; i < CLIENTS; i++)
        all += atomic_load(&turns[i]);
    return all;
}

static void note_longest(int64_t *longest, int64_t took)
{
    if (took > *longest)
        *longest = took;
}

/* It begins to wait when another thread has the lock, or has had it. */
static void *java_run(void *arg)
{
    (void)arg;
    for (int seen = 0; !atomic_load(&is_over); seen = all_turns()) {
        while (all_turns() == seen && !atomic_load(&is_over))
            deadline_nap();
        int64_t before_ms = now_ms(), before_ns = atomic_load(&at_work_ns);
        java_waits();
        be_inside();
        note_longest(&java.longest_ms, now_ms() - before_ms);
        note_longest(&java.longest_at_work_ms, (atomic_load(&at_work_ns) - before_ns) / 1000000);
        freeReplyObject(
            redisCommand(java.commands, "EVAL %s 1 stock %s %s", java_unlock, channel, java_field));
        java.holds++;
    }
    return NULL;
}

static void java_start(void)
{
    java.commands = redis_link_connect(redis_server_socket(server));
    java.messages = redis_link_connect(redis_server_socket(server));
    check(java.commands && java.messages);
    check_int(pthread_create(&java.thread, NULL, java_run, NULL), 0);
}

static void java_stop(void)
{
    check_int(pthread_join(java.thread, NULL), 0);
    redisFree(java.commands);
    redisFree(java.messages);
}

/* ---- Our side ---- */

static void begin(const hl_lock_options *options)
{
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = open_client(CLIENT(.poll_ms = slow_ms(POLL_MS)));
        locks[i] = new_lock_with(clients[i], "stock", options);
    }
}

static void be_busy(void *arg)
{
    hl_lock *lock_ = arg;
    atomic_int *mine = &turns[0];
    for (int i = 1; i < CLIENTS; i++)
        if (lock_ == locks[i])
            mine = &turns[i];
    while (!atomic_load(&is_over)) {
        must(hl_lock_acquire(lock_, NULL) == HL_OK);
        be_inside();
        atomic_fetch_add(mine, 1);
        must(hl_lock_release(lock_, NULL) == HL_OK);
    }
}

/* So many clients with so many threads each go round and round for so long, counted from 0. */
static void run(int clients_count, int threads, int64_t ms)
{
    struct actor *actor[CLIENTS * THREADS];
    int count = 0;
    atomic_store(&is_over, false);
    for (int i = 0; i < CLIENTS; i++)
        atomic_store(&turns[i], 0);
    for (int i = 0; i < clients_count; i++)
        for (int k = 0; k < threads; k++) {
            actor[count] = actor_start();
            actor_begin(actor[count++], be_busy, locks[i]);
        }
    int64_t since_ms = now_ms();
    while (now_ms() < since_ms + ms)
        deadline_nap();
    atomic_store(&is_over, true);
    for (int i = 0; i < count; i++)
        actor_await(actor[i]);
    for (int i = 0; i < count; i++)
        actor_stop(actor[i]);
}

static void expect_java_is_served(int64_t retain_ms)
{
    check_msg(java.longest_at_work_ms <= slow_ms(TURN_MS + retain_ms + MARGIN_MS),
              "Redisson waited for %d ms, of them %d ms at work; %d times", (int)java.longest_ms,
              (int)java.longest_at_work_ms, java.holds);
    check_msg(java.longest_ms <= slow_ms(POLL_MS) / 2, "Redisson waited for %d ms",
              (int)java.longest_ms);
    check(java.holds > 0 && atomic_load(&turns[0]) > 0);
}

static void run_beside_java(int clients_count, int threads, const hl_lock_options *options)
{
    begin(options);
    java_start();
    run(clients_count, threads, slow_ms(RUN_MS));
    java_stop();
    expect_java_is_served(options->retain_ms);
}

static const hl_lock_options plain = HL_LOCK_OPTIONS_INIT;
static const hl_lock_options retaining = {.size = sizeof retaining, .retain_ms = 50};
static const hl_lock_options posted = {.size = sizeof posted, .flags = HL_LOCK_ASYNC_RELEASE};
static const hl_lock_options both = {
    .size = sizeof both, .flags = HL_LOCK_ASYNC_RELEASE, .retain_ms = 50};

Law(a_waiter_of_redissons, is_served_beside_grants)
{
    run_beside_java(4, 1, &plain);
    check(stats_of(clients[0]).grants > 0);
}

Law(a_waiter_of_redissons, is_served_beside_grants_and_passes)
{
    run_beside_java(2, 2, &plain);
}

Law(a_waiter_of_redissons, is_served_beside_passes_alone)
{
    run_beside_java(1, 2, &plain);
    check(stats_of(clients[0]).passes > 0);
}

Law(a_waiter_of_redissons, is_served_beside_retained_locks)
{
    run_beside_java(2, 2, &retaining);
}

Law(a_waiter_of_redissons, is_served_beside_a_single_thread_that_retains)
{
    run_beside_java(1, 1, &retaining);
    check(stats_of(clients[0]).retained > 0);
}

Law(a_waiter_of_redissons, is_served_beside_posted_releases)
{
    run_beside_java(4, 1, &posted);
}

Law(a_waiter_of_redissons, is_served_beside_a_single_thread)
{
    run_beside_java(1, 1, &plain);
}

Law(a_waiter_of_redissons, is_served_beside_a_single_thread_that_posts)
{
    run_beside_java(1, 1, &posted);
}

Law(a_waiter_of_redissons, is_served_beside_grants_passes_and_retained_locks_together)
{
    run_beside_java(2, 2, &both);
}

/* ---- No waiter, and no living waiter ---- */

static int count_courtesies(redisContext *ear)
{
    int count = 0;
    redis_do(server, "PUBLISH hirelock:{stock} end");
    for (const char *text = ear_next(ear); strstr(text, " end") == NULL; text = ear_next(ear)) {
        check_str(text, "hirelock:{stock} y");
        count++;
    }
    redisFree(ear);
    return count;
}

static int grants_of_two(void)
{
    return (int)(stats_of(clients[0]).grants + stats_of(clients[1]).grants);
}

/* A machine that keeps one of them from its work in one run does not do so in each. */
Law(clients_of_ours, are_not_taken_for_redissons)
{
    begin(&plain);
    redisContext *ear = ear_open_unseen("hirelock:{stock}");
    struct deadline deadline = deadline_in(20000);
    int grants, least, all;
    do {
        int before = grants_of_two();
        run(2, 1, slow_ms(RUN_MS));
        all = all_turns();
        grants = grants_of_two() - before;
        least = atomic_load(&turns[turns[0] > turns[1]]);
    } while ((grants <= all / 100 || least <= all / 20) && !deadline_is_over(deadline));
    check_int(count_courtesies(ear), 0);
    check_msg(grants > all / 100, "%d grants in %d turns", grants, all);
    check_msg(least > all / 20, "one has %d of %d turns", least, all);
}

/* The turns beside it are compared with those without it, and are measured in turns: how many there
 * are in a time is the machine's affair. */
Law(a_listener_of_redissons, that_never_asks_costs_a_moment_now_and_then)
{
    begin(&plain);
    redisContext *ear = ear_open_unseen("hirelock:{stock}");
    int alone = 0, beside = 0;
    int64_t took_ms = 0;
    for (int i = 0; i < SLICES; i++) {
        run(2, 1, slow_ms(RUN_MS) / SLICES);
        alone += all_turns();
        redisContext *dead = ear_open(channel);
        int64_t before_ms = now_ms();
        run(2, 1, slow_ms(RUN_MS) / SLICES);
        took_ms += now_ms() - before_ms;
        beside += all_turns();
        redisFree(dead);
    }
    int courtesies = count_courtesies(ear);
    check_msg(courtesies >= 1 && courtesies <= took_ms / TURN_MS + 2 * SLICES,
              "%d courtesies in %d ms", courtesies, (int)took_ms);
    check_msg(beside > alone / 4, "%d turns beside it, %d without it; %d courtesies", beside, alone,
              courtesies);
}
