/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* When the client takes silence for an outage, and when it does not. */

#include "support/kit.h"

Law(outage, is_not_suspected_when_a_waiter_sleeps_past_the_outage_timeout_between_polls)
{
    hl_client *holder = open_client(NULL);
    hl_client *waiter = open_client(CLIENT(.outage_timeout_ms = slow_ms(2000), .poll_ms = 10000));
    hl_lock *held = new_lock(holder, "long"), *wanted = new_lock(waiter, "long");
    int64_t begin = now_ms();

    expect_ok(hl_lock_acquire(held, NULL));
    expect_outcome(hl_lock_acquire_for(wanted, slow_ms(3500), NULL), HL_ETIMEDOUT);
    check_msg(now_ms() - begin >= slow_ms(3500), "the wait ended after %lld ms",
              (long long)(now_ms() - begin));
}

Law(outage, ends_a_call_by_the_reason_and_not_as_a_timeout)
{
    hl_client *client =
        open_client(CLIENT(.outage_timeout_ms = slow_ms(1000), .request_timeout_ms = slow_ms(300)));
    hl_lock *lock = new_lock(client, "out");

    redis_server_freeze(server);
    expect_outcome(hl_lock_acquire(lock, NULL), HL_ECONN);
    redis_server_thaw(server);
}

Law(min_hold, is_told_to_others_as_what_it_is)
{
    hl_lock *lock = new_lock(open_client(NULL), "rests");
    hl_error err = HL_ERROR_INIT;
    double left_s = 0;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = 60000), NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    check_msg(sscanf(err.text, "acquire 'rests': it rests for %lf s more", &left_s) == 1, "%s",
              err.text);
    check(left_s > 1 && left_s <= 60);
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(1500), &err), HL_ETIMEDOUT);
    check_msg(strstr(err.text, "the wait time is over; it rests for "), "%s", err.text);
}

Law(min_hold, is_kept_when_the_close_releases)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE));
    hl_lock *lock = new_lock(client, "rests");

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = 60000), NULL));
    close_client(client);
    int64_t left = redis_int(server, "PTTL rests");
    check_msg(left > 50000 && left <= 60001, "PTTL is %lld", (long long)left);
}
