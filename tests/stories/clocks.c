/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The lock's value is the time at which it ends, and each machine compares it with its own clock.
 * The test sets the clock of this process, which plays the machines in turn (--wrap=clock_gettime).
 */
#include "naive.h"

#include <time.h>

enum { LEASE_S = 30 };

static int64_t clock_s = 100; /* what the machine reads whose turn it is */

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    if (clock != CLOCK_REALTIME)
        return __real_clock_gettime(clock, ret_time);
    *ret_time = (struct timespec){.tv_sec = clock_s};
    return 0;
}

SingleLaw(naive, machine_whose_clock_is_ahead_steals)
{
    struct naive *a = naive_at(server, "A"), *b = naive_at(server, "B");

    check(naive_take_by_stamp(a, "job", LEASE_S));
    check(!naive_take_by_stamp(b, "job", LEASE_S)); /* B's clock is right */

    clock_s += 60; /* B's clock is a minute ahead */
    check(naive_take_by_stamp(b, "job", LEASE_S));
    tell_figure("naive: A and B both hold 'job', for B's clock is a minute ahead");
}

SingleLaw(naive, loser_overwrites_the_stamp_of_the_winner)
{
    struct naive *a = naive_at(server, "A");
    struct naive *b = naive_at(server, "B"), *c = naive_at(server, "C");

    naive_do(a, "SET job 99");                       /* A has died, and its time is over */
    check_str(naive_do(b, "GET job"), "99");         /* B sees that ... */
    check_str(naive_do(c, "GET job"), "99");         /* ... and so does C */
    check_str(naive_do(b, "GETSET job 130"), "99");  /* B has won */
    check_str(naive_do(c, "GETSET job 145"), "130"); /* C has lost, and knows it */

    check_str(naive_do(b, "GET job"), "145"); /* B looks whether the lock is still its own */
    tell_figure("naive: B holds 'job' until 130, and finds C's 145 there: is it B's to delete?");
}

SingleLaw(ours, lock_depends_on_no_clock_of_a_client)
{
    hl_client *client = open_client(NULL);
    hl_lock *a = new_lock(client, "job"), *b = new_lock(open_client(NULL), "job");

    expect_ok(hl_lock_acquire(a, ERR));
    clock_s += 60;
    expect_outcome(hl_lock_try_acquire(b, ERR), HL_EBUSY);
    expect_held_by(client, a, 1); /* who is refused writes nothing */
    check(hl_lock_is_held(a, NULL));
    tell_figure("ours: A holds 'job', and B is refused, whatever their clocks say");
}
