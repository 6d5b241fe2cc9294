/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Statistics, copied counter by counter. */
#include "lease/client.h"

#include <string.h>

static uint64_t stats_read(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void stats_read_counters(const struct hli_counters *counters, hl_stats *stats)
{
    stats->acquires = stats_read(&counters->acquires);
    stats->busy = stats_read(&counters->busy);
    stats->timeouts = stats_read(&counters->timeouts);
    stats->cancels = stats_read(&counters->cancels);
    stats->releases = stats_read(&counters->releases);
    stats->losses = stats_read(&counters->losses);
    stats->unknowns = stats_read(&counters->unknowns);
    stats->renewals = stats_read(&counters->renewals);
    stats->reconnects = stats_read(&counters->reconnects);
    stats->commands = stats_read(&counters->commands);
    stats->holds_now = stats_read(&counters->holds_now);
    stats->waiters_now = stats_read(&counters->waiters_now);
    stats->passes = stats_read(&counters->passes);
    stats->grants = stats_read(&counters->grants);
    stats->lingers = stats_read(&counters->lingers);
}

int hl_client_stats(hl_client *client, hl_stats *stats)
{
    hl_stats all = {.size = sizeof(all)};
    int rc = hli_client_check(client);

    if (rc == HL_EINVAL || rc == HL_EFORKED)
        return rc;
    if (!stats || stats->size < sizeof(stats->size))
        return HL_EINVAL;
    stats_read_counters(&client->counters, &all);
    hli_histogram_read(&client->counters.wait, &all.wait);
    hli_histogram_read(&client->counters.hold, &all.hold);
    hli_histogram_read(&client->counters.renewal_lag, &all.renewal_lag);
    size_t size = stats->size < sizeof(all) ? stats->size : sizeof(all);
    all.size = stats->size;
    memcpy(stats, &all, size);
    return 0;
}
