/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The lock ends by itself after a time that was chosen once. One day the work takes longer. */
#include "naive.h"

SingleLaw(naive, work_that_outlasts_its_lease_is_no_longer_alone)
{
    struct naive *a = naive_at(server, "A"), *b = naive_at(server, "B");

    check(naive_take(a, "job", 100));
    naive_do(a, "INCR working");
    check(redis_wait_int(server, 0, 20000, "EXISTS job")); /* A works on */
    check(naive_take(b, "job", 60000));
    check_str(naive_do(b, "INCR working"), "2");
    tell_figure("naive: A and B both work on 'job', for A's work took longer than its lease");
}

SingleLaw(ours, watchdog_renews_the_lease_while_the_work_lasts)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *a = new_lock(client, "job"), *b = new_lock(open_client(NULL), "job");

    expect_ok(hl_lock_acquire(a, ERR));
    wait_stat(client, renewals, 4); /* a lease is renewed each third of it: the first is over */
    expect_outcome(hl_lock_try_acquire(b, ERR), HL_EBUSY);
    check(hl_lock_is_held(a, NULL));
    expect_ok(hl_lock_release(a, ERR));
    expect_ok(hl_lock_try_acquire(b, ERR));
    tell_figure("ours: A has worked on 'job' for longer than its lease, and alone");
}
