/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The table of options: each is named here once. */
#include "client/option_table.h"

#include "base/suggest.h"
#include "redis/lanes.h"

#include <stdio.h>
#include <string.h>

#define MOST_MS INT64_C(100000000000) /* about three years: sums of times do not overflow */
#define AT(field) offsetof(hl_client_options, field)
#define MS(name, standard, least)                                                                  \
    {                                                                                              \
#name, HLI_OPTION_MS, AT(name##_ms), (standard), (least), MOST_MS, 0                       \
    }
#define TEXT(name)                                                                                 \
    {                                                                                              \
#name, HLI_OPTION_TEXT, AT(name), 0, 0, 0, 0                                               \
    }
#define FLAG(name, flag)                                                                           \
    {                                                                                              \
#name, HLI_OPTION_FLAG, AT(flags), 0, 0, 1, (flag)                                         \
    }

/* In the order of docs/options.md. */
const struct hli_option hli_option_table[HLI_OPTIONS] = {
    MS(connect_timeout, 2000, 1),
    MS(request_timeout, 2000, 1),
    MS(outage_timeout, 10000, -1),
    MS(watchdog_timeout, 30000, 10),
    MS(poll, 1000, 10),
    MS(backoff_min, 50, 1),
    MS(backoff_max, 2000, 1),
    {"busy_poll", HLI_OPTION_US, AT(busy_poll_us), 0, 0, 1000, 0},
    {"connections", HLI_OPTION_NUMBER, AT(connections), 4, 1, HLI_LANES_MAX, 0},
    {"min_replicas", HLI_OPTION_REPLICAS, AT(min_replicas), 0, 0, 1000, 0},
    MS(replicas_timeout, 200, 1),
    MS(failover_grace, 0, 0),
    MS(old_master, 0, 0),
    TEXT(client_name),
    TEXT(name_prefix),
    TEXT(password_file),
    TEXT(sentinel_password_file),
    TEXT(tls_ca_file),
    TEXT(tls_ca_dir),
    TEXT(tls_cert_file),
    TEXT(tls_key_file),
    TEXT(tls_server_name),
    TEXT(sentinel_tls_server_name),
    {"log_level", HLI_OPTION_LEVEL, AT(log_level), HL_LOG_WARN, HL_LOG_ERROR, HL_LOG_DEBUG, 0},
    FLAG(lazy, HL_CLIENT_LAZY),
    FLAG(release_on_close, HL_CLIENT_RELEASE_ON_CLOSE),
    FLAG(release_on_thread_exit, HL_CLIENT_RELEASE_ON_THREAD_EXIT),
    FLAG(holder_info, HL_CLIENT_HOLDER_INFO),
    FLAG(tls_unverified, HL_CLIENT_TLS_UNVERIFIED),
    FLAG(keep_unconfirmed, HL_CLIENT_KEEP_UNCONFIRMED),
    FLAG(no_deadlock_check, HL_CLIENT_NO_DEADLOCK_CHECK),
};

const struct hli_option *hli_option_of(const char *name)
{
    for (int i = 0; i < HLI_OPTIONS; i++)
        if (strcmp(hli_option_table[i].name, name) == 0)
            return &hli_option_table[i];
    return NULL;
}

const char *hli_option_meant(const char *name)
{
    const char *names[HLI_OPTIONS];

    for (int i = 0; i < HLI_OPTIONS; i++)
        names[i] = hli_option_table[i].name;
    return hli_suggest(name, names, HLI_OPTIONS);
}

/* "10^11ms" for the longest time, else in seconds where these are whole. */
static void option_write_time(int64_t value, const char *unit, char text[HLI_OPTION_VALUE_SIZE])
{
    bool is_ms = strcmp(unit, "ms") == 0;

    if (is_ms && value == -1)
        snprintf(text, HLI_OPTION_VALUE_SIZE, "forever");
    else if (is_ms && value == MOST_MS)
        snprintf(text, HLI_OPTION_VALUE_SIZE, "10^11ms");
    else if (is_ms && value != 0 && value % 1000 == 0)
        snprintf(text, HLI_OPTION_VALUE_SIZE, "%llds", (long long)value / 1000);
    else
        snprintf(text, HLI_OPTION_VALUE_SIZE, "%lld%s", (long long)value, value == 0 ? "" : unit);
}

void hli_option_write(const struct hli_option *option, int64_t value,
                      char text[HLI_OPTION_VALUE_SIZE])
{
    switch (option->kind) {
    case HLI_OPTION_MS:
        option_write_time(value, "ms", text);
        return;
    case HLI_OPTION_US:
        option_write_time(value, "us", text);
        return;
    case HLI_OPTION_LEVEL:
        snprintf(text, HLI_OPTION_VALUE_SIZE, "%s", hl_log_level_name((hl_log_level)value));
        return;
    case HLI_OPTION_FLAG:
        snprintf(text, HLI_OPTION_VALUE_SIZE, "%s", value ? "yes" : "no");
        return;
    case HLI_OPTION_TEXT:
        snprintf(text, HLI_OPTION_VALUE_SIZE, "%s",
                 option->at == AT(client_name) ? "hirelock" : "none");
        return;
    default:
        snprintf(text, HLI_OPTION_VALUE_SIZE, "%lld", (long long)value);
    }
}

int64_t hli_option_get(const struct hli_option *option, const hl_client_options *options)
{
    const void *field = (const char *)options + option->at;

    switch (option->kind) {
    case HLI_OPTION_MS:
    case HLI_OPTION_US:
        return *(const int64_t *)field;
    case HLI_OPTION_LEVEL:
        return *(const hl_log_level *)field;
    case HLI_OPTION_TEXT:
        return *(const char *const *)field != NULL;
    case HLI_OPTION_FLAG:
        return (options->flags & option->flag) != 0;
    default:
        return *(const int *)field;
    }
}

void hli_option_set(const struct hli_option *option, hl_client_options *options, int64_t value)
{
    void *field = (char *)options + option->at;

    switch (option->kind) {
    case HLI_OPTION_MS:
    case HLI_OPTION_US:
        *(int64_t *)field = value;
        return;
    case HLI_OPTION_LEVEL:
        *(hl_log_level *)field = (hl_log_level)value;
        return;
    case HLI_OPTION_FLAG:
        options->flags = value ? options->flags | option->flag : options->flags & ~option->flag;
        return;
    default:
        *(int *)field = (int)value;
    }
}
