/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* SETNX takes the lock, and EXPIRE is to give it an end. Between the two the process dies. */
#include "naive.h"

#include "support/process.h"

enum { TAKEN, NEVER };

static void take_and_die_before_expire(struct process *self, void *arg)
{
    struct naive *a = naive_at(server, "A");
    (void)arg;
    check(naive_setnx(a, "job"));
    process_tell(self, TAKEN);
    process_await(self, NEVER, 1, 60000); /* it is killed here */
    naive_do(a, "EXPIRE job 30");
}

SingleLaw(naive, setnx_and_a_crash_before_expire_leave_a_lock_for_ever)
{
    struct process *a = process_start(take_and_die_before_expire, NULL);
    struct naive *b = naive_at(server, "B");

    check(process_await(a, TAKEN, 1, 20000));
    process_kill(a);
    check(!naive_setnx(b, "job"));
    check_str(naive_do(b, "PTTL job"), "-1"); /* Redis: the key has no end */
    tell_figure("naive: A is dead, and holds 'job' for ever");
}

static void acquire_and_die(struct process *self, void *arg)
{
    hl_lock *lock = new_lock(open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS)), "job");
    (void)arg;
    expect_ok(hl_lock_acquire(lock, ERR));
    process_tell(self, TAKEN);
    process_await(self, NEVER, 1, 60000);
}

SingleLaw(ours, crash_frees_the_lock_when_its_lease_ends)
{
    struct process *a = process_start(acquire_and_die, NULL);

    check(process_await(a, TAKEN, 1, 20000));
    process_kill(a);
    check(redis_int(server, "PTTL job") != -1); /* one script sets the key and its end */
    hl_lock *b = new_lock(open_client(NULL), "job");
    expect_ok(hl_lock_acquire(b, ERR));
    tell_figure("ours: A is dead, and B has 'job' when A's lease has ended");
}
