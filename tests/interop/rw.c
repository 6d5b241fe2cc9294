/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_rw_lock and RReadWriteLock: the write lock as a lock, and readers of both sides beside it. */
#include "laws.h"
#include "stock.h"

#include "support/actor.h"
#include "support/kinds.h"

struct halves {
    hl_lock *read, *write;
};

static struct halves new_halves(hl_client *client, const char *name)
{
    struct halves halves = {NULL, NULL};
    expect_ok(rw_lock_new(client, name, NULL, &halves.read, &halves.write, NULL));
    keep_lock(halves.read);
    keep_lock(halves.write);
    return halves;
}

static hl_lock *new_write(hl_client *client, const char *name)
{
    return new_halves(client, name).write;
}

static void java_listens_to_rw(const char *name, int n)
{
    char channel[128];
    snprintf(channel, sizeof channel, "redisson_rwlock:{%s}", name);
    expect_listening(channel, n);
}

static const struct lock_kind write_lock = {"write", new_write, java_listens_to_rw};

LawsOfWaking(write_lock) LawsOfLeases(write_lock) LawOfWatchdogs(EverywhereLaw, write_lock)
    LawsOfReentry(write_lock)

    /* ---- Readers beside each other ---- */

    static int java_waits_to(const char *what, int listeners)
{
    int waits = redisson_begin("waiter", "%s.lock stock", what);
    java_listens_to_rw("stock", listeners);
    check(!redisson_is_done(waits));
    return waits;
}

static struct actor *c_waits_for(hl_client *client, hl_lock *half)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, half, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 1);
    check(!actor_is_done(actor));
    return actor;
}

EverywhereLaw(readers, of_both_sides_are_in_at_once_and_keep_both_writers_out)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    struct halves other = new_halves(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(stock.read, NULL));
    expect_redisson("t1", "true", "read.tryLock stock");
    expect_ok(hl_lock_acquire(other.read, NULL));
    expect_redisson("t2", "true", "read.tryLock stock");
    expect_redisson("t3", "false", "write.tryLock stock");
    struct actor *writer = actor_start();
    expect_outcome(actor_acquire(writer, stock.write, ACQUIRE(.wait_ms = HL_NO_WAIT)), HL_EBUSY);
    expect_ok(hl_lock_release(stock.read, NULL));
    redisson_do("t1", "read.unlock stock");
    redisson_do("t2", "read.unlock stock");
    expect_redisson("t3", "false", "write.tryLock stock");
    expect_ok(hl_lock_release(other.read, NULL));
    expect_redisson("t3", "true", "write.tryLock stock");
    expect_outcome(hl_lock_try_acquire(stock.read, NULL), HL_EBUSY);
    redisson_do("t3", "write.unlock stock");
    expect_free(stock.write);
    check_int(redis_int(server, "DBSIZE"), 0);
}

EverywhereLaw(last_reader, of_c_wakes_a_writer_of_javas)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    redisson_do("t1", "read.lock stock");
    expect_ok(hl_lock_acquire(stock.read, NULL));
    int waits = java_waits_to("write", 1);
    redisson_do("t1", "read.unlock stock");
    check(!redisson_is_done(waits));
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_release(stock.read, NULL));
    redisson_end(waits);
    expect_woken(redisson_ended_ms(waits), before_ms);
}

EverywhereLaw(last_reader, of_javas_wakes_a_writer_of_c)
{
    hl_client *client = open_client_that_hardly_polls();
    struct halves stock = new_halves(client, "stock");
    struct halves other = new_halves(open_client(NULL), "stock");
    redisson_do("t1", "read.lock stock");
    expect_ok(hl_lock_acquire(other.read, NULL));
    struct actor *writer = c_waits_for(client, stock.write);
    expect_ok(hl_lock_release(other.read, NULL));
    check(!actor_is_done(writer));
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "read.unlock stock");
    expect_ok(actor_end(writer));
    expect_woken(monotonic_ms(), before_ms);
}

EverywhereLaw(writer_of_c, that_leaves_lets_all_readers_of_javas_in)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(stock.write, NULL));
    int waits[3];
    for (int i = 0; i < 3; i++) {
        char who[8];
        snprintf(who, sizeof who, "t%d", i);
        waits[i] = redisson_begin(who, "read.lock stock");
        expect_asleep(who); /* a message that wakes all leaves nothing for those who come later */
    }
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_release(stock.write, NULL));
    for (int i = 0; i < 3; i++) {
        redisson_end(waits[i]);
        expect_woken(redisson_ended_ms(waits[i]), before_ms);
    }
    expect_outcome(hl_lock_try_acquire(stock.write, NULL), HL_EBUSY);
}

EverywhereLaw(writer_of_javas, that_leaves_lets_all_readers_of_c_in)
{
    hl_client *client = open_client_that_hardly_polls();
    struct halves stock = new_halves(client, "stock");
    struct actor *readers[3];
    redisson_do("t1", "write.lock stock");
    for (int i = 0; i < 3; i++) {
        readers[i] = actor_start();
        actor_begin_acquire(readers[i], stock.read, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    }
    expect_waiters(client, 3);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "write.unlock stock");
    for (int i = 0; i < 3; i++)
        expect_ok(actor_end(readers[i]));
    expect_woken(monotonic_ms(), before_ms);
    expect_redisson("t1", "false", "write.tryLock stock");
}

/* ---- Leases of readers ---- */

RedissonLaw(reader_of_c, with_a_short_lease_takes_nothing_from_one_of_javas)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    redisson_do("t1", "read.lock stock");
    expect_ok(hl_lock_acquire_with(stock.read, ACQUIRE(.lease_ms = 500), NULL));
    check(redis_int(server, "PTTL stock") > LONG_BEFORE_MS);
    check(redis_wait_int(server, 1, 20000, "EVAL %s 0",
                         "return #redis.call('KEYS', '*:rwlock_timeout:*')"));
    expect_outcome(hl_lock_release(stock.read, NULL), HL_ELOST);
    check(redis_int(server, "PTTL stock") > LONG_BEFORE_MS);
    expect_redisson("t2", "false", "write.tryLock stock");
    redisson_do("t1", "read.unlock stock");
    expect_redisson("t2", "true", "write.tryLock stock");
}

RedissonLaw(reader_of_javas, with_a_short_lease_takes_nothing_from_one_of_c)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(stock.read, NULL));
    redisson_do("t1", "read.lock stock 500");
    check(redis_int(server, "PTTL stock") > LONG_BEFORE_MS);
    check(redis_wait_int(server, 1, 20000, "EVAL %s 0",
                         "return #redis.call('KEYS', '*:rwlock_timeout:*')"));
    redisson_do("t2", "read.lock stock");
    redisson_do("t2", "read.unlock stock");
    check(hl_lock_is_held(stock.read, NULL));
    expect_redisson("t2", "false", "write.tryLock stock");
    expect_ok(hl_lock_release(stock.read, NULL));
    /* Java has not let go of what it lost. */
    expect_redisson("t2", "true", "write.tryLock stock");
}

/* Redisson's watchdog sets the whole lock's expiry to its own lease. */
RedissonLaw(reader_of_c, with_a_long_lease_outlives_the_watchdog_of_a_reader_of_javas)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    redisson_open("brief", BRIEF_MS);
    expect_ok(hl_lock_acquire_with(stock.read, ACQUIRE(.lease_ms = 60000), NULL));
    redisson_do("brief/t1", "read.lock stock");
    check(wait_until(was_renewed, &(struct watch){.name = "stock"}, 60000));
    redisson_do("brief/t1", "read.unlock stock");
    redisson_close("brief");
    /* Longer than Java's last word could make it last. */
    int waits = redisson_begin("t1", "write.tryLock stock %lld -1", (long long)(2 * BRIEF_MS));
    check_str(redisson_end(waits), "false");
    check(hl_lock_is_held(stock.read, NULL));
    expect_ok(hl_lock_release(stock.read, NULL));
    expect_redisson("t1", "true", "write.tryLock stock");
}

RedissonLaw(watchdog_of_c, keeps_a_reader_beside_one_of_javas_that_comes_and_goes)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = BRIEF_MS));
    struct halves stock = new_halves(client, "stock");
    redisson_open("brief", BRIEF_MS);
    expect_ok(hl_lock_acquire(stock.read, NULL));
    for (uint64_t renewals = 0; renewals < 9; renewals = stats_of(client).renewals) {
        redisson_do("brief/t1", "read.lock stock");
        redisson_do("brief/t1", "read.unlock stock");
        expect_redisson("brief/t1", "false", "write.tryLock stock");
    }
    check(hl_lock_is_held(stock.read, NULL));
    expect_ok(hl_lock_release(stock.read, NULL));
    expect_redisson("brief/t1", "true", "write.tryLock stock");
}

/* ---- From one to the other ---- */

EverywhereLaw(writer_of_c, that_goes_on_as_a_reader_lets_readers_of_javas_in)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(stock.write, NULL));
    expect_ok(hl_lock_acquire(stock.read, NULL));
    int waits = java_waits_to("read", 1);
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_release(stock.write, NULL));
    redisson_end(waits);
    expect_woken(redisson_ended_ms(waits), before_ms);
    check(hl_lock_is_held(stock.read, NULL));
    expect_redisson("t1", "false", "write.tryLock stock");
    redisson_do("waiter", "read.unlock stock");
    expect_redisson("t1", "false", "write.tryLock stock");
    expect_ok(hl_lock_release(stock.read, NULL));
    expect_redisson("t1", "true", "write.tryLock stock");
}

/* Redisson publishes nothing, so this takes a poll. */
RedissonLaw(writer_of_javas, that_goes_on_as_a_reader_lets_readers_of_c_in)
{
    hl_client *client = open_client(NULL);
    struct halves stock = new_halves(client, "stock");
    redisson_do("t1", "write.lock stock");
    redisson_do("t1", "read.lock stock");
    struct actor *reader = c_waits_for(client, stock.read);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "write.unlock stock");
    expect_ok(actor_end(reader));
    expect_woken(monotonic_ms(), before_ms);
    redisson_do("t1", "read.unlock stock");
    expect_redisson("t2", "false", "write.tryLock stock");
    expect_ok(actor_release(reader, stock.read, NULL));
    expect_redisson("t2", "true", "write.tryLock stock");
}

RedissonLaw(reader, is_not_made_a_writer_by_either_side)
{
    struct halves stock = new_halves(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(stock.read, NULL));
    expect_outcome(hl_lock_acquire(stock.write, NULL), HL_EDEADLK);
    redisson_do("t1", "read.lock stock");
    expect_redisson("t1", "false", "write.tryLock stock 200 -1");
    expect_redisson("t1", "1", "read.getHoldCount stock");
    redisson_do("t1", "read.unlock stock");
    expect_ok(hl_lock_release(stock.read, NULL));
    expect_free(stock.read);
}

/* ---- All at once ---- */

RedissonLaw(stock, that_writers_of_both_sides_serve_loses_nothing)
{
    hl_client *client = open_client(NULL);
    struct stock_result result = stock_run(&(struct stock_team){
        "write", "stock", {new_write(client, "stock"), new_write(client, "stock")}, 4000});
    check(result.c.turns > 0 && result.java.turns > 0);
}
