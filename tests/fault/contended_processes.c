/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Processes that die, stop, fork, close and lose threads, while they and others hand one lock on:
 * by grants, passes and retained locks, with posted releases among them. */

#include "support/crowd.h"
#include "support/redis_probe.h"
#include "support/test.h"

/* On a busy machine a thread gets its turn a little later. */
enum { THREADS = 3, SLACK_MS = 1500 };

static struct redis_server *server;
static struct crowd *crowd;

static void start(void)
{
    server = redis_server_start(NULL);
    crowd = crowd_start(THREADS, 0);
    crowd_begin(crowd, server);
}

static void stop(void)
{
    redis_server_stop(server);
}

/* The lease ends by itself, without a message. */
Test(contended_processes, a_killed_holder_costs_the_rest_of_its_lease, .init = start, .fini = stop)
{
    int victim = crowd_stop_holder(crowd);
    crowd_kill(crowd, victim);
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, false);
}

/* Its socket is open, so it seems to listen; so it is granted the lock, once. */
Test(contended_processes, a_waiter_killed_after_its_grant_costs_a_claim, .init = start,
     .fini = stop)
{
    int victim = crowd_stop_queued(crowd);
    crowd_wait_granted(crowd, victim);
    crowd_kill(crowd, victim);
    crowd_expect_served(crowd, CROWD_CLAIM_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, false);
}

/* None, if the server notices its end before its turn comes. */
Test(contended_processes, a_waiter_killed_in_the_queue_costs_a_claim_at_most, .init = start,
     .fini = stop)
{
    int victim = crowd_stop_queued(crowd);
    crowd_kill(crowd, victim);
    crowd_expect_served(crowd, CROWD_CLAIM_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, false);
}

/* The last one is alone with what they have left. */
Test(contended_processes, a_survivor_of_two_that_stopped_in_the_queue_waits_once, .init = start,
     .fini = stop)
{
    int first = crowd_stop_queued(crowd), second = crowd_stop_queued(crowd);
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_CLAIM_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_continue(crowd, first);
    crowd_continue(crowd, second);
    crowd_expect_served(crowd, CROWD_CLAIM_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, true);
}

/* A stopped holder does not believe in its hold when it runs again. */
Test(contended_processes, a_holder_stopped_past_its_lease_is_followed_and_knows_its_loss,
     .init = start, .fini = stop)
{
    for (int round = 0; round < 2; round++) {
        int victim = crowd_stop_holder(crowd);
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
        crowd_go_on(CROWD_LEASE_MS / 2);
        crowd_continue(crowd, victim);
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    }
    crowd_end(crowd, true);
}

Test(contended_processes, a_process_stopped_before_its_grant_comes_does_not_take_it_up_late,
     .init = start, .fini = stop)
{
    for (int round = 0; round < 3; round++) {
        int victim = crowd_stop_queued(crowd);
        crowd_wait_granted(crowd, victim);
        if (round > 0) /* its claim is over */
            crowd_expect_served(crowd, CROWD_CLAIM_MS + CROWD_POLL_MS + SLACK_MS);
        crowd_continue(crowd, victim);
        crowd_expect_served(crowd, CROWD_CLAIM_MS + CROWD_POLL_MS + SLACK_MS);
    }
    crowd_end(crowd, true);
}

/* The key is left to its lease, however many of its own process wait. */
Test(contended_processes, a_thread_that_ends_while_it_holds_costs_a_lease, .init = start,
     .fini = stop)
{
    for (int i = 0; i < CROWD_PROCESSES; i++) {
        crowd_order(crowd, i, CROWD_LEAVES);
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    }
    crowd_end(crowd, false);
}

Test(contended_processes, a_close_ends_all_waits_and_frees_retained_locks, .init = start,
     .fini = stop)
{
    for (int i = 0; i < CROWD_PROCESSES - 1; i++) {
        crowd_order(crowd, i, CROWD_CLOSES);
        crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    }
    crowd_end(crowd, false);
}

/* A child that lives on has none of its parent's sockets, and so nothing is granted to it. */
Test(contended_processes, a_fork_changes_nothing_and_its_child_holds_no_place, .init = start,
     .fini = stop)
{
    for (int i = 0; i < CROWD_PROCESSES; i++)
        crowd_order(crowd, i, CROWD_FORKS);
    crowd_expect_served(crowd, CROWD_POLL_MS + SLACK_MS);
    int victim = crowd_stop_holder(crowd);
    crowd_kill(crowd, victim);
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    check(redis_wait_clients(server, REDIS_PUBSUB, CROWD_PROCESSES - 1, 5000));
    crowd_end(crowd, false);
}
