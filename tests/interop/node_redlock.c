/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Beside redlock for node, with ioredis. */
#include "redlock_laws.h"

const struct library library = {"redlock", "node", "evalsha",
                                "ExecutionError: The operation was unable to achieve a quorum",
                                "ExecutionError: The operation was unable to achieve a quorum"};

struct count {
    const char *value;
    size_t masters;
};

static bool has_so_many(void *arg)
{
    const struct count *count = arg;
    return masters_with_value("stock", count->value) == count->masters;
}

static void let_go(size_t from, size_t end)
{
    for (size_t i = from; i < end; i++)
        redis_do(masters.server[i], "DEL stock");
}

/* Between its tries redlock gives nothing back, and its script takes a key of its own for
 * another's: so it may have four of five masters, and keep everybody out, itself too. */
static void law_their_tries_keep_a_minority_and_then_all_out(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "stock");
    hl_error err = HL_ERROR_INIT;
    char own[128];
    for (int i = 0; i < 3; i++)
        redis_do(masters.server[i], "SET stock another PX %d", LEASE_MS);
    int waits = peer_begin("a", "acquire stock %d 10000", (int)WAITER_MS);
    expect_masters_with("stock", 5);
    snprintf(own, sizeof own, "%s", redis_str(masters.server[4], "GET stock"));
    let_go(0, 2);
    check(wait_until(has_so_many, &(struct count){own, 4}, 20000));
    expect_outcome(hl_lock_try_acquire(ours, &err), HL_EBUSY);
    check_str(err.busy.owner, own);
    check(!peer_is_done(waits));
    tell_figure("redlock has 4 of 5 masters, and says that it has not: %s", err.text);
    let_go(0, 5);
    check_str(peer_end(waits), "true");
}

/* clang-format off */
LawsOfSharing(one_master, peer_up_one)
LawsOfSharing(five_masters, peer_up_five)
LawsOfMasters(five_masters)
PeerLaw(five_masters, peer_up_five, their_tries_keep_a_minority_and_then_all_out)
