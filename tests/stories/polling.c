/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A holds the lock, and B wants it. How many commands does B's wait cost the server? */
#include "naive.h"

#include "support/actor.h"

#include <time.h>

enum { POLLS = 100, LEASE_MS = 60000 };

static void poll_until_taken(void *arg)
{
    struct naive *b = arg;
    while (!naive_take(b, "naive:job", LEASE_MS))
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000000}, NULL);
}

/* Both waits begin and end together, so they may be compared on a machine of any speed. */
SingleLaw(naive_and_ours, waiter_that_polls_costs_a_command_at_each_look_and_ours_is_woken)
{
    struct naive *naive_a = naive_at(server, "A"), *naive_b = naive_at(server, "B");
    hl_lock *a = new_lock(open_client(NULL), "job"), *b = new_lock(open_client(NULL), "job");
    struct actor *poller = actor_start();

    check(naive_take(naive_a, "naive:job", LEASE_MS));
    expect_ok(hl_lock_acquire(a, ERR));
    redis_do(server, "CONFIG RESETSTAT");
    naive_b->is_quiet = true;
    actor_begin(poller, poll_until_taken, naive_b);
    struct actor *waiter = actor_start_acquire(b, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    while (redis_calls(server, "set") < POLLS)
        deadline_nap();

    naive_drop(naive_a, "naive:job");
    expect_ok(hl_lock_release(a, ERR));
    actor_await(poller);
    expect_ok(actor_end(waiter));
    int64_t naive = redis_calls(server, "set"), ours = redis_requests(server);
    check(naive >= POLLS && ours * 5 < naive);
    tell_figure("naive: B's wait has cost the server %jd commands", (intmax_t)naive);
    tell_figure("ours: B's wait and A's release have cost it %jd", (intmax_t)ours);
}
