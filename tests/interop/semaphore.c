/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_semaphore and RSemaphore: permits that one side takes and the other gives back. */
#include "pool.h"
#include "redisson.h"

#include "support/actor.h"

enum { RUN_MS = 4000, THREADS = 3, PERMITS = 2 };

static const char channel[] = "redisson_sc:{pool}";

struct acquire {
    hl_semaphore *pool;
    int64_t permits, wait_ms;
    int code;
};

static void acquire(void *arg)
{
    struct acquire *call = arg;
    call->code = hl_semaphore_acquire_for(call->pool, call->permits, call->wait_ms, NULL);
}

static hl_semaphore *new_pool(hl_client *client)
{
    hl_semaphore *pool = NULL;
    expect_ok(hl_semaphore_new(client, "pool", &pool, NULL));
    return pool;
}

static int64_t available(hl_semaphore *pool)
{
    int64_t permits = -1;
    expect_ok(hl_semaphore_available(pool, &permits, NULL));
    return permits;
}

EverywhereLaw(permits_without_leases, are_one_number_for_both_sides)
{
    int64_t drained = 0;
    hl_semaphore *pool = new_pool(open_client(NULL));
    expect_ok(hl_semaphore_try_set_permits(pool, 5, 0, NULL));
    expect_redisson("t1", "false", "semaphore.trySetPermits pool 9");
    redisson_do("t1", "semaphore.acquire pool 2");
    check_int(available(pool), 3);
    expect_ok(hl_semaphore_acquire(pool, 3, NULL));
    expect_redisson("t1", "0", "semaphore.availablePermits pool");
    expect_outcome(hl_semaphore_try_acquire(pool, 1, NULL), HL_EBUSY);
    expect_redisson("t1", "false", "semaphore.tryAcquire pool");
    expect_ok(hl_semaphore_release(pool, 2, NULL)); /* what Java took */
    redisson_do("t1", "semaphore.release pool 3");  /* what we took */
    check_int(available(pool), 5);
    redisson_do("t1", "semaphore.addPermits pool 2");
    expect_ok(hl_semaphore_add_permits(pool, -1, NULL));
    expect_ok(hl_semaphore_drain(pool, &drained, NULL));
    check_int(drained, 6);
    expect_redisson("t1", "0", "semaphore.drainPermits pool");
    expect_redisson("t1", "true", "semaphore.delete pool");
    expect_outcome(hl_semaphore_release_if_exists(pool, 1, NULL), HL_ENOENT);
    expect_redisson("t1", "false", "semaphore.releaseIfExists pool 1");
    expect_redisson("t1", "true", "semaphore.trySetPermits pool 1");
    expect_ok(hl_semaphore_release_if_exists(pool, 1, NULL));
    expect_redisson("t1", "2", "semaphore.availablePermits pool");
    hl_semaphore_free(pool);
}

EverywhereLaw(release_by_c, wakes_java_that_waits_for_several)
{
    hl_semaphore *pool = new_pool(open_client(NULL));
    expect_ok(hl_semaphore_try_set_permits(pool, 1, 0, NULL));
    int waits = redisson_begin("t1", "semaphore.acquire pool 3");
    expect_listening(channel, 1);
    expect_ok(hl_semaphore_release(pool, 1, NULL));
    check_int(available(pool), 2);
    check(!redisson_is_done(waits));
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_semaphore_release(pool, 1, NULL));
    redisson_end(waits);
    expect_woken(redisson_ended_ms(waits), before_ms);
    check_int(available(pool), 0);
    hl_semaphore_free(pool);
}

EverywhereLaw(release_by_java, wakes_c_that_waits_for_several)
{
    hl_client *client = open_client_that_hardly_polls();
    struct acquire call = {new_pool(client), 3, HL_WAIT_FOREVER, 1};
    struct actor *waiter = actor_start();
    expect_redisson("t1", "true", "semaphore.trySetPermits pool 1");
    actor_begin(waiter, acquire, &call);
    expect_listening(channel, 1);
    redisson_do("t1", "semaphore.release pool");
    check_int(available(call.pool), 2);
    check(!actor_is_done(waiter));
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "semaphore.release pool");
    actor_await(waiter);
    expect_ok(call.code);
    expect_woken(monotonic_ms(), before_ms);
    check_int(available(call.pool), 0);
    hl_semaphore_free(call.pool);
}

EverywhereLaw(permits_without_leases, that_one_side_adds_or_sets_wake_waiters_of_both)
{
    hl_client *client = open_client_that_hardly_polls();
    struct acquire call = {new_pool(client), 1, HL_WAIT_FOREVER, 1};
    for (int i = 0; i < 2; i++) {
        struct actor *waiter = actor_start();
        int waits = redisson_begin("t1", "semaphore.acquire pool");
        actor_begin(waiter, acquire, &call);
        expect_listening(channel, 2);
        int64_t before_ms = monotonic_ms();
        if (i == 0)
            expect_ok(hl_semaphore_try_set_permits(call.pool, 2, 0, NULL));
        else
            redisson_do("t2", "semaphore.addPermits pool 2");
        actor_await(waiter);
        expect_ok(call.code);
        redisson_end(waits);
        expect_woken(monotonic_ms(), before_ms);
    }
    hl_semaphore_free(call.pool);
}

RedissonLaw(waits, of_both_sides_end_in_vain_when_their_time_is_over)
{
    hl_semaphore *pool = new_pool(open_client(NULL));
    expect_ok(hl_semaphore_try_set_permits(pool, 1, 0, NULL));
    expect_redisson("t1", "false", "semaphore.tryAcquire pool 2 200");
    expect_outcome(hl_semaphore_acquire_for(pool, 2, 200, NULL), HL_ETIMEDOUT);
    check_int(available(pool), 1);
    hl_semaphore_free(pool);
}

/* ---- All at once ---- */

struct user {
    hl_semaphore *pool;
    int64_t until_ms, turns;
};

static void use(void *arg)
{
    struct user *me = arg;
    redisContext *link = redis_link_connect(redis_server_socket(server));
    must(link);
    while (now_ms() < me->until_ms) {
        expect_ok(hl_semaphore_acquire(me->pool, 1, NULL));
        pool_visit(link, PERMITS);
        expect_ok(hl_semaphore_release(me->pool, 1, NULL));
        me->turns++;
    }
    redisFree(link);
}

EverywhereLaw(permits_without_leases, are_never_taken_more_than_there_are_by_threads_of_both_sides)
{
    static struct user users[THREADS];
    struct actor *actors[THREADS];
    int javas[THREADS];
    int64_t c = 0, java = 0;
    hl_semaphore *pool = new_pool(open_client(NULL));
    expect_ok(hl_semaphore_try_set_permits(pool, PERMITS, 0, NULL));
    for (int i = 0; i < THREADS; i++) {
        char who[8];
        snprintf(who, sizeof who, "t%d", i);
        javas[i] = redisson_begin(who, "semaphore.use pool inside:{pool} %d %d", PERMITS, RUN_MS);
        users[i] = (struct user){pool, now_ms() + RUN_MS, 0};
        actors[i] = actor_start();
        actor_begin(actors[i], use, &users[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        java += strtoll(redisson_end(javas[i]), NULL, 10);
        actor_await(actors[i]);
        c += users[i].turns;
    }
    tell_figure("C: %jd turns; Java: %jd turns", c, java);
    check(c > 0 && java > 0);
    check_int(available(pool), PERMITS);
    hl_semaphore_free(pool);
}
