/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* How often the map of a cluster is read. */

#include "route/cluster_state.h"
#include "support/test.h"

static void expect_between(hli_ns trouble, int64_t least_ms, int64_t most_ms)
{
    for (uint64_t dice = 0; dice < 5000; dice++) {
        int64_t ms = hli_cluster_look_ms(trouble, dice);
        check(ms >= least_ms && ms <= most_ms);
    }
}

Test(cluster_pace, is_once_a_minute_while_all_nodes_are_in_reach)
{
    expect_between(-1, 60000, 60000);
}

Test(cluster_pace, is_twice_a_second_while_a_replica_may_be_elected)
{
    expect_between(0, 401, 500);
    expect_between(HLI_MS(59999), 401, 500);
}

/* A node without a replica: its own link tries to connect all the time. */
Test(cluster_pace, is_every_five_seconds_when_none_was_elected_for_a_minute)
{
    expect_between(HLI_MS(60000), 4001, 5000);
    expect_between(HLI_MS(3600000), 4001, 5000);
}
