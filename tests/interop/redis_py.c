/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Beside redis-py's Lock, which knows one master; and python-redis-lock. */
#include "redlock_laws.h"

const struct library library = {"redis-py", "python", "set", "false",
                                "Cannot release a lock that's no longer owned"};

static bool one_is_blocked(void *unused)
{
    (void)unused;
    return strstr(redis_str(server, "INFO clients"), "blocked_clients:1\r") != NULL;
}

/* It writes a key with a prefix, of which we could make a name; but it waits at a list. */
static void law_python_redis_lock_waits_at_a_list_that_we_do_not_write(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "lock:stock");
    expect_peer("-", "-", "open list python-redis-lock %s", redis_server_url(server));
    expect_ok(hl_lock_acquire(ours, ERR));
    int waits = peer_begin("list", "acquire stock %d 2", LEASE_MS);
    check(wait_until(one_is_blocked, NULL, 20000));
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with("lock:stock", 0);
    check(one_is_blocked(NULL) && !peer_is_done(waits));
    redis_do(server, "LPUSH lock-signal:stock 1");
    check_str(peer_end(waits), "true");
    expect_outcome(hl_lock_try_acquire(ours, ERR), HL_EBUSY);
    peer_do("list", "release stock");
}

/* clang-format off */
LawsOfSharing(one_master, peer_up_one)
PeerLaw(one_master, peer_up_one, python_redis_lock_waits_at_a_list_that_we_do_not_write)
