/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The client's options: sizes, ranges, defaults. */
#include "client/options.h"

#include "base/error.h"
#include "base/versioned.h"
#include "lease/state/name.h"

#include <string.h>

enum { OPTIONS_MAX_POLL_US = 1000 };

static const int64_t options_max_ms = INT64_C(100000000000);

/* 0 becomes the default; min is the smallest valid value. */
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
                           HL_CLIENT_RELEASE_ON_THREAD_EXIT | HL_CLIENT_HOLDER_INFO |
                           HL_CLIENT_TLS_UNVERIFIED;

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

/* Options take precedence over the URL. Secrets are copied, and the replaced ones are wiped. */
static int options_take_login(const hl_client_options *options, struct hli_url *url)
{
    const char *passed[] = {options->username, options->password};
    char **kept[] = {&url->username, &url->password};

    for (int i = 0; i < 2; i++) {
        if (!passed[i])
            continue;
        hli_secret_free(*kept[i]);
        *kept[i] = strdup(passed[i]);
        if (!*kept[i])
            return HL_ENOMEM;
    }
    return 0;
}

static int options_copy_strings(const hl_client_options *options, hl_client_options *settings,
                                struct hli_url *url)
{
    const char **text[HLI_SETTINGS_STRINGS];
    bool is_whole = true;

    hli_settings_strings(settings, text);
    *settings = *options;
    settings->username = settings->password = NULL;
    if (!settings->client_name)
        settings->client_name = "hirelock";
    for (int i = 0; i < HLI_SETTINGS_STRINGS; i++) {
        bool is_set = *text[i] != NULL;
        *text[i] = is_set ? strdup(*text[i]) : NULL;
        is_whole = is_whole && (*text[i] != NULL) == is_set;
    }
    return is_whole ? options_take_login(options, url) : HL_ENOMEM;
}

/* Reads the files once to see that they can be read; each connect reads them again. An option of
 * TLS without TLS is refused: the program must not go on in the clear. */
static int options_check_tls(const hl_client_options *options, const struct hli_url *url,
                             hl_error *err)
{
    bool has_option = options->tls_ca_file || options->tls_ca_dir || options->tls_cert_file ||
                      options->tls_key_file || options->tls_server_name ||
                      options->flags & HL_CLIENT_TLS_UNVERIFIED;
    struct hli_tls_files *files = NULL;

    if (!url->has_tls && has_option)
        return hli_fail(err, HL_EINVAL, "options of TLS need a URL with rediss://");
    int rc = url->has_tls ? hli_tls_read_files(options, &files, err) : 0;
    hli_tls_free_files(files);
    return rc;
}

int hli_options_read(const char *text, const hl_client_options *passed,
                     hl_client_options *ret_settings, struct hli_url *ret_url, hl_error *err)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    int rc = hli_versioned_read(&options, sizeof(options), passed, "the options", err);
    if (rc == 0)
        rc = options_check(&options, err);
    if (rc == 0)
        rc = hli_url_parse(text, ret_url, err);
    if (rc < 0)
        return rc;
    if (options_copy_strings(&options, ret_settings, ret_url) < 0)
        rc = hli_no_memory(err);
    else if (ret_url->username && !ret_url->password)
        rc = hli_fail(err, HL_EINVAL,
                      "a user without a password; a password alone is redis://:password@host");
    else
        rc = options_check_tls(ret_settings, ret_url, err);
    if (rc < 0)
        hli_options_deinit(ret_settings, ret_url);
    return rc;
}

void hli_options_deinit(hl_client_options *settings, struct hli_url *url)
{
    hli_settings_deinit(settings);
    hli_url_deinit(url);
}
