/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A is late, its lock has expired, and B has it. Now A releases what it believes to be its own. */
#include "naive.h"

enum { LEASE_MS = 60000 };

SingleLaw(naive, del_frees_the_lock_of_another)
{
    struct naive *a = naive_at(server, "A");
    struct naive *b = naive_at(server, "B"), *c = naive_at(server, "C");

    check(naive_take(a, "job", 100));
    check(redis_wait_int(server, 0, 20000, "EXISTS job")); /* A works for longer */
    check(naive_take(b, "job", LEASE_MS));
    naive_drop(a, "job"); /* A's work is done */
    check(naive_take(c, "job", LEASE_MS));
    tell_figure("naive: B and C both hold 'job', for A has deleted B's key");
}

SingleLaw(ours, late_release_leaves_the_lock_of_another)
{
    hl_client *client_b = open_client(NULL);
    hl_lock *a = new_lock(open_client(NULL), "job");
    hl_lock *b = new_lock(client_b, "job"), *c = new_lock(open_client(NULL), "job");

    expect_ok(hl_lock_acquire_with(a, ACQUIRE(.lease_ms = slow_ms(1000)), ERR));
    check(redis_wait_int(server, 0, 20000, "EXISTS job"));
    expect_ok(hl_lock_acquire(b, ERR));
    expect_outcome(hl_lock_release(a, ERR), HL_ELOST); /* A is told */
    expect_outcome(hl_lock_try_acquire(c, ERR), HL_EBUSY);
    expect_held_by(client_b, b, 1);
    tell_figure("ours: B holds 'job', and A's release says that A had lost it");
}
