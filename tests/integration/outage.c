/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What an outage is, and what is none. */

#include "support/lock_support.h"

Test(outage, is_not_when_a_waiter_sleeps_longer_between_its_polls_than_the_outage_timeout,
     .init = server_up, .fini = server_down)
{
    hl_client *holder = open_client(NULL);
    hl_client *waiter = open_client(CLIENT(.outage_timeout_ms = 50, .poll_ms = 10000));
    hl_lock *held = new_lock(holder, "long"), *wanted = new_lock(waiter, "long");
    int64_t begin = now_ms();

    expect_ok(hl_lock_acquire(held, NULL));
    expect_outcome(hl_lock_acquire_for(wanted, 300, NULL), HL_ETIMEDOUT);
    check_msg(now_ms() - begin >= 300, "the wait ended after %lld ms",
              (long long)(now_ms() - begin));
}

Test(outage, ends_a_call_by_the_reason_and_not_as_a_timeout, .init = server_up, .fini = server_down)
{
    hl_client *client = open_client(CLIENT(.outage_timeout_ms = 100, .request_timeout_ms = 50));
    hl_lock *lock = new_lock(client, "out");

    redis_server_freeze(server);
    expect_outcome(hl_lock_acquire(lock, NULL), HL_ECONN);
    redis_server_thaw(server);
}

Test(min_hold, is_kept_when_the_close_releases, .init = server_up, .fini = server_down)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE));
    hl_lock *lock = new_lock(client, "rests");

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = 60000), NULL));
    close_client(client);
    int64_t left = redis_int(server, "PTTL rests");
    check_msg(left > 50000 && left <= 60001, "PTTL is %lld", (long long)left);
}
