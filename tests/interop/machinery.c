/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Checks that these tests notice Java's exceptions, its log, and its death. */
#include "redisson.h"

static const char channel[] = "redisson_lock__channel:{stock}";

static bool has_logged(void *arg)
{
    const char *words = arg;
    return strstr(redisson_take_log(), words) != NULL;
}

RedissonLaw(java_side, does_what_it_is_told_by_several_threads)
{
    redisson_do("t1", "lock.lock stock");
    expect_redisson("t1", "true", "lock.isHeldByCurrentThread stock");
    expect_redisson("t2", "false", "lock.isHeldByCurrentThread stock");
    int waits = redisson_begin("t2", "lock.lock stock");
    expect_listening(channel, 1);
    check(!redisson_is_done(waits));
    redisson_do("t1", "lock.unlock stock");
    redisson_end(waits);
    expect_redisson("t2", "1", "lock.getHoldCount stock");
}

RedissonLaw(java_side, tells_exceptions_by_class_and_message)
{
    expect_thrown(redisson_begin("t1", "lock.unlock stock"),
                  "java.lang.IllegalMonitorStateException: attempt to unlock lock, not locked");
    expect_thrown(redisson_begin("t1", "lock.paint stock"),
                  "java.lang.IllegalArgumentException: there is no lock.paint");
    expect_thrown(redisson_begin("nobody/t1", "lock.lock stock"),
                  "java.lang.IllegalArgumentException: there is no client nobody");
    expect_thrown(redisson_begin("t1", "lock.tryLock stock soon"),
                  "java.lang.NumberFormatException");
}

RedissonLaw(java_side, logs_a_message_that_it_cannot_parse)
{
    redisson_do("t1", "lock.lock stock");
    redisson_begin("t2", "lock.lock stock");
    expect_listening(channel, 1);
    redis_do(server, "PUBLISH %s nonsense", channel);
    check(wait_until(has_logged, "nonsense", 20000));
    redisson_close("java"); /* and with it, all that it has to say has been said */
    redisson_take_log();
}

RedissonLaw(java_side, that_is_apart_can_be_killed)
{
    redisson_open_apart(0);
    redisson_do("other/t1", "lock.lock stock");
    expect_redisson("t1", "false", "lock.tryLock stock");
    redisson_kill_apart();
    expect_redisson("t1", "true", "lock.isLocked stock");
    expect_redisson("t1", "true", "lock.forceUnlock stock");
}

/* ---- Each kind of Redisson's, by itself ---- */

static void expect_exclusive(const char *kind)
{
    redisson_do("t1", "%s.lock thing", kind);
    expect_redisson("t2", "false", "%s.tryLock thing", kind);
    redisson_do("t1", "%s.unlock thing", kind);
    expect_redisson("t2", "true", "%s.tryLock thing 30000 -1", kind);
    redisson_do("t2", "%s.unlock thing", kind);
    check_int(redis_int(server, "EXISTS thing"), 0);
}

RedissonLaw(java_side, has_locks_of_all_kinds)
{
    static const char *const kinds[] = {"lock",   "fair",       "spin",  "fenced",
                                        "single", "singleFair", "write", "multi"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        expect_exclusive(kinds[i]);
}

RedissonLaw(java_side, has_read_and_write_locks)
{
    redisson_do("t1", "read.lock file");
    expect_redisson("t2", "true", "read.tryLock file");
    expect_redisson("t1", "false", "write.tryLock file");
    redisson_do("t1", "read.unlock file");
    redisson_do("t2", "read.unlock file");
    expect_redisson("t1", "true", "write.tryLock file");
    expect_redisson("t1", "true", "read.tryLock file");
    redisson_do("t1", "write.unlock file");
    redisson_do("t1", "read.unlock file");
}

RedissonLaw(java_side, has_tokens)
{
    check_int(redisson_number("t1", "fenced.lockAndGetToken job"), 1);
    redisson_do("t1", "fenced.unlock job");
    check_int(redisson_number("t2", "fenced.tryLockAndGetToken job 100"), 2);
    check_int(redisson_number("t2", "fenced.getToken job"), 2);
}

RedissonLaw(java_side, has_semaphores)
{
    expect_redisson("t1", "true", "semaphore.trySetPermits pool 2");
    redisson_do("t1", "semaphore.acquire pool 2");
    expect_redisson("t2", "false", "semaphore.tryAcquire pool 1 100");
    redisson_do("t2", "semaphore.release pool");
    expect_redisson("t2", "1", "semaphore.availablePermits pool");
    expect_redisson("t2", "true", "semaphore.releaseIfExists pool 3");
    expect_redisson("t2", "4", "semaphore.drainPermits pool");
    redisson_do("t2", "semaphore.addPermits pool 5");
    expect_redisson("t2", "true", "semaphore.delete pool");
}

RedissonLaw(java_side, has_permits)
{
    char id[64], ids[128];
    expect_redisson("t1", "true", "permits.trySetPermits pool 3");
    snprintf(id, sizeof id, "%s", redisson_do("t1", "permits.acquire pool 30000"));
    check_int(strlen(id), 32);
    check(redisson_number("t1", "permits.getLeaseTime pool %s", id) <= 30000);
    expect_redisson("t1", "true", "permits.updateLeaseTime pool %s 60000", id);
    snprintf(ids, sizeof ids, "%s", redisson_do("t2", "permits.acquireMany pool 2"));
    expect_redisson("t1", "-", "permits.tryAcquire pool");
    expect_redisson("t1", "3", "permits.acquiredPermits pool");
    redisson_do("t2", "permits.release pool %s", id);
    expect_redisson("t2", "2", "permits.tryReleaseMany pool %s", ids);
    expect_redisson("t2", "3", "permits.availablePermits pool");
}

RedissonLaw(java_side, has_latches)
{
    expect_redisson("t1", "true", "latch.trySetCount gate 2");
    int waits = redisson_begin("t1", "latch.await gate");
    expect_redisson("t2", "false", "latch.await gate 50");
    redisson_do("t2", "latch.countDown gate");
    expect_redisson("t2", "1", "latch.getCount gate");
    check(!redisson_is_done(waits));
    redisson_do("t2", "latch.countDown gate");
    check_str(redisson_end(waits), "true");
}
