/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Renewals of many holds at several masters. */

#include "cluster_kit.h"

#include <stdio.h>

enum { MANY = 200, FIRST_SLOT = 100, PERIODS = 12, FEW = 10 };

static void masters_up(void)
{
    cluster_up_with(&(struct cluster_options){.without_replicas = true,
                                              .config = "cluster-require-full-coverage no"});
}

#define MastersLaw(suite, ...) Test(suite, __VA_ARGS__, .init = masters_up, .fini = server_down)

/* A request to the frozen node is not given up for much longer than the other hold's lease. */
MastersLaw(cluster_renewals, do_not_wait_for_a_node_that_stands_still)
{
    static struct events events;
    hl_client *client =
        open_client_at(cluster_url(cluster), CLIENT(.watchdog_timeout_ms = SHORT_MS,
                                                    .request_timeout_ms = slow_ms(120000)));
    hl_lock *beside = new_lock(client, name_at(1, "beside"));

    for (int i = 0; i < MANY; i++)
        expect_ok(
            hl_lock_acquire(new_lock(client, cluster_name_in_slot(FIRST_SLOT + i, "held")), ERR));
    expect_ok(
        hl_lock_acquire_with(beside, ACQUIRE(.on_event = count_event, .event_arg = &events), ERR));
    redis_server_freeze(cluster_node(cluster, 0));
    wait_stat(client, losses, MANY);
    wait_stat(client, renewals, stats_of(client).renewals + PERIODS);
    server = cluster_node(cluster, 1);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_held_by(client, beside, 1);
    expect_ok(hl_lock_release(beside, ERR));
    redis_server_thaw(cluster_node(cluster, 0));
}

static int64_t renewals_of(hl_client *client)
{
    return (int64_t)stats_of(client).renewals;
}

/* Acquired so far apart that none is due when another is. */
MastersLaw(cluster_renewals, of_one_slot_come_to_share_their_requests)
{
    hl_client *client =
        open_client_at(cluster_url(cluster), CLIENT(.watchdog_timeout_ms = slow_ms(3000)));
    char prefix[16];

    for (int i = 0; i < FEW; i++) {
        snprintf(prefix, sizeof prefix, "held%d", i);
        hl_lock *lock = new_lock(client, cluster_name_in_slot(FIRST_SLOT, prefix));
        expect_ok(hl_lock_acquire(lock, ERR));
        struct deadline deadline = deadline_in(30);
        while (!deadline_is_over(deadline))
            deadline_nap();
    }
    wait_stat(client, renewals, 3 * FEW);
    int64_t calls = redis_evalsha_calls(cluster_node(cluster, 0)), renewals = renewals_of(client);
    wait_stat(client, renewals, renewals + 5 * FEW);
    renewals = renewals_of(client) - renewals;
    calls = redis_evalsha_calls(cluster_node(cluster, 0)) - calls;
    check_msg(calls * FEW <= 3 * renewals, "%d requests for %d renewals", (int)calls,
              (int)renewals);
    check_int((int)stats_of(client).losses, 0);
}
