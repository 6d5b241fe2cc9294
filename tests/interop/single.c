/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* HL_LOCK_NON_REENTRANT and getNonReentrantLock(). */
#include "laws.h"
#include "support/kinds.h"

static hl_lock *new_single(hl_client *client, const char *name)
{
    hl_lock *lock = NULL;
    const hl_lock_options options = {.size = sizeof options, .flags = HL_LOCK_NON_REENTRANT};
    expect_ok(lock_new_with(client, name, &options, &lock, NULL));
    return keep_lock(lock);
}

static const struct lock_kind single = {"single", new_single, java_listens};

LawsOfWaking(single) LawsOfLeases(single) LawOfWatchdogs(RedissonLaw, single)

    RedissonLaw(single, that_its_own_holder_wants_again_is_refused_by_both_and_stays_held)
{
    hl_lock *lock = new_single(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(hl_lock_acquire(lock, NULL), HL_EDEADLK);
    expect_redisson("t1", "false", "single.tryLock stock");
    expect_ok(hl_lock_release(lock, NULL));
    redisson_do("t1", "single.lock stock");
    expect_thrown(redisson_begin("t1", "single.lock stock"),
                  "java.lang.IllegalMonitorStateException");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisson_do("t1", "single.unlock stock");
    expect_ok(hl_lock_try_acquire(lock, NULL));
}
