/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hl_lock and RLock. */
#include "laws.h"

static const struct lock_kind lock = {"lock", new_lock, java_listens};

LawsOfWaking(lock) LawsOfLeases(lock) LawOfWatchdogs(EverywhereLaw, lock) LawsOfReentry(lock)

    /* What its letters are does not matter, nor whether it has braces of its own. */
    RedissonLaw(lock, has_its_name_in_any_letters)
{
    static const char *const names[] = {"order:{42}:lock",
                                        "lager:gr\xc3\xb6\xc3\x9f"
                                        "e",
                                        "\xe5\xba\x93\xe5\xad\x98"};
    hl_client *client = open_client_that_hardly_polls();
    for (int i = 0; i < 3; i++) {
        hl_lock *named = new_lock(client, names[i]);
        expect_ok(hl_lock_acquire(named, NULL));
        int waits = redisson_begin("t1", "lock.lock %s", names[i]);
        java_listens(names[i], 1);
        expect_ok(hl_lock_release(named, NULL));
        redisson_end(waits);
        expect_outcome(hl_lock_try_acquire(named, NULL), HL_EBUSY);
        redisson_do("t1", "lock.unlock %s", names[i]);
    }
}

RedissonLaw(lock, that_c_holds_twice_has_the_count_two_in_redis)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_held_by(client, stock, 2);
    expect_ok(hl_lock_release(stock, NULL));
    expect_held_by(client, stock, 1);
    expect_redisson("t1", "true", "lock.isLocked stock");
}
