/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Statistics, copied counter by counter. */
#include "lease/calls/client.h"

#include "base/error.h"
#include "base/versioned.h"

static uint64_t stats_read(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void stats_read_failures(const struct hli_counters *counters, hl_stats *stats)
{
    for (size_t call = 0; call < sizeof(stats->failures) / sizeof(stats->failures[0]); call++)
        for (size_t i = 0; i < sizeof(stats->failures[0]) / sizeof(stats->failures[0][0]); i++)
            stats->failures[call][i] = stats_read(&counters->failures[call][i]);
    stats->busy = stats->failures[HL_CALL_ACQUIRE][HL_REASON_BUSY];
    stats->timeouts = stats->failures[HL_CALL_ACQUIRE][HL_REASON_TIMEOUT];
    stats->cancels = stats->failures[HL_CALL_ACQUIRE][HL_REASON_CANCELED];
}

static void stats_read_counters(const struct hli_counters *counters, hl_stats *stats)
{
    stats->acquires = stats_read(&counters->acquires);
    stats->releases = stats_read(&counters->releases);
    stats->losses = stats_read(&counters->losses);
    stats->in_doubt = stats_read(&counters->in_doubt);
    stats->renewals = stats_read(&counters->renewals);
    stats->reconnects = stats_read(&counters->reconnects);
    stats->commands = stats_read(&counters->commands);
    stats->holds_now = stats_read(&counters->holds_now);
    stats->waiters_now = stats_read(&counters->waiters_now);
    stats->passes = stats_read(&counters->passes);
    stats->grants = stats_read(&counters->grants);
    stats->retained = stats_read(&counters->retained);
    stats->nodes_now = stats_read(&counters->nodes_now);
    stats->lanes_now = stats_read(&counters->lanes_now);
    stats->master_changes = stats_read(&counters->master_changes);
    stats->redirects = stats_read(&counters->redirects);
    stats->unconfirmed = stats_read(&counters->unconfirmed);
    stats->graces = stats_read(&counters->graces);
    stats->reclaims = stats_read(&counters->reclaims);
    stats->votes = stats_read(&counters->votes);
    stats->votes_refused = stats_read(&counters->votes_refused);
    stats->votes_missing = stats_read(&counters->votes_missing);
    stats->narrow = stats_read(&counters->narrow);
    stats->jeopardies = stats_read(&counters->jeopardies);
    stats->channels_denied = stats_read(&counters->channels_denied);
    stats_read_failures(counters, stats);
}

const char *hl_reason_name(hl_reason reason)
{
    switch (reason) {
#define X(name, value, text)                                                                       \
    case HL_REASON_##name:                                                                         \
        return text;
        HL_REASON_MAP(X)
#undef X
    }
    return NULL;
}

/* size is that of the caller's struct, or NULL. */
static int stats_check(const hl_client *client, const size_t *size, const char *what)
{
    int rc = hli_client_check(client);

    if (rc == HL_EINVAL || rc == HL_EFORKED)
        return hli_fail(NULL, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!size || *size < sizeof(*size))
        return hli_fail(NULL, HL_EINVAL, "%s is NULL, or its size is not set", what);
    return 0;
}

int hl_client_stats(hl_client *client, hl_stats *stats)
{
    int rc = stats_check(client, stats ? &stats->size : NULL, "stats");
    hl_stats all;

    if (rc < 0)
        return rc;
    stats_read_counters(&client->counters, &all);
    hli_versioned_write(stats, sizeof(all), &all);
    return 0;
}

static const struct hli_histogram *stats_measure(const struct hli_counters *counters,
                                                 hl_measure measure)
{
    switch (measure) {
    case HL_MEASURE_WAIT:
        return &counters->wait;
    case HL_MEASURE_HOLD:
        return &counters->hold;
    case HL_MEASURE_RENEWAL:
        return &counters->renewal_lag;
    default:
        return NULL;
    }
}

int hl_client_histogram(hl_client *client, hl_measure measure, hl_histogram *histogram)
{
    int rc = stats_check(client, histogram ? &histogram->size : NULL, "histogram");
    hl_histogram all;

    if (rc < 0)
        return rc;
    const struct hli_histogram *measured = stats_measure(&client->counters, measure);
    if (!measured)
        return hli_fail(NULL, HL_EINVAL, "this version knows no such measure");
    hli_histogram_read(measured, &all);
    hli_versioned_write(histogram, sizeof(all), &all);
    return 0;
}
