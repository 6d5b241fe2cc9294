/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The client's options: sizes, ranges, defaults. */
#include "client/options.h"

#include "base/error.h"
#include "base/versioned.h"
#include "lease/name.h"

#include <string.h>

enum { OPTIONS_MAX_POLL_US = 1000 };

static const int64_t options_max_ms = INT64_C(100000000000);

/* 0 becomes the default; min is the least that makes sense. */
static int options_time(const char *what, int64_t *value, int64_t standard, int64_t min,
                        hl_error *err)
{
    if (*value == 0)
        *value = standard;
    if (*value < min || *value > options_max_ms)
        return hli_fail(err, HL_EINVAL, "%s is not from %lld to 10^11 ms", what, (long long)min);
    return 0;
}

static int options_check_times(hl_client_options *options, hl_error *err)
{
    const struct {
        const char *what;
        int64_t *value, standard, min;
    } times[] = {
        {"connect_timeout_ms", &options->connect_timeout_ms, 2000, 1},
        {"request_timeout_ms", &options->request_timeout_ms, 2000, 1},
        {"outage_timeout_ms", &options->outage_timeout_ms, 10000, -1},
        {"watchdog_timeout_ms", &options->watchdog_timeout_ms, 30000, 10},
        {"poll_ms", &options->poll_ms, 1000, 10},
        {"backoff_min_ms", &options->backoff_min_ms, 50, 1},
        {"backoff_max_ms", &options->backoff_max_ms, 2000, 1},
    };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (options_time(times[i].what, times[i].value, times[i].standard, times[i].min, err) < 0)
            return HL_EINVAL;
    if (options->backoff_min_ms > options->backoff_max_ms)
        return hli_fail(err, HL_EINVAL, "backoff_min_ms is greater than backoff_max_ms");
    return 0;
}

static int options_check(hl_client_options *options, hl_error *err)
{
    const unsigned known = HL_CLIENT_LAZY | HL_CLIENT_DISPATCH | HL_CLIENT_RELEASE_ON_CLOSE |
                           HL_CLIENT_RELEASE_ON_THREAD_EXIT | HL_CLIENT_TAGS;

    if (options->flags & ~known)
        return hli_fail(err, HL_EINVAL, "flags hold what this version does not know");
    if (options->log_level == 0)
        options->log_level = HL_LOG_WARN;
    if (options->log_level < HL_LOG_ERROR || options->log_level > HL_LOG_DEBUG)
        return hli_fail(err, HL_EINVAL, "log_level is none of HL_LOG_...");
    if (options->name_prefix && strlen(options->name_prefix) >= HLI_NAME_LIMIT)
        return hli_fail(err, HL_EINVAL, "name_prefix is too long");
    if (options->client_name && strpbrk(options->client_name, " \n\r\t"))
        return hli_fail(err, HL_EINVAL, "client_name holds a space, which CLIENT SETNAME refuses");
    if (options->busy_poll_us < 0 || options->busy_poll_us > OPTIONS_MAX_POLL_US)
        return hli_fail(err, HL_EINVAL, "busy_poll_us is not from 0 to %d", OPTIONS_MAX_POLL_US);
    return options_check_times(options, err);
}

/* Options beat the URL; secrets are copied, and what they replace is wiped. */
static int options_take_login(const hl_client_options *options, struct hli_url *url)
{
    const char *passed[] = {options->username, options->password};
    char **kept[] = {&url->username, &url->password};

    for (int i = 0; i < 2; i++) {
        if (!passed[i])
            continue;
        hli_secret_free(*kept[i]);
        *kept[i] = hli_secret_copy(passed[i]);
        if (!*kept[i])
            return HL_ENOMEM;
    }
    return 0;
}

static void options_take_settings(const hl_client_options *options, struct hli_settings *settings)
{
    *settings = (struct hli_settings){
        .flags = options->flags,
        .request_timeout_ms = options->request_timeout_ms,
        .outage_timeout_ms = options->outage_timeout_ms,
        .watchdog_timeout_ms = options->watchdog_timeout_ms,
        .poll_ms = options->poll_ms,
        .on_event = options->on_event,
        .on_log = options->on_log,
        .log_level = options->log_level,
        .arg = options->arg,
    };
}

static void options_take_link(const hl_client_options *options, struct hli_link_settings *link)
{
    link->connect_timeout_ms = options->connect_timeout_ms;
    link->request_timeout_ms = options->request_timeout_ms;
    link->backoff_min_ms = options->backoff_min_ms;
    link->backoff_max_ms = options->backoff_max_ms;
    link->busy_poll_us = options->busy_poll_us;
}

static int options_copy_strings(const hl_client_options *options, struct hli_settings *settings,
                                struct hli_link_settings *link)
{
    link->client_name = strdup(options->client_name ? options->client_name : "hirelock");
    if (options->name_prefix)
        settings->name_prefix = strdup(options->name_prefix);
    if (!link->client_name || (options->name_prefix && !settings->name_prefix))
        return HL_ENOMEM;
    return options_take_login(options, &link->url);
}

int hli_options_read(const char *url, const hl_client_options *passed,
                     struct hli_settings *ret_settings, struct hli_link_settings *ret_link,
                     hl_error *err)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    *ret_settings = (struct hli_settings){0};
    *ret_link = (struct hli_link_settings){0};
    if (passed && !hli_versioned_read(&options, sizeof(options), passed))
        return hli_fail(
            err, HL_EINVAL,
            "the options' size is not set, or they hold what this version does not know");
    int rc = options_check(&options, err);
    if (rc == 0)
        rc = hli_url_parse(url, &ret_link->url, err);
    if (rc < 0)
        return rc;
    options_take_settings(&options, ret_settings);
    options_take_link(&options, ret_link);
    if (options_copy_strings(&options, ret_settings, ret_link) < 0) {
        hli_options_deinit(ret_settings, ret_link);
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    }
    if (ret_link->url.username && !ret_link->url.password) {
        hli_options_deinit(ret_settings, ret_link);
        return hli_fail(err, HL_EINVAL, "a user without a password");
    }
    return 0;
}

void hli_options_deinit(struct hli_settings *settings, struct hli_link_settings *link)
{
    free(settings->name_prefix);
    settings->name_prefix = NULL;
    hli_link_settings_deinit(link);
}
