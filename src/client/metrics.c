/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Metrics of clients for Prometheus. All clients are read first, since the format wants all samples
 * of one metric together. Names follow prometheus.io, "Metric and label naming". */
#include <hirelock/metrics.h>

#include <hirelock/version.h>

#include "base/error.h"
#include "base/exposition.h"
#include "redis/url.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The counters of hl_stats. Those with the same name are one metric, told apart by a label; they
 * stand together, and the first has the help. */
static const struct metrics_counter {
    const char *name, *type, *help, *label, *value;
    size_t at;
} metrics_counters[] = {
#define AT(field) offsetof(hl_stats, field)
    {"hirelock_acquires_total", "counter", "Acquires that succeeded, nested ones included.", NULL,
     NULL, AT(acquires)},
    {"hirelock_handovers_total", "counter",
     "Holds that began without a request of their own, by kind.", "kind", "pass", AT(passes)},
    {"hirelock_handovers_total", "counter", NULL, "kind", "grant", AT(grants)},
    {"hirelock_handovers_total", "counter", NULL, "kind", "retained", AT(retained)},
    {"hirelock_releases_total", "counter", "Releases that succeeded, nested ones included.", NULL,
     NULL, AT(releases)},
    {"hirelock_releases_in_doubt_total", "counter", "Releases that may not have run.", NULL, NULL,
     AT(in_doubt)},
    {"hirelock_renewals_total", "counter", "Holds that were renewed.", NULL, NULL, AT(renewals)},
    {"hirelock_jeopardies_total", "counter", "Holds whose renewal was late: events JEOPARDY.", NULL,
     NULL, AT(jeopardies)},
    {"hirelock_losses_total", "counter", "Holds that ended before their release: events LOST.",
     NULL, NULL, AT(losses)},
    {"hirelock_unconfirmed_total", "counter", "Requests that too few replicas confirmed.", NULL,
     NULL, AT(unconfirmed)},
    {"hirelock_commands_total", "counter", "Commands that were written to servers.", NULL, NULL,
     AT(commands)},
    {"hirelock_reconnects_total", "counter", "Connections after the first one.", NULL, NULL,
     AT(reconnects)},
    {"hirelock_channels_denied_total", "counter", "Subscriptions that the server refused for good.",
     NULL, NULL, AT(channels_denied)},
    {"hirelock_redirects_total", "counter", "Requests that a node of the cluster sent elsewhere.",
     NULL, NULL, AT(redirects)},
    {"hirelock_master_changes_total", "counter", "Masters that took the place of another.", NULL,
     NULL, AT(master_changes)},
    {"hirelock_graces_total", "counter", "Terms of servers that began with a grace.", NULL, NULL,
     AT(graces)},
    {"hirelock_reclaims_total", "counter", "Holds that were brought into a new term.", NULL, NULL,
     AT(reclaims)},
    {"hirelock_votes_total", "counter", "Masters that a Redlock asked, by answer.", "answer", "yes",
     AT(votes)},
    {"hirelock_votes_total", "counter", NULL, "answer", "no", AT(votes_refused)},
    {"hirelock_votes_total", "counter", NULL, "answer", "none", AT(votes_missing)},
    {"hirelock_narrow_total", "counter", "Holds of a Redlock with no master to spare.", NULL, NULL,
     AT(narrow)},
    {"hirelock_holds", "gauge", "Holds at this moment.", NULL, NULL, AT(holds_now)},
    {"hirelock_waiters", "gauge", "Calls that wait at this moment.", NULL, NULL, AT(waiters_now)},
    {"hirelock_nodes", "gauge", "Servers with locks that the client is connected to.", NULL, NULL,
     AT(nodes_now)},
    {"hirelock_lanes", "gauge", "Connections for commands to these servers.", NULL, NULL,
     AT(lanes_now)},
#undef AT
};

/* The calls of hl_stats' failures. */
static const struct metrics_call {
    hl_call call;
    const char *value;
} metrics_calls[] = {
    {HL_CALL_ACQUIRE, "acquire"},
    {HL_CALL_RELEASE, "release"},
    {HL_CALL_RENEWAL, "renewal"},
    {HL_CALL_OTHER, "other"},
};

static const struct metrics_histogram {
    hl_measure measure;
    const char *name, *help;
} metrics_histograms[] = {
    {HL_MEASURE_WAIT, "hirelock_wait_seconds",
     "From an outermost acquire that succeeds to its return."},
    {HL_MEASURE_HOLD, "hirelock_hold_seconds", "From that return to the release."},
    {HL_MEASURE_RENEWAL, "hirelock_renewal_delay_seconds",
     "From the time when a renewal is due to its confirmation."},
};

enum {
    METRICS_CALLS = sizeof(metrics_calls) / sizeof(metrics_calls[0]),
    METRICS_COUNTERS = sizeof(metrics_counters) / sizeof(metrics_counters[0]),
    METRICS_HISTOGRAMS = sizeof(metrics_histograms) / sizeof(metrics_histograms[0]),
};

/* A copy of an hl_node. */
struct metrics_node {
    char address[HLI_WHERE_SIZE];
    hl_node_role role;
    bool is_connected;
    unsigned lanes, slots;
};

/* What one client says. */
struct metrics_client {
    const hl_label *labels; /* the caller's; NULL: none */
    hl_stats stats;
    hl_histogram histograms[METRICS_HISTOGRAMS];
    struct metrics_node *nodes; /* owned */
    size_t node_count;
    bool lacks_memory;
};

struct metrics {
    struct metrics_client *clients;
    size_t count;
};

static void metrics_read_node(const hl_node *node, void *arg)
{
    struct metrics_client *client = arg;
    struct metrics_node *nodes =
        realloc(client->nodes, (client->node_count + 1) * sizeof(client->nodes[0]));

    client->lacks_memory = client->lacks_memory || !nodes;
    if (!nodes)
        return;
    client->nodes = nodes;
    nodes += client->node_count++;
    *nodes = (struct metrics_node){.role = node->role,
                                   .is_connected = node->is_connected,
                                   .lanes = node->lanes,
                                   .slots = node->slots};
    snprintf(nodes->address, sizeof(nodes->address), "%s", node->address);
}

static int metrics_read_client(hl_client *source, struct metrics_client *client)
{
    int rc = hl_client_nodes(source, metrics_read_node, client);

    if (rc >= 0 && client->lacks_memory)
        rc = hli_no_memory(NULL);
    client->stats = (hl_stats)HL_STATS_INIT;
    if (rc >= 0)
        rc = hl_client_stats(source, &client->stats);
    for (int i = 0; i < METRICS_HISTOGRAMS && rc >= 0; i++) {
        client->histograms[i] = (hl_histogram)HL_HISTOGRAM_INIT;
        rc = hl_client_histogram(source, metrics_histograms[i].measure, &client->histograms[i]);
    }
    return rc < 0 ? rc : 0;
}

static const char *metrics_label(const hl_label *labels, const char *name)
{
    for (; labels && labels->name; labels++)
        if (strcmp(labels->name, name) == 0)
            return labels->value;
    return NULL;
}

static bool metrics_has_label(const char *name)
{
    static const char *const ours[] = {"le",     "address", "role",   "call",
                                       "reason", "kind",    "answer", "version"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strcmp(ours[i], name) == 0)
            return true;
    return false;
}

static int metrics_check_labels(const hl_label *labels)
{
    char shown[64];

    for (const hl_label *label = labels; label && label->name; label++) {
        hli_error_escape(shown, sizeof(shown), label->name, strlen(label->name));
        if (!label->value)
            return hli_fail(NULL, HL_EINVAL, "the label '%s' has no value", shown);
        if (!hli_exposition_is_label(label->name))
            return hli_fail(NULL, HL_EINVAL,
                            "'%s' is no name of a label: letters, digits and _ are allowed, and "
                            "no digit or __ in front",
                            shown);
        if (metrics_has_label(label->name))
            return hli_fail(NULL, HL_EINVAL, "the metrics have a label '%s' of their own", shown);
        if (metrics_label(label + 1, label->name))
            return hli_fail(NULL, HL_EINVAL, "the label '%s' is there twice", shown);
    }
    return 0;
}

/* Is each label of `a` one of `b`? */
static bool metrics_is_within(const hl_label *a, const hl_label *b)
{
    for (; a && a->name; a++) {
        const char *other = metrics_label(b, a->name);
        if (!other && a->value[0] == '\0')
            continue; /* to Prometheus an empty label is none */
        if (!other || !hli_exposition_is_same(other, a->value))
            return false;
    }
    return true;
}

static int metrics_check(const struct metrics *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (metrics_check_labels(all->clients[i].labels) < 0)
            return HL_EINVAL;
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < i; k++) {
            const hl_label *a = all->clients[i].labels, *b = all->clients[k].labels;
            if (metrics_is_within(a, b) && metrics_is_within(b, a))
                return hli_fail(NULL, HL_EINVAL,
                                "clients %zu and %zu have the same labels: give each its own, such "
                                "as client=\"orders\"",
                                k, i);
        }
    return 0;
}

static void metrics_begin(struct hli_exposition *text, const struct metrics_client *client,
                          const char *name)
{
    hli_exposition_begin(text, name, "");
    hli_exposition_labels(text, client->labels);
}

static void metrics_write_version(struct hli_exposition *text, const struct metrics *all)
{
    static const char name[] = "hirelock_build_info";

    hli_exposition_head(text, name, "gauge", "1, with the version of the library as a label.");
    for (size_t i = 0; i < all->count; i++) {
        metrics_begin(text, &all->clients[i], name);
        hli_exposition_label(text, "version", hl_version());
        hli_exposition_end(text, 1);
    }
}

static void metrics_write_counter(struct hli_exposition *text, const struct metrics *all,
                                  const struct metrics_counter *counter)
{
    if (counter->help)
        hli_exposition_head(text, counter->name, counter->type, counter->help);
    for (size_t i = 0; i < all->count; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&all->clients[i].stats + counter->at, sizeof(value));
        metrics_begin(text, &all->clients[i], counter->name);
        if (counter->label)
            hli_exposition_label(text, counter->label, counter->value);
        hli_exposition_end(text, value);
    }
}

static void metrics_write_failures(struct hli_exposition *text, const struct metrics_client *client,
                                   const struct metrics_call *of)
{
    static const char name[] = "hirelock_failures_total";
    const char *reason;

    for (int i = 0; (reason = hl_reason_name((hl_reason)i)); i++) {
        metrics_begin(text, client, name);
        hli_exposition_label(text, "call", of->value);
        hli_exposition_label(text, "reason", reason);
        hli_exposition_end(text, client->stats.failures[of->call][i]);
    }
}

static void metrics_write_all_failures(struct hli_exposition *text, const struct metrics *all)
{
    hli_exposition_head(text, "hirelock_failures_total", "counter",
                        "Calls, and renewals of holds, that failed, by what and why.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t call = 0; call < METRICS_CALLS; call++)
            metrics_write_failures(text, &all->clients[i], &metrics_calls[call]);
}

static void metrics_write_histograms(struct hli_exposition *text, const struct metrics *all)
{
    for (size_t h = 0; h < METRICS_HISTOGRAMS; h++) {
        const char *name = metrics_histograms[h].name;
        hli_exposition_head(text, name, "histogram", metrics_histograms[h].help);
        for (size_t i = 0; i < all->count; i++)
            hli_exposition_histogram(text, name, all->clients[i].labels,
                                     &all->clients[i].histograms[h]);
    }
}

static uint64_t metrics_node_connected(const struct metrics_node *node)
{
    return node->is_connected;
}

static uint64_t metrics_node_lanes(const struct metrics_node *node)
{
    return node->lanes;
}

static uint64_t metrics_node_slots(const struct metrics_node *node)
{
    return node->slots;
}

static const struct metrics_node_value {
    const char *name, *help;
    uint64_t (*read)(const struct metrics_node *node);
} metrics_node_values[] = {
    {"hirelock_node_connected", "1: the client is connected to this server; 0: it is not.",
     metrics_node_connected},
    {"hirelock_node_lanes", "Connections for commands to this server.", metrics_node_lanes},
    {"hirelock_node_slots", "Slots of the cluster that this server has.", metrics_node_slots},
};

static void metrics_write_node(struct hli_exposition *text, const struct metrics_client *client,
                               const struct metrics_node_value *value)
{
    static const char *const roles[] = {[HL_NODE_UNKNOWN] = "unknown",
                                        [HL_NODE_MASTER] = "master",
                                        [HL_NODE_SENTINEL] = "sentinel"};

    for (size_t i = 0; i < client->node_count; i++) {
        const struct metrics_node *node = &client->nodes[i];
        metrics_begin(text, client, value->name);
        hli_exposition_label(text, "address", node->address);
        hli_exposition_label(text, "role", roles[node->role]);
        hli_exposition_end(text, value->read(node));
    }
}

static void metrics_write(struct hli_exposition *text, const struct metrics *all)
{
    metrics_write_version(text, all);
    for (size_t i = 0; i < METRICS_COUNTERS; i++)
        metrics_write_counter(text, all, &metrics_counters[i]);
    metrics_write_all_failures(text, all);
    metrics_write_histograms(text, all);
    for (size_t v = 0; v < sizeof(metrics_node_values) / sizeof(metrics_node_values[0]); v++) {
        const struct metrics_node_value *value = &metrics_node_values[v];
        hli_exposition_head(text, value->name, "gauge", value->help);
        for (size_t i = 0; i < all->count; i++)
            metrics_write_node(text, &all->clients[i], value);
    }
}

static int metrics_read(struct metrics *all, hl_client *const *clients,
                        const hl_label *const *labels)
{
    for (size_t i = 0; i < all->count; i++)
        all->clients[i].labels = labels ? labels[i] : NULL;
    int rc = metrics_check(all);
    for (size_t i = 0; i < all->count && rc == 0; i++)
        rc = metrics_read_client(clients[i], &all->clients[i]);
    return rc;
}

int hl_metrics_format(hl_client *const *clients, const hl_label *const *labels, size_t count,
                      char *buffer, size_t size)
{
    struct hli_exposition text = {.buffer = buffer, .size = size};
    struct metrics all = {.count = count};

    if (!clients || count == 0 || (!buffer && size > 0))
        return hli_fail(NULL, HL_EINVAL, "%s",
                        !clients     ? "clients is NULL"
                        : count == 0 ? "there is no client"
                                     : "the buffer is NULL");
    all.clients = calloc(count, sizeof(all.clients[0]));
    if (!all.clients)
        return hli_no_memory(NULL);
    int rc = metrics_read(&all, clients, labels);
    if (rc == 0)
        metrics_write(&text, &all);
    for (size_t i = 0; i < count; i++)
        free(all.clients[i].nodes);
    free(all.clients);
    if (rc == 0 && text.length > INT_MAX)
        rc = hli_fail(NULL, HL_EINVAL, "the text is longer than %d bytes", INT_MAX);
    return rc < 0 ? rc : (int)text.length;
}
