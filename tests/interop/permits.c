/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_permits and RPermitExpirableSemaphore: permits by their ids, whichever side acquired them. */
#include "pool.h"
#include "redisson.h"

#include "support/actor.h"

enum { RUN_MS = 4000, THREADS = 2, PERMITS = 2 };
enum { SEVERAL = 3, IDS = SEVERAL * 33 }; /* with commas, and the end of the string */

/* A lease that a loaded machine renews in time. */
#define BRIEF_MS slow_ms(2000)

static const char channel[] = "redisson_sc:{pool}";

struct acquire {
    hl_permits *pool;
    hl_permit permit;
    int code;
};

struct acquire_many {
    hl_permits *pool;
    hl_permit permits[SEVERAL];
    int code;
};

static void acquire(void *arg)
{
    struct acquire *call = arg;
    call->code = hl_permits_acquire(call->pool, &call->permit, NULL);
}

static hl_permits *new_pool(hl_client *client)
{
    hl_permits *pool = NULL;
    expect_ok(hl_permits_new(client, "pool", &pool, NULL));
    return pool;
}

static hl_permits *fill_pool(hl_client *client, int64_t permits)
{
    hl_permits *pool = new_pool(client);
    expect_ok(hl_permits_try_set_total(pool, permits, 0, NULL));
    return pool;
}

static int64_t available(hl_permits *pool)
{
    int64_t count = -1;
    expect_ok(hl_permits_available(pool, &count, NULL));
    return count;
}

static hl_permit permit_of_java(const char *who, const char *words)
{
    hl_permit permit;
    snprintf(permit.id, sizeof permit.id, "%s", redisson_do(who, "%s", words));
    check_int(strlen(permit.id), 32);
    return permit;
}

static hl_permit permit_of_c(hl_permits *pool)
{
    hl_permit permit;
    expect_ok(hl_permits_try_acquire(pool, &permit, NULL));
    return permit;
}

/* ---- Ids and numbers ---- */

EverywhereLaw(permits, are_one_number_for_both_sides)
{
    int64_t count = 0;
    hl_permits *pool = fill_pool(open_client(NULL), 3);
    expect_redisson("t1", "false", "permits.trySetPermits pool 9");
    hl_permit mine = permit_of_c(pool), javas = permit_of_java("t1", "permits.acquire pool");
    expect_redisson("t1", "1", "permits.availablePermits pool");
    expect_redisson("t1", "2", "permits.acquiredPermits pool");
    expect_ok(hl_permits_acquired(pool, &count, NULL));
    check_int(count, 2);
    redisson_do("t1", "permits.addPermits pool 2");
    expect_ok(hl_permits_total(pool, &count, NULL));
    check_int(count, 5);
    expect_ok(hl_permits_set_total(pool, 4, 0, NULL));
    expect_redisson("t1", "4", "permits.getPermits pool");
    expect_ok(hl_permits_release(pool, &mine, NULL));
    expect_ok(hl_permits_release(pool, &javas, NULL));
    expect_redisson("t1", "4", "permits.availablePermits pool");
    expect_redisson("t1", "false", "permits.tryRelease pool %s", javas.id);
    hl_permits_free(pool);
}

EverywhereLaw(permit_of_c, that_java_releases_wakes_both_and_is_lost_to_c)
{
    hl_client *client = open_client_that_hardly_polls();
    hl_permits *pool = fill_pool(open_client(NULL), 1);
    struct acquire call = {.pool = new_pool(client), .code = 1};
    hl_permit mine = permit_of_c(pool);
    struct actor *waiter = actor_start();
    actor_begin(waiter, acquire, &call);
    expect_listening(channel, 1);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "permits.release pool %s", mine.id);
    actor_await(waiter);
    expect_ok(call.code);
    expect_woken(monotonic_ms(), before_ms);
    int code = hl_permits_release(pool, &mine, NULL);
    check_msg(code == HL_ELOST || code == HL_ENOENT, "%s", hl_err_name(code));
    check(hl_permits_is_held(call.pool, &call.permit));
    int waits = redisson_begin("t1", "permits.acquire pool");
    expect_asleep("t1");
    redisson_do("t2", "permits.release pool %s", call.permit.id);
    check_int(strlen(redisson_end(waits)), 32);
    hl_permits_free(call.pool);
    hl_permits_free(pool);
}

EverywhereLaw(permit_of_java, that_c_releases_wakes_both_and_is_lost_to_java)
{
    hl_permits *pool = fill_pool(open_client(NULL), 1);
    hl_permit javas = permit_of_java("t1", "permits.acquire pool");
    int waits = redisson_begin("t2", "permits.acquire pool");
    expect_listening(channel, 1);
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_permits_release(pool, &javas, NULL));
    check_int(strlen(redisson_end(waits)), 32);
    expect_woken(redisson_ended_ms(waits), before_ms);
    expect_redisson("t1", "false", "permits.tryRelease pool %s", javas.id);
    check_int(available(pool), 0);
    hl_permits_free(pool);
}

RedissonLaw(permits, that_are_taken_at_once_are_given_back_one_by_one_or_at_once)
{
    char ids[256];
    hl_permit permits[3];
    hl_permits *pool = fill_pool(open_client(NULL), 3);
    expect_ok(hl_permits_acquire_many(pool, 3, NULL, permits, NULL));
    expect_redisson("t1", "", "permits.tryAcquireMany pool 1 100 1000");
    redisson_do("t1", "permits.releaseMany pool %s,%s", permits[0].id, permits[2].id);
    expect_redisson("t1", "2", "permits.availablePermits pool");
    expect_ok(hl_permits_release(pool, &permits[1], NULL));
    snprintf(ids, sizeof ids, "%s", redisson_do("t1", "permits.acquireMany pool 3"));
    check_int(strlen(ids), 3 * 32 + 2);
    for (int i = 0; i < 3; i++) {
        snprintf(permits[i].id, sizeof permits[i].id, "%.32s", ids + 33 * i);
        expect_ok(hl_permits_release(pool, &permits[i], NULL));
    }
    check_int(available(pool), 3);
    hl_permits_free(pool);
}

/* ---- Several, given back by one call ---- */

static void several_of_java(const char *who, hl_permit permits[SEVERAL])
{
    const char *ids = redisson_do(who, "permits.acquireMany pool %d", SEVERAL);
    check_int(strlen(ids), IDS - 1);
    for (int i = 0; i < SEVERAL; i++)
        snprintf(permits[i].id, sizeof permits[i].id, "%.32s", ids + 33 * (size_t)i);
}

static const char *ids_of(const hl_permit permits[SEVERAL])
{
    static char ids[IDS];
    snprintf(ids, sizeof ids, "%s,%s,%s", permits[0].id, permits[1].id, permits[2].id);
    return ids;
}

RedissonLaw(permits_of_java, that_c_releases_at_once_wake_a_waiter_for_all_of_them)
{
    hl_permit permits[SEVERAL];
    hl_permits *pool = fill_pool(open_client(NULL), SEVERAL);
    several_of_java("t1", permits);
    int waits = redisson_begin("t2", "permits.acquireMany pool %d", SEVERAL);
    expect_listening(channel, 1);
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_permits_release_many(pool, permits, SEVERAL, NULL));
    check_int(strlen(redisson_end(waits)), IDS - 1);
    expect_woken(redisson_ended_ms(waits), before_ms);
    expect_redisson("t1", "0", "permits.tryReleaseMany pool %s", ids_of(permits));
    expect_redisson("t1", "3", "permits.acquiredPermits pool");
    hl_permits_free(pool);
}

EverywhereLaw(permits_of_java, that_c_releases_at_once_wake_one_waiter_for_each)
{
    int waits[SEVERAL];
    hl_permit permits[SEVERAL];
    static const char *const who[SEVERAL] = {"t2", "t3", "t4"};
    hl_permits *pool = fill_pool(open_client(NULL), SEVERAL);
    several_of_java("t1", permits);
    for (int i = 0; i < SEVERAL; i++) {
        waits[i] = redisson_begin(who[i], "permits.acquire pool");
        expect_asleep(who[i]);
    }
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_permits_release_many(pool, permits, SEVERAL, NULL));
    for (int i = 0; i < SEVERAL; i++) {
        check_int(strlen(redisson_end(waits[i])), 32);
        expect_woken(redisson_ended_ms(waits[i]), before_ms);
    }
    check_int(available(pool), 0);
    hl_permits_free(pool);
}

static void acquire_several(void *arg)
{
    struct acquire_many *call = arg;
    call->code = hl_permits_acquire_many(call->pool, SEVERAL, NULL, call->permits, NULL);
}

EverywhereLaw(permits_of_c, that_java_releases_at_once_wake_a_waiter_of_c_for_all_of_them)
{
    hl_permit permits[SEVERAL];
    hl_client *client = open_client_that_hardly_polls();
    hl_permits *pool = fill_pool(open_client(NULL), SEVERAL);
    struct acquire_many call = {.pool = new_pool(client), .code = 1};
    expect_ok(hl_permits_acquire_many(pool, SEVERAL, NULL, permits, NULL));
    struct actor *waiter = actor_start();
    actor_begin(waiter, acquire_several, &call);
    expect_listening(channel, 1);
    int64_t before_ms = monotonic_ms();
    expect_redisson("t1", "3", "permits.tryReleaseMany pool %s", ids_of(permits));
    actor_await(waiter);
    expect_ok(call.code);
    expect_woken(monotonic_ms(), before_ms);
    expect_outcome(hl_permits_release_many(call.pool, permits, SEVERAL, NULL), HL_ENOENT);
    expect_ok(hl_permits_release_many(call.pool, call.permits, SEVERAL, NULL));
    expect_redisson("t1", "3", "permits.availablePermits pool");
    hl_permits_free(call.pool);
    hl_permits_free(pool);
}

/* Redisson's call gives back those that it finds; ours gives back all or none. */
RedissonLaw(permits_of_java, are_given_back_by_c_all_or_none)
{
    hl_permit permits[SEVERAL];
    hl_permits *pool = fill_pool(open_client(NULL), SEVERAL);
    several_of_java("t1", permits);
    redisson_do("t1", "permits.release pool %s", permits[1].id);
    expect_outcome(hl_permits_release_many(pool, permits, SEVERAL, NULL), HL_ENOENT);
    expect_redisson("t1", "2", "permits.acquiredPermits pool");
    permits[1] = permit_of_c(pool);
    expect_ok(hl_permits_release_many(pool, permits, SEVERAL, NULL)); /* of both sides */
    expect_redisson("t1", "3", "permits.availablePermits pool");
    expect_redisson("t1", "0", "permits.acquiredPermits pool");
    hl_permits_free(pool);
}

/* ---- Leases ---- */

RedissonLaw(permit_of_c, whose_lease_is_over_goes_to_java)
{
    hl_permit permit;
    hl_permits *pool = fill_pool(open_client(NULL), 1);
    expect_ok(hl_permits_acquire_with(pool, ACQUIRE(.lease_ms = BRIEF_MS), &permit, NULL));
    check(redisson_number("t1", "permits.getLeaseTime pool %s", permit.id) <= BRIEF_MS);
    check_int(strlen(redisson_do("t1", "permits.acquire pool")), 32);
    check(!hl_permits_is_held(pool, &permit));
    hl_permits_free(pool);
}

EverywhereLaw(permit_of_java, whose_lease_is_over_goes_to_c)
{
    int64_t left_ms = 0;
    char words[64];
    hl_permit permit;
    hl_permits *pool = fill_pool(open_client(NULL), 1);
    snprintf(words, sizeof words, "permits.acquire pool %d", (int)BRIEF_MS);
    hl_permit javas = permit_of_java("t1", words);
    expect_ok(hl_permits_lease_left(pool, &javas, &left_ms, NULL));
    check(left_ms > 0 && left_ms <= BRIEF_MS);
    expect_ok(hl_permits_acquire_for(pool, LONG_BEFORE_MS, &permit, NULL));
    expect_redisson("t1", "false", "permits.tryRelease pool %s", javas.id);
    expect_ok(hl_permits_release(pool, &permit, NULL));
    hl_permits_free(pool);
}

struct renewals {
    hl_client *client;
    uint64_t count;
};

static bool are_made(void *arg)
{
    struct renewals *renewals = arg;
    return stats_of(renewals->client).renewals >= renewals->count;
}

EverywhereLaw(watchdog_of_c, keeps_a_permit_that_java_waits_for_until_its_process_ends)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = BRIEF_MS));
    hl_permits *pool = fill_pool(client, 1);
    hl_permit permit = permit_of_c(pool);
    int waits = redisson_begin("t1", "permits.acquire pool");
    expect_listening(channel, 1);
    check(wait_until(are_made, &(struct renewals){client, 9}, 60000));
    check(!redisson_is_done(waits));
    check(hl_permits_is_held(pool, &permit));
    expect_redisson("t2", "1", "permits.acquiredPermits pool");
    hl_permits_free(pool);
    close_client(client);
    check_int(strlen(redisson_end(waits)), 32);
}

RedissonLaw(lease, of_a_permit_is_set_anew_by_the_other_side)
{
    int64_t left_ms = 0;
    hl_permit permit, none;
    hl_permits *pool = fill_pool(open_client(NULL), 2);
    hl_permit javas = permit_of_java("t1", "permits.acquire pool");
    expect_ok(hl_permits_acquire_with(pool, ACQUIRE(.lease_ms = 60000), &permit, NULL));
    expect_ok(hl_permits_lease_left(pool, &javas, &left_ms, NULL));
    check_int(left_ms, -1);
    expect_outcome(hl_permits_try_acquire(pool, &none, NULL), HL_EBUSY);
    expect_ok(hl_permits_update_lease(pool, &javas, 300, NULL));
    expect_redisson("t1", "true", "permits.updateLeaseTime pool %s 300", permit.id);
    for (int i = 0; i < 2; i++)
        expect_ok(hl_permits_acquire_for(pool, LONG_BEFORE_MS, &none, NULL));
    expect_redisson("t1", "false", "permits.tryRelease pool %s", javas.id);
    hl_permits_free(pool);
}

/* ---- All at once ---- */

struct user {
    hl_permits *pool;
    int64_t until_ms, turns;
};

static void use(void *arg)
{
    struct user *me = arg;
    redisContext *link = redis_link_connect(redis_server_socket(server));
    must(link);
    while (now_ms() < me->until_ms) {
        hl_permit permit;
        expect_ok(hl_permits_acquire(me->pool, &permit, NULL));
        pool_visit(link, PERMITS);
        expect_ok(hl_permits_release(me->pool, &permit, NULL));
        me->turns++;
    }
    redisFree(link);
}

EverywhereLaw(permits, are_never_taken_more_than_there_are_by_threads_of_both_sides)
{
    static struct user users[THREADS];
    struct actor *actors[THREADS];
    int javas[THREADS];
    int64_t c = 0, java = 0;
    hl_permits *pool = fill_pool(open_client(NULL), PERMITS);
    for (int i = 0; i < THREADS; i++) {
        javas[i] = redisson_begin(i ? "t1" : "t2", "permits.use pool inside:{pool} %d %d", PERMITS,
                                  RUN_MS);
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
    hl_permits_free(pool);
}
