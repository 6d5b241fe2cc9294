/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/exporter/report.h"

#include <inttypes.h>
#include <stdio.h>

static void report_value(struct hli_exposition *text, const char *name, const char *help,
                         uint64_t value)
{
    hli_exposition_head(text, name, "gauge", help);
    hli_exposition_begin(text, name, "");
    hli_exposition_end(text, value);
}

/* Less than 0: the metric is not there. */
static void report_ms(struct hli_exposition *text, const char *name, const char *help, int64_t ms)
{
    if (ms < 0)
        return;
    hli_exposition_head(text, name, "gauge", help);
    hli_exposition_begin(text, name, "");
    hli_exposition_end_seconds(text, (uint64_t)ms * 1000);
}

static void report_labelled(struct hli_exposition *text, const char *name, const char *label,
                            const char *value, uint64_t number)
{
    hli_exposition_begin(text, name, "");
    hli_exposition_label(text, label, value);
    hli_exposition_end(text, number);
}

void exporter_report_surveys(struct hli_exposition *text, const struct exporter_surveys *surveys)
{
    static const char total[] = "hirelock_surveys_total";

    report_value(text, "hirelock_up", "1: the last survey succeeded; 0: it did not.",
                 surveys->is_up);
    hli_exposition_head(text, total, "counter", "Surveys, by result.");
    report_labelled(text, total, "result", "ok", surveys->succeeded);
    report_labelled(text, total, "result", "failed", surveys->failed);
    report_ms(text, "hirelock_survey_age_seconds",
              "Since the end of the last survey that succeeded.", surveys->age_ms);
    report_ms(text, "hirelock_survey_duration_seconds", "How long the last survey took.",
              surveys->took_ms);
}

static void report_kinds(struct hli_exposition *text, const struct exporter_census *census)
{
    static const char name[] = "hirelock_locks";

    hli_exposition_head(text, name, "gauge", "Locks, by kind; one that rests is held by nobody.");
    for (size_t i = 0; i < EXPORTER_KINDS; i++)
        report_labelled(text, name, "kind", exporter_kinds[i], census->by_kind[i]);
}

static void report_steps(struct hli_exposition *text, const char *name, const char *help,
                         const unsigned steps[EXPORTER_STEPS],
                         const uint64_t counts[EXPORTER_STEPS])
{
    char seconds[16];

    hli_exposition_head(text, name, "gauge", help);
    for (size_t i = 0; i < EXPORTER_STEPS; i++) {
        snprintf(seconds, sizeof(seconds), "%u", steps[i]);
        report_labelled(text, name, "seconds", seconds, counts[i]);
    }
}

static const char *report_text(const struct exporter_name *name, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(name->lock, key));

    return text ? text : "";
}

/* A metric of the names, and what it is of one: -1: this name has none. */
struct report_column {
    const char *name, *help;
    int64_t (*read)(const struct exporter_name *name);
    bool is_ms;
};

static int64_t report_waiters(const struct exporter_name *name)
{
    return name->waiters;
}

static int64_t report_held(const struct exporter_name *name)
{
    return name->held_ms;
}

static int64_t report_lease(const struct exporter_name *name)
{
    return name->lease_left_ms;
}

static int64_t report_endless(const struct exporter_name *name)
{
    return name->is_endless ? 1 : -1;
}

static const struct report_column report_columns[] = {
    {"hirelock_lock_waiters", "Clients in the queue of this lock, and dead ones for a while.",
     report_waiters, false},
    {"hirelock_lock_held_seconds", "How long its owner holds it.", report_held, true},
    {"hirelock_lock_lease_left_seconds", "Until its lease ends.", report_lease, true},
    {"hirelock_lock_without_expiry", "1: its lease never ends.", report_endless, false},
};

static void report_column(struct hli_exposition *text, const struct exporter_census *census,
                          const struct report_column *column)
{
    hli_exposition_head(text, column->name, "gauge", column->help);
    for (size_t i = 0; i < census->names; i++) {
        int64_t value = column->read(&census->name[i]);
        if (value < 0)
            continue;
        hli_exposition_begin(text, column->name, "");
        hli_exposition_label(text, "name", report_text(&census->name[i], "name"));
        if (column->is_ms)
            hli_exposition_end_seconds(text, (uint64_t)value * 1000);
        else
            hli_exposition_end(text, (uint64_t)value);
    }
}

/* Only of owners that stay: each new one is a series of its own. */
static void report_holders(struct hli_exposition *text, const struct exporter_census *census)
{
    static const char *const labels[] = {"name", "kind", "host", "pid", "thread"};
    static const char metric[] = "hirelock_lock_holder_info";

    hli_exposition_head(text, metric, "gauge", "1: who has held it for a minute or longer.");
    for (size_t i = 0; i < census->names; i++) {
        if (census->name[i].held_ms < EXPORTER_LONG_MS)
            continue;
        hli_exposition_begin(text, metric, "");
        for (size_t k = 0; k < sizeof(labels) / sizeof(labels[0]); k++)
            hli_exposition_label(text, labels[k], report_text(&census->name[i], labels[k]));
        hli_exposition_end(text, 1);
    }
}

void exporter_report_census(struct hli_exposition *text, const struct exporter_census *census)
{
    report_value(text, "hirelock_survey_keys", "Keys that the last survey went through.",
                 census->keys);
    report_kinds(text, census);
    report_value(text, "hirelock_locks_waited_for", "Names that somebody waits for.",
                 census->waited_for);
    report_value(text, "hirelock_locks_waiters",
                 "Clients in the queues of all names, and dead ones for a while.", census->waiters);
    report_value(text, "hirelock_locks_without_expiry", "Holds whose lease never ends.",
                 census->endless);
    report_ms(text, "hirelock_locks_oldest_hold_seconds", "How long the oldest hold lasts.",
              census->oldest_ms);
    report_ms(text, "hirelock_locks_least_lease_left_seconds", "The least that a lease has left.",
              census->least_lease_ms);
    report_steps(text, "hirelock_locks_held_over", "Holds that last longer than so many seconds.",
                 exporter_held_steps, census->held_over);
    report_steps(text, "hirelock_locks_lease_left_under",
                 "Holds whose lease has less than so many seconds left.", exporter_lease_steps,
                 census->lease_under);
    if (census->names == 0)
        return;
    for (size_t i = 0; i < sizeof(report_columns) / sizeof(report_columns[0]); i++)
        report_column(text, census, &report_columns[i]);
    report_holders(text, census);
}

/* What the server does not tell has no sample: no guess takes its place. */
static void report_checks(struct hli_exposition *text, const struct exporter_node *node)
{
    static const uint64_t values[] = {[CLI_STATE_WARNING] = 1, [CLI_STATE_PROBLEM] = 2};

    for (size_t i = 0; i < node->checks; i++) {
        if (node->check[i].state == CLI_STATE_UNKNOWN)
            continue;
        hli_exposition_begin(text, "hirelock_server_check", "");
        hli_exposition_label(text, "address", node->address);
        hli_exposition_label(text, "check", node->check[i].name);
        hli_exposition_end(text, values[node->check[i].state]);
    }
}

void exporter_report_nodes(struct hli_exposition *text, const struct exporter_nodes *nodes)
{
    static const char trips[] = "hirelock_server_round_trip_seconds";

    if (nodes->count == 0)
        return;
    hli_exposition_head(text, "hirelock_server_check", "gauge",
                        "What hirelock doctor finds. 0: ok; 1: a warning; 2: a problem.");
    for (size_t i = 0; i < nodes->count; i++)
        report_checks(text, &nodes->node[i]);
    hli_exposition_head(text, trips, "histogram", "Round trips of the exporter's PINGs.");
    for (size_t i = 0; i < nodes->count; i++) {
        const hl_label labels[] = {{"address", nodes->node[i].address}, {NULL, NULL}};
        hli_exposition_histogram(text, trips, labels, &nodes->node[i].trips);
    }
}
