/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_fenced_lock and RFencedLock: one lock, and one count of tokens. */
#include "laws.h"

#include "support/actor.h"
#include "support/fatal.h"
#include "support/kinds.h"
#include "support/redis_link.h"

enum { RUN_MS = 4000, THREADS = 2 };

static hl_lock *new_fenced(hl_client *client, const char *name)
{
    hl_lock *lock = NULL;
    expect_ok(fenced_lock_new(client, name, NULL, &lock, NULL));
    return keep_lock(lock);
}

static const struct lock_kind fenced = {"fenced", new_fenced, java_listens};

LawsOfWaking(fenced) LawsOfLeases(fenced) LawOfWatchdogs(RedissonLaw, fenced) LawsOfReentry(fenced)

    static int64_t token_of_acquire(hl_lock *lock)
{
    uint64_t token = 0;
    expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER), &token));
    check(token > 0 && token == hl_lock_token(lock, NULL));
    return (int64_t)token;
}

EverywhereLaw(tokens, grow_as_the_two_sides_take_turns)
{
    hl_lock *lock = new_fenced(open_client(NULL), "stock");
    int64_t last = 0;
    for (int i = 0; i < 10; i++) {
        int64_t token = token_of_acquire(lock);
        check(token > last);
        last = token;
        int waits = redisson_begin("t1", "fenced.lockAndGetToken stock");
        java_listens("stock", 1);
        expect_ok(hl_lock_release(lock, NULL));
        token = strtoll(redisson_end(waits), NULL, 10);
        check(token > last);
        last = token;
        redisson_do("t1", "fenced.unlock stock");
    }
}

RedissonLaw(token, of_a_nested_call_is_the_holds_in_c_and_a_new_token_in_java)
{
    hl_lock *lock = new_fenced(open_client(NULL), "stock");
    int64_t first = token_of_acquire(lock);
    check_int(token_of_acquire(lock), first);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    int64_t second = redisson_number("t1", "fenced.lockAndGetToken stock");
    int64_t nested = redisson_number("t1", "fenced.lockAndGetToken stock");
    check(first < second && second < nested);
    redisson_do("t1", "fenced.unlock stock");
    redisson_do("t1", "fenced.unlock stock");
    check(token_of_acquire(lock) > nested);
}

/* Java's token has passed through a Lua number, a double, and is rounded. The counter is exact. */
RedissonLaw(token, beyond_what_a_double_can_count_is_told_to_c_exactly)
{
    static const int64_t before = INT64_C(9007199254740993); /* 2^53 + 1 */
    hl_lock *lock = new_fenced(open_client(NULL), "stock");
    redis_do(server, "SET redisson_lock_token:{stock} %lld", (long long)before);
    check_int(token_of_acquire(lock), before + 1);
    expect_ok(hl_lock_release(lock, NULL));
    redisson_do("t1", "fenced.lockAndGetToken stock");
    redisson_do("t1", "fenced.unlock stock");
    check_int(token_of_acquire(lock), before + 3);
}

/* ---- All at once ---- */

struct fenced_server {
    hl_lock *lock;
    int64_t until_ms, turns;
};

static void serve(void *arg)
{
    struct fenced_server *me = arg;
    redisContext *link = redis_link_connect(redis_server_socket(server));
    must(link);
    while (now_ms() < me->until_ms) {
        long long token = token_of_acquire(me->lock);
        redisReply *reply = redisCommand(link, "GETSET last:{stock} %lld", token);
        must(reply && reply->type == REDIS_REPLY_STRING);
        check_msg(token > strtoll(reply->str, NULL, 10), "token %lld after %s", token, reply->str);
        freeReplyObject(reply);
        me->turns++;
        expect_ok(hl_lock_release(me->lock, NULL));
    }
    redisFree(link);
}

/* C takes tokens in advance for threads that pass the lock to each other. */
EverywhereLaw(tokens, grow_among_threads_of_both_sides)
{
    static struct fenced_server servers[THREADS];
    struct actor *actors[THREADS];
    int javas[THREADS];
    hl_client *client = open_client(NULL);
    int64_t turns_of_java = 0;
    redis_do(server, "SET last:{stock} 0");
    for (int i = 0; i < THREADS; i++) {
        javas[i] =
            redisson_begin(i ? "t1" : "t2", "fenced.serveTokens stock last:{stock} %d", RUN_MS);
        servers[i] = (struct fenced_server){new_fenced(client, "stock"), now_ms() + RUN_MS, 0};
        actors[i] = actor_start();
        actor_begin(actors[i], serve, &servers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        turns_of_java += strtoll(redisson_end(javas[i]), NULL, 10);
        actor_await(actors[i]);
    }
    tell_figure("C: %jd turns, %ju of them passed on; Java: %jd turns",
                servers[0].turns + servers[1].turns, stats_of(client).passes, turns_of_java);
    check(turns_of_java > 0 && servers[0].turns > 0 && stats_of(client).passes > 0);
}
