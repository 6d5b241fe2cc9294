/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The client's options: sizes, ranges, defaults. */
#include "client/options.h"

#include "base/error.h"
#include "base/secret.h"
#include "base/versioned.h"
#include "client/option_table.h"
#include "client/option_words.h"
#include "lease/calls/replicas.h"
#include "lease/state/command.h"
#include "redis/password_file.h"

#include <string.h>

enum {
    OPTIONS_REPLICAS_MS = 200,
    OPTIONS_HOST_LIMIT = 255, /* of a name that TLS sends (RFC 1035, 2.3.4) */
};

/* 0 becomes the default. */
static int options_check_value(const struct hli_option *option, hl_client_options *options,
                               hl_error *err)
{
    int64_t value = hli_option_get(option, options);
    bool is_ms = option->kind == HLI_OPTION_MS;

    if (value == 0)
        value = option->standard;
    hli_option_set(option, options, value);
    if (value >= option->least && value <= option->most)
        return 0;
    if (is_ms)
        return hli_fail(err, HL_EINVAL, "%s_ms is not from %lld to 10^11 ms", option->name,
                        (long long)option->least);
    return hli_fail(err, HL_EINVAL, "%s%s is not from %lld to %lld", option->name,
                    option->kind == HLI_OPTION_US ? "_us" : "", (long long)option->least,
                    (long long)option->most);
}

/* The default, which a short request timeout makes shorter. */
static int64_t options_replicas_ms(const hl_client_options *options)
{
    int64_t half_ms = options->request_timeout_ms / 2;
    bool is_short = options->request_timeout_ms > 0 && half_ms < OPTIONS_REPLICAS_MS;

    return !is_short ? OPTIONS_REPLICAS_MS : half_ms > 0 ? half_ms : 1;
}

/* A request may stand behind a WAIT that has just begun, and waits for its own after that: both
 * must fit into the time after which a server counts as dead. */
static int options_check_replicas(const hl_client_options *options, hl_error *err)
{
    if (options->min_replicas == 0 ||
        options->replicas_timeout_ms <= options->request_timeout_ms / 2)
        return 0;
    return hli_fail(
        err, HL_EINVAL,
        "replicas_timeout_ms (%lld) is more than half of request_timeout_ms (%lld): lower "
        "the one or raise the other",
        (long long)options->replicas_timeout_ms, (long long)options->request_timeout_ms);
}

static int options_check_values(hl_client_options *options, hl_error *err)
{
    if (options->replicas_timeout_ms == 0)
        options->replicas_timeout_ms = options_replicas_ms(options);
    for (int i = 0; i < HLI_OPTIONS; i++) {
        const struct hli_option *option = &hli_option_table[i];
        bool has_limits = option->kind == HLI_OPTION_MS || option->kind == HLI_OPTION_US ||
                          option->kind == HLI_OPTION_NUMBER;
        if (has_limits && options_check_value(option, options, err) < 0)
            return HL_EINVAL;
    }
    if (options->backoff_min_ms > options->backoff_max_ms)
        return hli_fail(err, HL_EINVAL, "backoff_min_ms is greater than backoff_max_ms");
    return options_check_replicas(options, err);
}

/* The grace must outlast each lease that the old master gave, and the old master itself. */
static int options_check_grace(const hl_client_options *options, hl_error *err)
{
    int64_t grace_ms = options->failover_grace_ms, old_ms = options->old_master_ms;
    int64_t longest_ms = hli_lease_longest_ms(options);

    if (grace_ms == 0 && old_ms > 0)
        return hli_fail(err, HL_EINVAL, "old_master_ms needs failover_grace_ms");
    if (grace_ms > 0 && grace_ms < options->watchdog_timeout_ms + old_ms)
        return hli_fail(err, HL_EINVAL,
                        "failover_grace_ms is less than watchdog_timeout_ms and old_master_ms "
                        "together (%lld ms): make the lease shorter or the grace longer",
                        (long long)(options->watchdog_timeout_ms + old_ms));
    if (grace_ms > 0 && grace_ms < longest_ms + old_ms)
        return hli_fail(err, HL_EINVAL,
                        "failover_grace_ms is less than two poll_ms, the lease of a grant, and "
                        "old_master_ms together (%lld ms): make the poll shorter or the grace "
                        "longer",
                        (long long)(longest_ms + old_ms));
    return 0;
}

static int options_check(hl_client_options *options, hl_error *err)
{
    const unsigned known = HL_CLIENT_LAZY | HL_CLIENT_DISPATCH | HL_CLIENT_RELEASE_ON_CLOSE |
                           HL_CLIENT_RELEASE_ON_THREAD_EXIT | HL_CLIENT_HOLDER_INFO |
                           HL_CLIENT_TLS_UNVERIFIED | HL_CLIENT_KEEP_UNCONFIRMED |
                           HL_CLIENT_ENVIRONMENT | HL_CLIENT_NO_DEADLOCK_CHECK;

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
    if (hli_replicas_check(options->min_replicas, err) < 0)
        return HL_EINVAL;
    int rc = options_check_values(options, err);
    return rc == 0 ? options_check_grace(options, err) : rc;
}

/* Options take precedence over the URL. Secrets are copied, and the replaced ones are wiped. */
static int options_take_logins(const hl_client_options *options, struct hli_url *url)
{
    int rc = hli_login_set(&url->login, options->username, options->password);

    return rc == 0 ? hli_login_set(&url->sentinel_login, options->sentinel_username,
                                   options->sentinel_password)
                   : rc;
}

static int options_copy_strings(const hl_client_options *options, hl_client_options *settings,
                                struct hli_url *url)
{
    const char **text[HLI_SETTINGS_STRINGS];
    bool is_whole = true;

    hli_settings_strings(settings, text);
    *settings = *options;
    settings->username = settings->password = NULL;
    settings->sentinel_username = settings->sentinel_password = NULL;
    for (int i = 0; i < HLI_SETTINGS_STRINGS; i++) {
        bool is_set = *text[i] != NULL;
        *text[i] = is_set ? strdup(*text[i]) : NULL;
        is_whole = is_whole && (*text[i] != NULL) == is_set;
    }
    return is_whole ? options_take_logins(options, url) : HL_ENOMEM;
}

/* Reads the file once to see that it can be read; each greeting reads it again. */
static int options_check_file(const char *option, const char *path, hl_error *err)
{
    const struct hli_password_file file = {.option = option, .path = path, .code = HL_EINVAL};
    char *password = NULL;
    int rc = path ? hli_password_file_read(&file, &password, err) : 0;

    hli_secret_free(password);
    return rc;
}

static int options_check_login(const hl_client_options *options, const struct hli_login *login,
                               hl_error *err)
{
    if (options->credentials_cb && (login->username || login->password || options->password_file))
        return hli_fail(err, HL_EINVAL,
                        "credentials_cb gives the user and the password: no other option or URL "
                        "may");
    if (options->password_file && login->password)
        return hli_fail(err, HL_EINVAL,
                        "password_file, and a password in the options or the URL: give one");
    if (login->username && !login->password && !options->password_file)
        return hli_fail(err, HL_EINVAL,
                        "a user without a password; a password alone is redis://:password@host");
    return options_check_file("password_file", options->password_file, err);
}

static int options_check_sentinel_login(const hl_client_options *options, const struct hli_url *url,
                                        hl_error *err)
{
    const struct hli_login *login = &url->sentinel_login;
    const char *file = options->sentinel_password_file;

    if (file && login->password)
        return hli_fail(err, HL_EINVAL, "sentinel_password_file and sentinel_password: give one");
    if (login->username && !login->password && !file)
        return hli_fail(err, HL_EINVAL, "sentinel_username without a sentinel_password");
    if ((login->password || file) && url->kind != HLI_URL_SENTINEL)
        return hli_fail(err, HL_EINVAL, "%s needs a URL with redis-sentinel://",
                        file ? "sentinel_password_file" : "sentinel_password");
    return options_check_file("sentinel_password_file", file, err);
}

static int options_check_logins(const hl_client_options *options, const struct hli_url *url,
                                hl_error *err)
{
    int rc = options_check_login(options, &url->login, err);

    return rc == 0 ? options_check_sentinel_login(options, url, err) : rc;
}

static int options_check_host(const char *option, const char *name, hl_error *err)
{
    if (!name || (name[0] && strlen(name) <= OPTIONS_HOST_LIMIT))
        return 0;
    return hli_fail(err, HL_EINVAL, "%s has %zu bytes: from 1 to %d are allowed", option,
                    strlen(name), OPTIONS_HOST_LIMIT);
}

/* An option that is set and needs TLS; NULL: none is. */
static const char *options_of_tls(const hl_client_options *options)
{
    for (int i = 0; i < HLI_OPTIONS; i++) {
        const struct hli_option *option = &hli_option_table[i];
        if (strstr(option->name, "tls_") && hli_option_get(option, options) != 0)
            return option->name;
    }
    return NULL;
}

/* An option of TLS without TLS is refused: the program must not go on in the clear. */
static int options_check_tls(const hl_client_options *options, const struct hli_url *url,
                             hl_error *err)
{
    const char *sentinel_name = options->sentinel_tls_server_name;
    const char *of_tls = options_of_tls(options);

    if (!url->has_tls && of_tls)
        return hli_fail(err, HL_EINVAL, "%s needs a URL with rediss://", of_tls);
    if (sentinel_name && url->kind != HLI_URL_SENTINEL)
        return hli_fail(err, HL_EINVAL,
                        "sentinel_tls_server_name needs a URL with redis-sentinel://");
    int rc = options_check_host("tls_server_name", options->tls_server_name, err);
    return rc == 0 ? options_check_host("sentinel_tls_server_name", sentinel_name, err) : rc;
}

/* The name has no default in the table of options, whose defaults are numbers. */
static int options_name_client(hl_client_options *settings)
{
    if (!settings->client_name)
        settings->client_name = strdup("hirelock");
    return settings->client_name ? 0 : HL_ENOMEM;
}

/* What the program passed is copied, completed by words, and then checked as a whole. */
static int options_settle(const hl_client_options *options, hl_client_options *settings,
                          struct hli_url *url, hl_error *err)
{
    if (options_copy_strings(options, settings, url) < 0)
        return hli_no_memory(err);
    int rc = hli_option_words_apply(url, settings, err);
    if (rc == 0 && options_name_client(settings) < 0)
        rc = hli_no_memory(err);
    if (rc == 0)
        rc = options_check(settings, err);
    if (rc == 0)
        rc = options_check_logins(settings, url, err);
    return rc == 0 ? options_check_tls(settings, url, err) : rc;
}

static int options_read_url(const char *text, const hl_client_options *options,
                            struct hli_url *ret_url, hl_error *err)
{
    bool has_environment = options->flags & HL_CLIENT_ENVIRONMENT;

    if (!text && has_environment)
        text = hli_option_words_url();
    if (!text)
        return hli_fail(err, HL_EINVAL,
                        has_environment ? "the URL is NULL, and HIRELOCK_URL is not set"
                                        : "the URL is NULL");
    return hli_url_parse(text, ret_url, err);
}

int hli_options_read(const char *text, const hl_client_options *passed,
                     hl_client_options *ret_settings, struct hli_url *ret_url, hl_error *err)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    int rc = hli_versioned_read(&options, sizeof(options), passed, "the options", err);
    if (rc == 0)
        rc = options_read_url(text, &options, ret_url, err);
    if (rc < 0)
        return rc;
    rc = options_settle(&options, ret_settings, ret_url, err);
    if (rc < 0)
        hli_options_deinit(ret_settings, ret_url);
    return rc;
}

void hli_options_deinit(hl_client_options *settings, struct hli_url *url)
{
    hli_settings_deinit(settings);
    hli_url_deinit(url);
}
