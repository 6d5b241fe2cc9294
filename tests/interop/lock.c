/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One lock, held by C and by a real Redisson in turn. */
#include "redisson.h"

#include "support/actor.h"

static const char channel[] = "redisson_lock__channel:{stock}";
static const char not_locked[] = "java.lang.IllegalMonitorStateException: attempt to unlock lock";

/* A client whose waiters are woken by messages, for it would poll too late. */
static hl_client *open_deaf_to_time(void)
{
    return open_client(CLIENT(.poll_ms = REDISSON_LEASE_MS));
}

static int java_begins_to_wait(void)
{
    int waits = redisson_begin("waiter", "lock.lock stock");
    expect_listening(channel, 1);
    check(!redisson_is_done(waits));
    return waits;
}

/* It is C's turn, which began to wait while Java held the lock. */
static struct actor *c_begins_to_wait(hl_lock *lock)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_listening(channel, 1);
    check(!actor_is_done(actor));
    return actor;
}

static void expect_soon_after(int64_t then_ms, int64_t since_ms)
{
    check_msg(then_ms >= since_ms && then_ms - since_ms < slow_ms(LONG_BEFORE_MS),
              "it came after %d ms", (int)(then_ms - since_ms));
}

static hl_lock_info inspected(hl_lock *lock)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    return info;
}

/* ---- Waking ---- */

Law(release_by_c, wakes_java_long_before_the_lease_ends)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = java_begins_to_wait();
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
    expect_soon_after(redisson_ended_ms(waits), before_ms);
    expect_redisson("waiter", "true", "lock.isHeldByCurrentThread stock");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisson_do("waiter", "lock.unlock stock");
    expect_free(lock);
}

Law(unlock_by_java, wakes_c_long_before_the_lease_ends)
{
    hl_client *client = open_deaf_to_time();
    hl_lock *lock = new_lock(client, "stock");
    redisson_do("t1", "lock.lock stock");
    struct actor *waiter = c_begins_to_wait(lock);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "lock.unlock stock");
    expect_ok(actor_end(waiter));
    expect_soon_after(monotonic_ms(), before_ms);
    expect_held_by(client, lock, 1);
    expect_redisson("t1", "false", "lock.tryLock stock");
    expect_ok(actor_release(waiter, lock, NULL));
    expect_redisson("t1", "true", "lock.tryLock stock");
}

Law(waiters_of_two_javas_and_two_cs, are_all_served)
{
    hl_lock *lock[] = {new_lock(open_deaf_to_time(), "stock"),
                       new_lock(open_deaf_to_time(), "stock")};
    struct actor *actor[] = {actor_start(), actor_start()};
    redisson_open("second", 0);
    redisson_do("t1", "lock.lock stock");
    int waits[] = {redisson_begin("t2", "lock.tryLock stock 60000"),
                   redisson_begin("second/t1", "lock.tryLock stock 60000")};
    for (int i = 0; i < 2; i++)
        actor_begin_acquire(actor[i], lock[i], ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_listening(channel, 4);
    redisson_do("t1", "lock.unlock stock");
    bool served[4] = {false};
    for (int left = 4; left > 0; deadline_nap()) {
        for (int i = 0; i < 2; i++) {
            if (!served[i] && actor_is_done(actor[i])) {
                expect_ok(actor_end(actor[i]));
                expect_ok(actor_release(actor[i], lock[i], NULL));
                served[i] = true;
                left--;
            }
            if (!served[2 + i] && redisson_is_done(waits[i])) {
                check_str(redisson_end(waits[i]), "true");
                redisson_do(i == 0 ? "t2" : "second/t1", "lock.unlock stock");
                served[2 + i] = true;
                left--;
            }
        }
    }
    expect_free(lock[0]);
}

Law(name, with_braces_or_with_any_letters_is_the_same_lock)
{
    static const char *const names[] = {"order:{42}:lock",
                                        "lager:gr\xc3\xb6\xc3\x9f"
                                        "e",
                                        "\xe5\xba\x93\xe5\xad\x98"};
    hl_client *client = open_deaf_to_time();
    for (int i = 0; i < 3; i++) {
        hl_lock *lock = new_lock(client, names[i]);
        expect_ok(hl_lock_acquire(lock, NULL));
        int waits = redisson_begin("t1", "lock.lock %s", names[i]);
        const char *form =
            strchr(names[i], '{') ? "redisson_lock__channel:%s" : "redisson_lock__channel:{%s}";
        char its_channel[128];
        snprintf(its_channel, sizeof its_channel, form, names[i]);
        expect_listening(its_channel, 1);
        expect_ok(hl_lock_release(lock, NULL));
        redisson_end(waits);
        expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
        redisson_do("t1", "lock.unlock %s", names[i]);
    }
}

/* ---- Reentry and owners ---- */

Law(reentry_of_java, is_seen_by_c)
{
    const char *id = redisson_open("second", 0);
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    redisson_do("second/t1", "lock.lock stock");
    redisson_do("second/t1", "lock.lock stock");
    hl_lock_info info = inspected(lock);
    check(info.locked && !info.mine);
    check_int(info.hold_count, 2);
    check(strncmp(info.owner, id, strlen(id)) == 0 && info.owner[strlen(id)] == ':');
    check(info.lease_left_ms > 0 && info.lease_left_ms <= REDISSON_LEASE_MS);
    redisson_do("second/t1", "lock.unlock stock");
    check_int(inspected(lock).hold_count, 1);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisson_do("second/t1", "lock.unlock stock");
    expect_ok(hl_lock_try_acquire(lock, NULL));
}

Law(reentry_of_c, keeps_java_out_until_the_last_release)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_held_by(client, lock, 2);
    int waits = java_begins_to_wait();
    expect_redisson("t1", "true", "lock.isLocked stock");
    expect_redisson("t1", "0", "lock.getHoldCount stock");
    int64_t left_ms = redisson_number("t1", "lock.remainTimeToLive stock");
    check(left_ms > 0 && left_ms <= REDISSON_LEASE_MS);
    expect_ok(hl_lock_release(lock, NULL));
    expect_held_by(client, lock, 1);
    check(!redisson_is_done(waits));
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
}

Law(release, of_what_the_other_holds_is_refused_by_both)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_thrown(redisson_begin("t1", "lock.unlock stock"), not_locked);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    redisson_do("t1", "lock.lock stock");
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    expect_redisson("t1", "true", "lock.isHeldByCurrentThread stock");
    redisson_do("t1", "lock.unlock stock");
}

/* ---- Force ---- */

Law(force_release_by_c, takes_the_lock_from_java_and_wakes_java)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    redisson_do("t1", "lock.lock stock");
    int waits = java_begins_to_wait();
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_force_release(lock, NULL));
    redisson_end(waits);
    expect_soon_after(redisson_ended_ms(waits), before_ms);
    expect_thrown(redisson_begin("t1", "lock.unlock stock"), not_locked);
    redisson_do("waiter", "lock.unlock stock");
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOTOWNER);
}

Law(force_unlock_by_java, takes_the_lock_from_c_and_wakes_c)
{
    hl_client *client = open_deaf_to_time();
    hl_lock *lock = new_lock(open_client(NULL), "stock"), *other = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    struct actor *waiter = c_begins_to_wait(other);
    int64_t before_ms = monotonic_ms();
    expect_redisson("t1", "true", "lock.forceUnlock stock");
    expect_ok(actor_end(waiter));
    expect_soon_after(monotonic_ms(), before_ms);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_held_by(client, other, 1);
    expect_ok(actor_release(waiter, other, NULL));
    expect_redisson("t1", "false", "lock.forceUnlock stock");
}

/* ---- Giving up ---- */

Law(try_by_java, ends_in_vain_when_its_wait_time_does)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_redisson("t1", "false", "lock.tryLock stock");
    int64_t before_ms = monotonic_ms();
    int tries = redisson_begin("t1", "lock.tryLock stock 300 -1");
    check_str(redisson_end(tries), "false");
    check(redisson_ended_ms(tries) - before_ms >= 300);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_redisson("t1", "true", "lock.tryLock stock 300 -1");
}

Law(try_by_c, ends_in_vain_when_its_wait_time_does)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    redisson_do("t1", "lock.lock stock");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    int64_t before_ms = monotonic_ms();
    expect_outcome(hl_lock_acquire_for(lock, 300, NULL), HL_ETIMEDOUT);
    check(monotonic_ms() - before_ms >= 300);
    redisson_do("t1", "lock.unlock stock");
    expect_ok(hl_lock_acquire_for(lock, 300, NULL));
}

Law(waiter_of_either_side, that_is_interrupted_leaves_the_lock_to_others)
{
    hl_client *client = open_deaf_to_time();
    hl_lock *lock = new_lock(client, "stock");
    hl_cancel *cancel = new_cancel();
    struct actor *waiter = actor_start();
    redisson_do("t1", "lock.lock stock");
    int waits = redisson_begin("waiter", "lock.lockInterruptibly stock");
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel));
    expect_listening(channel, 2);
    redisson_interrupt("waiter");
    expect_thrown(waits, "java.lang.InterruptedException");
    check(!actor_is_done(waiter));
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(waiter), HL_ECANCELED);
    redisson_do("t1", "lock.unlock stock");
    expect_redisson("waiter", "true", "lock.tryLock stock");
    redisson_do("waiter", "lock.unlock stock");
    expect_ok(hl_lock_try_acquire(lock, NULL));
}
