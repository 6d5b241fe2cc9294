/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Yielding: a release lets Redisson's waiters go first, and for a moment none of our clients asks:
 * neither the one that released nor those that received its message. */

#include "support/kinds.h"
#include "support/recorder.h"
#include "support/redis_link.h"
#include "two_links.h"

enum { ROUNDS = 5, OLD_MS = 30 }; /* older than the last yield may be */

static hl_client *client;
static hl_lock *stock;
static struct recorder told = RECORDER_INIT;

static void pass_time(int64_t ms)
{
    int64_t since_ms = now_ms();
    while (now_ms() < since_ms + ms)
        deadline_nap();
}

static void begin(unsigned flags)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.flags = flags;
    client = open_client(CLIENT(.poll_ms = 10000, .watchdog_timeout_ms = 60000));
    expect_ok(lock_new_with(client, "stock", &options, &stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_release(stock, NULL)); /* from now on the server knows the scripts */
}

/* How long the lock was free after the last release that MONITOR saw: until it was taken again. */
static double free_seconds(redisContext *watch)
{
    double freed = 0, taken = 0;
    bool is_over = false;
    redis_do(server, "ECHO the-watch-is-over");
    while (!is_over) {
        redisReply *reply = NULL;
        check(redisGetReply(watch, (void **)&reply) == REDIS_OK);
        double at = strtod(reply->str, NULL);
        is_over = strstr(reply->str, "the-watch-is-over") != NULL;
        if (strstr(reply->str, "lua] \"DEL\" \"stock\""))
            freed = at, taken = 0;
        if (strstr(reply->str, "lua] \"HSET\" \"stock\"") && taken == 0)
            taken = at;
        freeReplyObject(reply);
    }
    redisFree(watch);
    check(freed > 0 && taken > freed);
    return taken - freed;
}

static redisContext *redisson_listens(void)
{
    redisContext *link = redis_link_connect(redis_server_socket(server));
    redisReply *reply = redisCommand(link, "SUBSCRIBE redisson_lock__channel:{stock}");
    check(reply && reply->type == REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
    return link;
}

static void expect_stood_back(redisContext *watch)
{
    double seconds = free_seconds(watch);
    check_msg(seconds >= 0.0025, "free for %d us", (int)(seconds * 1e6));
}

struct side {
    hl_lock *lock;
    hl_owner *owner;
};

/* Both wait; the first holder releases it, and then the other one. */
static void let_both_go(const struct side *one, const struct side *two, int turns)
{
    bool is_one = hl_lock_is_held(one->lock, one->owner);
    const struct side *first = is_one ? one : two, *second = is_one ? two : one;
    expect_ok(hl_lock_release_as(first->lock, first->owner, NULL));
    check(recorder_wait(&told, turns));
    expect_ok(hl_lock_release_as(second->lock, second->owner, NULL));
}

/* The releaser asks again at once, and another client hears the release. Several times, for on a
 * busy machine any of them may be slow by chance. */
TcpLaw(a_yielding_release, makes_all_our_waiters_stand_back)
{
    begin(0);
    hl_client *rival = open_client(CLIENT(.poll_ms = 10000));
    const struct side ours = {stock, new_owner(client)},
                      theirs = {new_lock(rival, "stock"), new_owner(rival)};
    redisContext *redisson = redisson_listens();
    for (int i = 0; i < ROUNDS; i++) {
        pass_time(OLD_MS);
        expect_ok(hl_lock_acquire(stock, NULL));
        int64_t calls = redis_evalsha_calls(server);
        expect_ok(hl_lock_acquire_async(theirs.lock, ACQUIRE(.owner = theirs.owner, .wait_ms = -1),
                                        record_done, &told));
        expect_in_queue(1);
        expect_calls(calls + (i == 0 ? 2 : 1)); /* and once more when it listens at first */
        pass_time(OLD_MS);
        redisContext *watch = watch_begin();
        expect_ok(hl_lock_release(stock, NULL));
        expect_ok(hl_lock_acquire_async(stock, ACQUIRE(.owner = ours.owner, .wait_ms = -1),
                                        record_done, &told));
        check(recorder_wait(&told, 2 * i + 1));
        expect_stood_back(watch);
        let_both_go(&ours, &theirs, 2 * i + 2);
    }
    redisFree(redisson);
    hl_lock_free(stock);
}

/* Once it is known that Redisson's listen, nothing is sent behind a posted release. */
TcpLaw(a_posted_release, lets_redisson_go_first)
{
    begin(HL_LOCK_ASYNC_RELEASE);
    redisContext *redisson = redisson_listens();
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_release(stock, NULL));
    expect_ok(hl_client_ping(client, -1, NULL));
    for (int i = 0; i < ROUNDS; i++) {
        pass_time(OLD_MS);
        expect_ok(hl_lock_acquire(stock, NULL));
        pass_time(OLD_MS);
        redisContext *watch = watch_begin();
        expect_ok(hl_lock_release(stock, NULL));
        expect_ok(hl_lock_acquire(stock, NULL));
        expect_stood_back(watch);
        expect_ok(hl_lock_release(stock, NULL));
    }
    redisFree(redisson);
    hl_lock_free(stock);
}
