/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What else can be asked of an open client: a sign of life, its identity, its callbacks, its statistics. */
#include "base/check.h"
#include "base/error.h"
#include "lease/call.h"

#include <string.h>

struct client_ping {
    struct hli_call call;
};

static void ping_freed(struct hli_call *call)
{
    free(HLI_OF(call, struct client_ping, call));
}

static int ping_read(struct hli_call *call, const struct hli_reply *reply)
{
    (void)call;
    return reply->kind == HLI_REPLY_STATUS ? HL_OK : HL_ESERVER;
}

static struct client_ping *ping_new(hl_client *client, int64_t timeout_ms)
{
    const struct hli_bytes word = hli_bytes_of("PING");
    struct client_ping *ping = calloc(1, sizeof(*ping));

    if (!ping)
        return NULL;
    hli_call_init(&ping->call, client, "ping", timeout_ms);
    ping->call.is_repeatable = true;
    ping->call.read = ping_read;
    ping->call.freed = ping_freed;
    if (hli_op_command(&ping->call.op, &word, 1) < 0) {
        hli_call_unref(&ping->call);
        return NULL;
    }
    return ping;
}

int hl_client_ping(hl_client *client, int64_t timeout_ms, hl_error *err)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(err, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (timeout_ms < -1)
        return hli_fail(err, HL_EINVAL, "timeout_ms is less than -1");
    struct client_ping *ping = ping_new(client, timeout_ms);
    if (!ping)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int cancelability = hli_cancelability_off();
    rc = hli_call_block(&ping->call, err);
    hli_call_unref(&ping->call);
    hli_cancelability_restore(cancelability);
    return rc;
}

const char *hl_client_id(const hl_client *client)
{
    return client ? client->id : NULL;
}

int hl_client_fd(const hl_client *client)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return rc;
    return client->callbacks.by_dispatch ? atomic_load(&client->callbacks.fd) : HL_EINVAL;
}

int hl_client_dispatch(hl_client *client)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return rc;
    if (!client->callbacks.by_dispatch)
        return HL_EINVAL;
    if (hli_callbacks_are_running_here(&client->callbacks))
        return HL_EDEADLK;
    return hli_callbacks_dispatch(&client->callbacks);
}

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
}

int hl_client_stats(hl_client *client, hl_stats *stats)
{
    hl_stats all = { .size = sizeof(all) };
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
