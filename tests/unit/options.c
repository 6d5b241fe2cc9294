/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The client's options: ranges, defaults, and what they overrule. */

#include "client/options.h"

#include "lease/state/name.h"
#include "support/test.h"

#include <string.h>

static const int64_t most_ms = INT64_C(100000000000);

static hl_client_options settings;
static struct hli_url server;
static hl_error err;

static int read_options(const char *url, const hl_client_options *options)
{
    err = (hl_error)HL_ERROR_INIT;
    return hli_options_read(url, options, &settings, &server, &err);
}

static void discard(void)
{
    hli_options_deinit(&settings, &server);
}

Test(options, have_the_defaults_that_the_header_names)
{
    hl_client_options empty = HL_CLIENT_OPTIONS_INIT;
    empty.log_level = 0;
    for (int i = 0; i < 2; i++) {
        check_int(read_options("redis://h", i == 0 ? NULL : &empty), 0);
        check_int(settings.connect_timeout_ms, 2000);
        check_int(settings.request_timeout_ms, 2000);
        check_int(settings.outage_timeout_ms, 10000);
        check_int(settings.watchdog_timeout_ms, 30000);
        check_int(settings.poll_ms, 1000);
        check_int(settings.backoff_min_ms, 50);
        check_int(settings.backoff_max_ms, 2000);
        check_int(settings.log_level, HL_LOG_WARN);
        check_int(settings.flags, 0);
        check_str(settings.client_name, "hirelock");
        check(settings.name_prefix == NULL);
        discard();
    }
}

#define AT(field) offsetof(hl_client_options, field)
static const struct time_option {
    const char *name;
    size_t at;
    int64_t least_ms;
} times[] = {
    {"connect_timeout_ms", AT(connect_timeout_ms), 1},
    {"request_timeout_ms", AT(request_timeout_ms), 1},
    {"outage_timeout_ms", AT(outage_timeout_ms), -1},
    {"watchdog_timeout_ms", AT(watchdog_timeout_ms), 10},
    {"poll_ms", AT(poll_ms), 10},
    {"backoff_min_ms", AT(backoff_min_ms), 1},
    {"backoff_max_ms", AT(backoff_max_ms), 1},
    {"replicas_timeout_ms", AT(replicas_timeout_ms), 1},
};

static int read_with_time(const struct time_option *option, int64_t ms)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.backoff_min_ms = 1;
    options.backoff_max_ms = most_ms;
    memcpy((char *)&options + option->at, &ms, sizeof ms);
    int rc = read_options("redis://h", &options);
    if (rc == 0)
        discard();
    return rc;
}

Test(options, have_times_within_their_ranges)
{
    static const int64_t wrong_ms[] = {-2, INT64_MIN, INT64_C(100000000001), INT64_MAX};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        check_int(read_with_time(&times[i], times[i].least_ms), 0);
        check_int(read_with_time(&times[i], most_ms), 0);
        for (int k = 0; k < 4; k++) {
            check_int(read_with_time(&times[i], wrong_ms[k]), HL_EINVAL);
            check_msg(strstr(err.text, times[i].name) != NULL, "%s", err.text);
        }
        if (times[i].least_ms > 1)
            check_int(read_with_time(&times[i], times[i].least_ms - 1), HL_EINVAL);
        if (times[i].least_ms > 0)
            check_int(read_with_time(&times[i], -1), HL_EINVAL);
    }
}

Test(options, refuse_what_makes_no_sense)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.backoff_min_ms = 3000;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    options = (hl_client_options)HL_CLIENT_OPTIONS_INIT;
    options.flags = 1U << 30;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    options = (hl_client_options)HL_CLIENT_OPTIONS_INIT;
    options.log_level = (hl_log_level)17;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    options = (hl_client_options)HL_CLIENT_OPTIONS_INIT;
    options.client_name = "two words";
    check_int(read_options("redis://h", &options), HL_EINVAL);
    options = (hl_client_options)HL_CLIENT_OPTIONS_INIT;
    options.username = "u";
    check_int(read_options("redis://h", &options), HL_EINVAL);
    check_int(read_options("redis://u@h", NULL), HL_EINVAL);
    options = (hl_client_options)HL_CLIENT_OPTIONS_INIT;
    options.size = 3;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    check(strstr(err.text, "size") != NULL);
}

Test(options, let_a_request_wait_for_replicas_twice_before_its_server_counts_as_dead)
{
    static const int64_t request_ms[] = {0, 2000, 401, 400, 399, 3, 2};
    static const int64_t default_ms[] = {200, 200, 200, 200, 199, 1, 1};
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.min_replicas = 1;
    for (size_t i = 0; i < sizeof request_ms / sizeof request_ms[0]; i++) {
        options.request_timeout_ms = request_ms[i];
        options.replicas_timeout_ms = 0;
        check_int(read_options("redis://h", &options), 0);
        check_int(settings.replicas_timeout_ms, default_ms[i]);
        int64_t half_ms = settings.request_timeout_ms / 2;
        discard();
        options.replicas_timeout_ms = half_ms;
        check_int(read_options("redis://h", &options), 0);
        discard();
        options.replicas_timeout_ms = half_ms + 1;
        check_int(read_options("redis://h", &options), HL_EINVAL);
        check_msg(strstr(err.text, "half of request_timeout_ms") != NULL, "%s", err.text);
        options.min_replicas = 0; /* nothing is waited for */
        check_int(read_options("redis://h", &options), 0);
        discard();
        options.min_replicas = 1;
    }
}

Test(options, refuse_to_poll_for_less_than_nothing_or_more_than_a_millisecond)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.busy_poll_us = -1;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    check(strstr(err.text, "busy_poll_us") != NULL);
    options.busy_poll_us = 1001;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    options.busy_poll_us = 1000;
    check_int(read_options("redis://h", &options), 0);
    check_int(settings.busy_poll_us, 1000);
}

Test(options, refuse_connections_below_one_and_above_sixteen)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    check_int(read_options("redis://h", &options), 0);
    check_int(settings.connections, 4);
    discard();
    for (options.connections = 1; options.connections <= 16; options.connections++) {
        check_int(read_options("redis://h", &options), 0);
        discard();
    }
    check_int(read_options("redis://h", &options), HL_EINVAL);
    check(strstr(err.text, "connections is not from 1 to 16") != NULL);
    options.connections = -1;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    check(strstr(err.text, "connections is not from 1 to 16") != NULL);
}

Test(options, refuse_a_prefix_that_leaves_no_room_for_a_name)
{
    char prefix[HLI_NAME_LIMIT + 1];
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    memset(prefix, 'p', sizeof prefix);
    prefix[HLI_NAME_LIMIT] = '\0';
    options.name_prefix = prefix;
    check_int(read_options("redis://h", &options), HL_EINVAL);
    prefix[HLI_NAME_LIMIT - 1] = '\0';
    check_int(read_options("redis://h", &options), 0);
    check_str(settings.name_prefix, prefix);
    discard();
}

Test(options, beat_the_url)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    options.username = "bob";
    options.password = "TopSecret";
    options.client_name = "me";
    check_int(read_options("redis://alice:old@h/3", &options), 0);
    check_str(server.login.username, "bob");
    check_str(server.login.password, "TopSecret");
    check_int(server.database, 3);
    check_str(settings.client_name, "me");
    check(server.login.password != options.password);
    discard();
    options.username = NULL;
    check_int(read_options("redis://alice:old@h", &options), 0);
    check_str(server.login.username, "alice");
    check_str(server.login.password, "TopSecret");
    discard();
}
