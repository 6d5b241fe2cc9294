/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Two machines start the same job at 03:00, each by its own clock, and a lock is to let one of them
 * run it. B's clock is slow, so B's 03:00 comes when A has finished. */
#include "naive.h"

SingleLaw(naive, job_runs_twice_when_clocks_differ_by_more_than_it_takes)
{
    struct naive *a = naive_at(server, "A"), *b = naive_at(server, "B");

    check(naive_take(a, "job:03:00", 60000)); /* it is 03:00 at A */
    naive_do(a, "INCR runs");
    naive_drop(a, "job:03:00");

    check(naive_take(b, "job:03:00", 60000)); /* and now it is at B */
    check_str(naive_do(b, "INCR runs"), "2");
    tell_figure("naive: the job of 03:00 has run twice");
}

SingleLaw(ours, job_runs_once_when_the_lock_outlasts_the_difference_of_the_clocks)
{
    const hl_acquire_options *options = ACQUIRE(.wait_ms = HL_NO_WAIT, .min_hold_ms = 60000);
    hl_lock *a = new_lock(open_client(NULL), "job"), *b = new_lock(open_client(NULL), "job");

    expect_ok(hl_lock_acquire_with(a, options, ERR)); /* it is 03:00 at A */
    redis_do(server, "INCR runs");
    expect_ok(hl_lock_release(a, ERR));

    expect_outcome(hl_lock_acquire_with(b, options, ERR), HL_EBUSY); /* and now it is at B */
    check_int(redis_int(server, "GET runs"), 1);
    tell_figure("ours: the job of 03:00 has run once, for A's lock is kept for a minute");
}
