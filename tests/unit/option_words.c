/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Options by words: what they may say, which of several counts, and that their page is true. */

#include "client/option_table.h"
#include "client/options.h"

#include "support/failing_malloc.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hl_client_options settings;
static struct hli_url server;
static hl_error err;

static int read_url(const char *url, const hl_client_options *options)
{
    err = (hl_error)HL_ERROR_INIT;
    return hli_options_read(url, options, &settings, &server, &err);
}

static int read_query(const char *query)
{
    char url[512];

    snprintf(url, sizeof url, "redis://h/3?%s", query);
    return read_url(url, NULL);
}

static void discard(void)
{
    hli_options_deinit(&settings, &server);
}

static hl_client_options with_environment(void)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    options.flags = HL_CLIENT_ENVIRONMENT;
    return options;
}

static const struct hli_option *option(const char *name)
{
    const struct hli_option *found = hli_option_of(name);

    check_msg(found != NULL, "%s", name);
    return found;
}

static const struct {
    const char *name, *text;
    long long value; /* in the field's unit */
} good[] = {
    {"connect_timeout", "500ms", 500},
    {"connect_timeout", "1ms", 1},
    {"request_timeout", "2s", 2000},
    {"outage_timeout", "forever", -1},
    {"outage_timeout", "1m", 60000},
    {"watchdog_timeout", "10s", 10000},
    {"watchdog_timeout", "0.25s", 250},
    {"watchdog_timeout", "10000us", 10},
    {"watchdog_timeout", "1.5h", 5400000},
    {"watchdog_timeout", "100000000s", 100000000000},
    {"poll", "1d", 86400000},
    {"busy_poll", "50us", 50},
    {"busy_poll", "1ms", 1000},
    {"busy_poll", "0", 0},
    {"failover_grace", "0", 0},
    {"connections", "16", 16},
    {"min_replicas", "2", 2},
    {"min_replicas", "0", 0},
    {"min_replicas", "majority", HL_REPLICAS_MAJORITY},
    {"min_replicas", "none", HL_REPLICAS_NONE},
    {"log_level", "debug", HL_LOG_DEBUG},
    {"log_level", "error", HL_LOG_ERROR},
    {"lazy", "yes", 1},
    {"lazy", "ON", 1},
    {"lazy", "true", 1},
    {"lazy", "1", 1},
    {"holder_info", "no", 0},
    {"holder_info", "Off", 0},
    {"holder_info", "false", 0},
    {"holder_info", "0", 0},
};

Test(option_words, are_read_from_the_query_of_a_url)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char query[128];
        snprintf(query, sizeof query, "%s=%s", good[i].name, good[i].text);
        int rc = read_query(query);
        check_msg(rc == 0, "%s: %s", query, err.text);
        long long value = hli_option_get(option(good[i].name), &settings);
        check_msg(value == good[i].value, "%s is %lld", query, value);
        check_int(server.database, 3);
        discard();
    }
}

static const struct {
    const char *url, *says;
} bad[] = {
    {"redis://h?watchdog_timout=10s",
     "URL: 'watchdog_timout' is no option; did you mean 'watchdog_timeout'?"},
    {"redis://h?wholly_unlike=TopSecret", "URL: 'wholly_unlike' is no option; docs/options.md"},
    {"redis://h?passwrd=TopSecret", "URL: 'passwrd' is no option"},
    {"redis://h?password=TopSecret", "password stands before the host"},
    {"redis://h?username=u", "username stands before the host"},
    {"redis://h?dispatch=yes", "HL_CLIENT_DISPATCH"},
    {"redis://h?connections=99", "URL: connections: '99' is not from 1 to 16"},
    {"redis://h?connections=0", "'0' is not from 1 to 16"},
    {"redis://h?connections=-1", "'-1' is not from 1 to 16"},
    {"redis://h?connections=4x", "'4x' is no number"},
    {"redis://h?connections=", "'' is no number"},
    {"redis://h?connections=99999999999999999999999", "is not from 1 to 16"},
    {"redis://h?connections=4&connections=4", "URL: connections is there twice"},
    {"redis://h?watchdog_timeout=30000", "'30000' has no unit of time: us, ms, s, m, h or d"},
    {"redis://h?watchdog_timeout=30000.5", "has no unit of time"},
    {"redis://h?watchdog_timeout=10 s", "has no unit of time"},
    {"redis://h?watchdog_timeout=1.5.5s", "'1.5.5s' is no time"},
    {"redis://h?watchdog_timeout=s", "'s' is no time, such as 10s or 500ms"},
    {"redis://h?watchdog_timeout=-10s", "'-10s' is no time"},
    {"redis://h?watchdog_timeout=9ms", "'9ms' is not from 10ms to 10^11ms"},
    {"redis://h?watchdog_timeout=0", "'0' is not from 10ms to 10^11ms"},
    {"redis://h?watchdog_timeout=forever", "'forever' is no time"},
    {"redis://h?watchdog_timeout=1158d", "is not from 10ms to 10^11ms"},
    {"redis://h?watchdog_timeout=99999999999999999999999d", "is not from 10ms to 10^11ms"},
    {"redis://h?watchdog_timeout=0.0105s", "is no whole number of milliseconds"},
    {"redis://h?watchdog_timeout=1.00000000000001s", "is no whole number of milliseconds"},
    {"redis://h?outage_timeout=0", "'0' is not from 1ms to 10^11ms, or forever"},
    {"redis://h?busy_poll=0.5us", "is no whole number of microseconds"},
    {"redis://h?busy_poll=1001us", "'1001us' is not from 0 to 1000us"},
    {"redis://h?min_replicas=most", "'most' is neither a number nor majority or none"},
    {"redis://h?min_replicas=1001", "'1001' is not from 0 to 1000"},
    {"redis://h?log_level=loud", "'loud' is none of error, warning, info and debug"},
    {"redis://h?lazy=maybe", "'maybe' is neither yes nor no"},
    {"redis://h?lazy=%01%27", "'\\x01\\x27' is neither yes nor no"},
    {"redis://h?backoff_min=5s", "backoff_min_ms is greater than backoff_max_ms"},
    {"redis://h?tls_ca_file=/x", "tls_ca_file needs a URL with rediss://"},
    {"redis://h?tls_unverified=yes", "tls_unverified needs a URL with rediss://"},
    {"redis://:p@h?password_file=/dev/null", "give one"},
};

Test(option_words, say_what_is_allowed_and_show_no_secret)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int rc = read_url(bad[i].url, NULL);
        check_msg(rc == HL_EINVAL, "%s: %s", bad[i].url, hl_err_name(rc));
        check_int(err.code, HL_EINVAL);
        check_msg(strstr(err.text, bad[i].says) != NULL, "%s: %s", bad[i].url, err.text);
        check_msg(strstr(err.text, "Secret") == NULL, "%s", err.text);
    }
}

Test(option_words, stand_behind_all_kinds_of_urls)
{
    static const char *const urls[] = {
        "redis://u:p@h:7/1?client_name=me&connections=8",
        "valkey://h?client_name=me&connections=8",
        "unix:///s?client_name=me&db=1&connections=8",
        "redis-sentinel://a,b/m?connections=8&client_name=m%65",
        "redis-cluster://a,b?connections=8&client_name=me",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        check_msg(read_url(urls[i], NULL) == 0, "%s: %s", urls[i], err.text);
        check_str(settings.client_name, "me");
        check_int(settings.connections, 8);
        discard();
    }
}

Test(option_words, of_the_url_give_way_to_the_program_and_not_to_the_environment)
{
    hl_client_options options = with_environment();

    setenv("HIRELOCK_CONNECTIONS", "2", 1);
    setenv("HIRELOCK_POLL", "200ms", 1);
    setenv("HIRELOCK_NAME_PREFIX", "env:", 1);
    setenv("HIRELOCK_HOLDER_INFO", "yes", 1);
    setenv("HIRELOCK_LAZY", "yes", 1);
    setenv("HIRELOCK_LOG_LEVEL", "", 1); /* empty: not there */
    options.connections = 7;
    check_int(read_url("redis://h?connections=8&poll=300ms&name_prefix=&lazy=no&log_level=debug",
                       &options),
              0);
    check_int(settings.connections, 7);
    check_int(settings.poll_ms, 300);
    check_str(settings.name_prefix, "");
    check_int(settings.flags, HL_CLIENT_ENVIRONMENT | HL_CLIENT_HOLDER_INFO);
    check_int(settings.log_level, HL_LOG_DEBUG);
    discard();
    options.connections = 0;
    check_int(read_url("redis://h", &options), 0);
    check_int(settings.connections, 2);
    check_int(settings.poll_ms, 200);
    check_str(settings.name_prefix, "env:");
    check_int(settings.log_level, HL_LOG_WARN);
    discard();
    check_int(read_url("redis://h", NULL), 0); /* not asked for */
    check_int(settings.connections, 4);
    check(settings.name_prefix == NULL);
    discard();
}

Test(option_words, of_the_environment_are_checked_though_the_url_overrides_them)
{
    hl_client_options options = with_environment();

    setenv("HIRELOCK_CONNECTIONS", "99", 1);
    check_int(read_url("redis://h?connections=8", &options), HL_EINVAL);
    check_str(err.text, "HIRELOCK_CONNECTIONS: '99' is not from 1 to 16");
}

Test(option_words, of_the_environment_may_be_the_url)
{
    hl_client_options options = with_environment();

    unsetenv("REDIS_URL");
    check_int(read_url(NULL, &options), HL_EINVAL);
    check_msg(strstr(err.text, "HIRELOCK_URL is not set") != NULL, "%s", err.text);
    setenv("REDIS_URL", "redis://second", 1);
    check_int(read_url(NULL, &options), 0);
    check_str(server.addresses[0].host, "second");
    discard();
    setenv("HIRELOCK_URL", "redis://first?connections=3", 1);
    check_int(read_url(NULL, &options), 0);
    check_str(server.addresses[0].host, "first");
    check_int(settings.connections, 3);
    discard();
    check_int(read_url("redis://given", &options), 0);
    check_str(server.addresses[0].host, "given");
    discard();
    check_int(read_url(NULL, NULL), HL_EINVAL);
    check_str(err.text, "the URL is NULL");
}

Test(option_words, of_the_environment_name_a_file_for_a_login_that_nothing_else_gives)
{
    hl_client_options options = with_environment();
    char path[] = "/tmp/hirelock-words-XXXXXX";
    int fd = mkstemp(path);

    check(fd >= 0 && write(fd, "pw\n", 3) == 3 && close(fd) == 0);
    setenv("HIRELOCK_PASSWORD_FILE", path, 1);
    check_int(read_url("redis://bob@h", &options), 0);
    check_str(settings.password_file, path);
    discard();
    check_int(read_url("redis://bob:own@h", &options), 0);
    check(settings.password_file == NULL);
    check_str(server.login.password, "own");
    discard();
    setenv("HIRELOCK_PASSWORD", "TopSecret", 1);
    check_int(read_url("redis://h", &options), HL_EINVAL);
    check_msg(strstr(err.text, "HIRELOCK_PASSWORD_FILE") != NULL, "%s", err.text);
    check(strstr(err.text, "Secret") == NULL);
    unlink(path);
}

/* Random words made of the marks and letters that mean something, and of any bytes. */
static void scribble(char *text, size_t length, unsigned *seed)
{
    static const char marks[] = "=&?%@/:.,0123456789smhdu-+ \"'\\\n\x7f\xff";
    static const char *const words[] = {"connections",  "poll",        "lazy", "log_level", "db",
                                        "min_replicas", "client_name", "=1s",  "=4&"};
    size_t at = 0;

    while (at + 16 < length && rand_r(seed) % 24 != 0)
        if (rand_r(seed) % 3 == 0)
            at += (size_t)sprintf(text + at, "%s", words[(size_t)rand_r(seed) % 9]);
        else
            text[at++] = marks[(size_t)rand_r(seed) % (sizeof marks - 1)];
    text[at] = '\0';
}

Test(option_words, of_random_bytes_are_within_the_limits_or_refused)
{
    unsigned seed = 20261125;
    int accepted = 0;

    for (int i = 0; i < 200000; i++) {
        char query[160];
        scribble(query, sizeof query, &seed);
        if (read_query(query) < 0) {
            check_msg(err.code == HL_EINVAL && err.text[0], "%s", query);
            continue;
        }
        accepted++;
        for (int k = 0; k < HLI_OPTIONS; k++) {
            const struct hli_option *one = &hli_option_table[k];
            int64_t value = hli_option_get(one, &settings);
            check_msg(one->kind == HLI_OPTION_TEXT || one->kind == HLI_OPTION_REPLICAS ||
                          (value >= one->least && value <= one->most),
                      "%s: %s is %lld", query, one->name, (long long)value);
        }
        discard();
    }
    check_msg(accepted > 100, "%d", accepted);
}

static int short_code;

static void read_short(void *arg)
{
    hl_client_options options = with_environment();

    (void)arg;
    options.password = "secret";
    short_code = read_url("redis://u@h?client_name=me&name_prefix=shop:&connections=8", &options);
}

static void verify_short(void *arg, bool failed)
{
    (void)arg;
    check_int(short_code, failed ? HL_ENOMEM : 0);
    if (short_code == 0)
        discard();
}

Test(option_words, fail_whole_when_memory_is_out)
{
    const struct failing_scenario scenario = {
        .scope = FAILING_THREAD, .run = read_short, .verify = verify_short};

    if (!failing_malloc_available())
        return;
    setenv("HIRELOCK_TLS_SERVER_NAME", "", 1);
    unsetenv("HIRELOCK_PASSWORD");
    long live = failing_malloc_live();
    check(failing_malloc_sweep(&scenario) >= 3);
    check_int(failing_malloc_live(), live);
}

/* "| `connect_timeout` | 2s | 1ms to 10^11ms |": more columns may follow. */
static void write_row(const struct hli_option *one, char *row, size_t size)
{
    char standard[HLI_OPTION_VALUE_SIZE], least[HLI_OPTION_VALUE_SIZE], most[HLI_OPTION_VALUE_SIZE];
    char limits[80] = "text";

    hli_option_write(one, one->standard, standard);
    hli_option_write(one, one->least < 0 ? 1 : one->least, least);
    hli_option_write(one, one->most, most);
    if (one->kind == HLI_OPTION_FLAG)
        snprintf(limits, sizeof limits, "yes, no");
    else if (one->kind == HLI_OPTION_LEVEL)
        snprintf(limits, sizeof limits, "error, warning, info, debug");
    else if (one->kind != HLI_OPTION_TEXT)
        snprintf(limits, sizeof limits, "%s to %s%s%s", least, most,
                 one->least < 0 ? ", forever" : "",
                 one->kind == HLI_OPTION_REPLICAS ? ", majority, none" : "");
    snprintf(row, size, "| `%s` | %s | %s |", one->name, standard, limits);
}

Test(option_words, are_the_rows_of_their_page)
{
    static char page[65536];
    FILE *file = fopen(HL_OPTIONS_PAGE, "r");

    check(file != NULL);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    const char *last = page;
    for (int i = 0; i < HLI_OPTIONS; i++) {
        char row[160];
        write_row(&hli_option_table[i], row, sizeof row);
        const char *found = strstr(page, row);
        check_msg(found != NULL, "docs/options.md has no row %s", row);
        check_msg(found > last, "docs/options.md has another order than the table: %s", row);
        last = found;
    }
}
