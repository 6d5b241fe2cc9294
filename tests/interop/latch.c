/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_latch and RCountDownLatch: counted down by one side, awaited by both. */
#include "redisson.h"

#include "support/actor.h"

static const char channel[] = "redisson_countdownlatch__channel__{gate}";

struct await {
    hl_latch *latch;
    int64_t wait_ms;
    int code;
};

static void await(void *arg)
{
    struct await *wait = arg;
    wait->code = hl_latch_await_for(wait->latch, wait->wait_ms, NULL);
}

static hl_latch *new_latch(hl_client *client)
{
    hl_latch *latch = NULL;
    expect_ok(hl_latch_new(client, "gate", &latch, NULL));
    return latch;
}

static int64_t count_of(hl_latch *latch)
{
    int64_t count = -1;
    expect_ok(hl_latch_count(latch, &count, NULL));
    return count;
}

/* One of each side waits. */
struct waiters {
    struct await await;
    struct actor *actor;
    int java;
};

static void begin_to_wait(struct waiters *waiters, hl_latch *latch)
{
    waiters->await = (struct await){latch, HL_WAIT_FOREVER, 1};
    waiters->actor = actor_start();
    actor_begin(waiters->actor, await, &waiters->await);
    waiters->java = redisson_begin("waiter", "latch.await gate");
    expect_listening(channel, 2);
    check(!actor_is_done(waiters->actor) && !redisson_is_done(waiters->java));
}

static void expect_both_woken(struct waiters *waiters, int64_t since_ms)
{
    actor_await(waiters->actor);
    expect_ok(waiters->await.code);
    check_str(redisson_end(waiters->java), "true");
    expect_woken(monotonic_ms(), since_ms);
}

EverywhereLaw(latch, that_c_closes_and_java_counts_down_opens_for_both)
{
    struct waiters waiters;
    hl_latch *latch = new_latch(open_client_that_hardly_polls());
    expect_ok(hl_latch_try_set_count(latch, 2, NULL));
    expect_redisson("t1", "false", "latch.trySetCount gate 5");
    expect_redisson("t1", "2", "latch.getCount gate");
    begin_to_wait(&waiters, latch);
    redisson_do("t1", "latch.countDown gate");
    check_int(count_of(latch), 1);
    check(!actor_is_done(waiters.actor) && !redisson_is_done(waiters.java));
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "latch.countDown gate");
    expect_both_woken(&waiters, before_ms);
    check_int(count_of(latch), 0);
    hl_latch_free(latch);
}

EverywhereLaw(latch, that_java_closes_and_c_counts_down_opens_for_both)
{
    struct waiters waiters;
    hl_latch *latch = new_latch(open_client_that_hardly_polls());
    expect_redisson("t1", "true", "latch.trySetCount gate 2");
    expect_outcome(hl_latch_try_set_count(latch, 5, NULL), HL_EEXIST);
    check_int(count_of(latch), 2);
    begin_to_wait(&waiters, latch);
    expect_ok(hl_latch_count_down(latch, NULL));
    expect_redisson("t1", "1", "latch.getCount gate");
    check(!actor_is_done(waiters.actor) && !redisson_is_done(waiters.java));
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_latch_count_down(latch, NULL));
    expect_both_woken(&waiters, before_ms);
    expect_redisson("t1", "0", "latch.getCount gate");
    hl_latch_free(latch);
}

EverywhereLaw(latch, that_c_deletes_opens_for_both)
{
    struct waiters waiters;
    hl_latch *latch = new_latch(open_client_that_hardly_polls());
    expect_ok(hl_latch_try_set_count(latch, 2, NULL));
    begin_to_wait(&waiters, latch);
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_latch_delete(latch, NULL));
    expect_both_woken(&waiters, before_ms);
    hl_latch_free(latch);
}

/* Java wakes none of its own then, but ours look. */
RedissonLaw(latch, that_java_deletes_opens_for_c)
{
    hl_latch *latch = new_latch(open_client(NULL));
    struct await wait = {latch, HL_WAIT_FOREVER, 1};
    struct actor *actor = actor_start();
    expect_ok(hl_latch_try_set_count(latch, 2, NULL));
    actor_begin(actor, await, &wait);
    expect_listening(channel, 1);
    expect_redisson("t1", "true", "latch.delete gate");
    actor_await(actor);
    expect_ok(wait.code);
    hl_latch_free(latch);
}

RedissonLaw(latch, is_awaited_until_the_wait_time_is_over)
{
    hl_latch *latch = new_latch(open_client(NULL));
    expect_ok(hl_latch_try_set_count(latch, 1, NULL));
    expect_redisson("t1", "false", "latch.await gate 200");
    expect_outcome(hl_latch_await_for(latch, 200, NULL), HL_ETIMEDOUT);
    expect_ok(hl_latch_count_down(latch, NULL));
    expect_redisson("t1", "true", "latch.await gate 200");
    hl_latch_free(latch);
}

RedissonLaw(latch, that_is_closed_again_is_awaited_again_by_both)
{
    struct waiters waiters;
    hl_latch *latch = new_latch(open_client_that_hardly_polls());
    for (int i = 0; i < 3; i++) {
        if (i % 2 == 0)
            expect_ok(hl_latch_try_set_count(latch, 1, NULL));
        else
            expect_redisson("t1", "true", "latch.trySetCount gate 1");
        begin_to_wait(&waiters, latch);
        int64_t before_ms = monotonic_ms();
        if (i % 2 == 0)
            redisson_do("t1", "latch.countDown gate");
        else
            expect_ok(hl_latch_count_down(latch, NULL));
        expect_both_woken(&waiters, before_ms);
    }
    hl_latch_free(latch);
}
