/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Words of options: how a value is read, and which of several counts. A number of a time has to
 * have a unit: a 30000 that was copied from watchdog_timeout_ms would be eight hours if it were
 * taken for seconds, as it is by other libraries' URLs. */
#include "client/option_words.h"

#include "base/error.h"
#include "client/option_table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORDS_SHOWN = 64 }; /* of a word in an error, escaped */

/* Which options are set already, by their places in the table. */
struct words {
    hl_client_options *settings;
    bool is_set[HLI_OPTIONS];  /* by the program, or by what takes precedence */
    bool is_said[HLI_OPTIONS]; /* by the words that are being read */
};

/* One word: what it is called in errors, its option and its text. */
struct word {
    const char *from; /* "URL: connections", "HIRELOCK_CONNECTIONS" */
    const struct hli_option *option;
    const char *text;
};

static int word_refuse(const struct word *word, const char *why, hl_error *err)
{
    char shown[WORDS_SHOWN];

    hli_error_escape(shown, sizeof(shown), word->text, strlen(word->text));
    return hli_fail(err, HL_EINVAL, "%s: '%s' %s", word->from, shown, why);
}

/* Refuses what is not within the limits of the table. */
static int word_limit(const struct word *word, int64_t value, int64_t *ret_value, hl_error *err)
{
    char least[HLI_OPTION_VALUE_SIZE], most[HLI_OPTION_VALUE_SIZE], why[96];
    int64_t low = word->option->least < 0 ? 1 : word->option->least; /* -1 is "forever" */

    if (value >= low && value <= word->option->most) {
        *ret_value = value;
        return 0;
    }
    hli_option_write(word->option, low, least);
    hli_option_write(word->option, word->option->most, most);
    snprintf(why, sizeof(why), "is not from %s to %s%s", least, most,
             word->option->least < 0 ? ", or forever" : "");
    return word_refuse(word, why, err);
}

/* Up to 18 digits; what is longer is beyond all limits. */
static int64_t word_digits(const char **text)
{
    int64_t number = 0;

    for (; isdigit((unsigned char)**text); (*text)++)
        number = number < INT64_C(100000000000000000) ? number * 10 + (**text - '0') : number;
    return number;
}

static int word_read_number(const struct word *word, int64_t *ret_value, hl_error *err)
{
    const char *end = word->text;
    bool is_negative = *end == '-';

    end += is_negative;
    const char *begin = end;
    int64_t number = word_digits(&end);
    if (end == begin || *end != '\0')
        return word_refuse(word, "is no number", err);
    return word_limit(word, is_negative && number > 0 ? -1 : number, ret_value, err);
}

static int word_read_replicas(const struct word *word, int64_t *ret_value, hl_error *err)
{
    if (strcmp(word->text, "majority") == 0) {
        *ret_value = HL_REPLICAS_MAJORITY;
        return 0;
    }
    if (strcmp(word->text, "none") == 0) {
        *ret_value = HL_REPLICAS_NONE;
        return 0;
    }
    if (!isdigit((unsigned char)word->text[0]))
        return word_refuse(word, "is neither a number nor majority or none", err);
    return word_read_number(word, ret_value, err);
}

static const struct {
    const char *name;
    int64_t ns;
} word_units[] = {
    {"us", 1000},
    {"ms", 1000000},
    {"s", INT64_C(1000000000)},
    {"m", INT64_C(60000000000)},
    {"h", INT64_C(3600000000000)},
    {"d", INT64_C(86400000000000)},
};

/* 0: it is none. */
static int64_t word_unit(const char *name)
{
    for (size_t i = 0; i < sizeof(word_units) / sizeof(word_units[0]); i++)
        if (strcmp(word_units[i].name, name) == 0)
            return word_units[i].ns;
    return 0;
}

/* The digits behind a point, of the unit. No strtod(): it would want the comma of some locales. */
static int64_t word_fraction(const char **text, int64_t unit_ns)
{
    int64_t part = unit_ns, sum = 0;

    if (**text != '.')
        return 0;
    for ((*text)++; isdigit((unsigned char)**text); (*text)++) {
        part /= 10;
        sum += part * (**text - '0');
        if (part == 0 && **text != '0')
            sum |= 1; /* less than a nanosecond: no whole number of any field's unit */
    }
    return sum;
}

static int word_read_time(const struct word *word, int64_t *ret_value, hl_error *err)
{
    const int64_t field_ns = word->option->kind == HLI_OPTION_MS ? 1000000 : 1000;
    const char *end = word->text;

    if (word->option->least < 0 && strcmp(word->text, "forever") == 0) {
        *ret_value = -1;
        return 0;
    }
    int64_t whole = word_digits(&end);
    if (end == word->text)
        return word_refuse(word, "is no time, such as 10s or 500ms", err);
    int64_t unit_ns = word_unit(end + strspn(end, ".0123456789"));
    if (unit_ns == 0 && *end == '\0' && whole == 0) /* no time at all has no unit */
        return word_limit(word, 0, ret_value, err);
    if (unit_ns == 0)
        return word_refuse(word, "has no unit of time: us, ms, s, m, h or d", err);
    int64_t ns = word_fraction(&end, unit_ns);
    if (word_unit(end) == 0)
        return word_refuse(word, "is no time, such as 10s or 500ms", err);
    if (whole > (INT64_MAX - ns) / unit_ns)
        return word_limit(word, INT64_MAX, ret_value, err);
    ns += whole * unit_ns;
    if (ns % field_ns != 0)
        return word_refuse(word,
                           word->option->kind == HLI_OPTION_MS
                               ? "is no whole number of milliseconds"
                               : "is no whole number of microseconds",
                           err);
    return word_limit(word, ns / field_ns, ret_value, err);
}

static int word_read_level(const struct word *word, int64_t *ret_value, hl_error *err)
{
    for (int level = HL_LOG_ERROR; level <= HL_LOG_DEBUG; level++)
        if (strcmp(hl_log_level_name((hl_log_level)level), word->text) == 0) {
            *ret_value = level;
            return 0;
        }
    return word_refuse(word, "is none of error, warning, info and debug", err);
}

static int word_read_flag(const struct word *word, int64_t *ret_value, hl_error *err)
{
    static const char *const texts[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcasecmp(texts[i], word->text) == 0) {
            *ret_value = i % 2;
            return 0;
        }
    return word_refuse(word, "is neither yes nor no", err);
}

/* Of a text, only that it is one. */
static int word_read(const struct word *word, int64_t *ret_value, hl_error *err)
{
    switch (word->option->kind) {
    case HLI_OPTION_MS:
    case HLI_OPTION_US:
        return word_read_time(word, ret_value, err);
    case HLI_OPTION_NUMBER:
        return word_read_number(word, ret_value, err);
    case HLI_OPTION_REPLICAS:
        return word_read_replicas(word, ret_value, err);
    case HLI_OPTION_LEVEL:
        return word_read_level(word, ret_value, err);
    case HLI_OPTION_FLAG:
        return word_read_flag(word, ret_value, err);
    default:
        return 0;
    }
}

static int words_set_text(struct words *words, const struct word *word, hl_error *err)
{
    char *copy = strdup(word->text);

    if (!copy)
        return hli_no_memory(err);
    *(const char **)(void *)((char *)words->settings + word->option->at) = copy;
    return 0;
}

/* Reads the word, and sets its option unless that is set already. */
static int words_take(struct words *words, const struct word *word, hl_error *err)
{
    size_t place = (size_t)(word->option - hli_option_table);
    int64_t value = 0;
    int rc = word_read(word, &value, err);

    if (rc < 0)
        return rc;
    if (words->is_said[place])
        return hli_fail(err, HL_EINVAL, "%s is there twice", word->from);
    words->is_said[place] = true;
    if (words->is_set[place])
        return 0;
    words->is_set[place] = true;
    if (word->option->kind == HLI_OPTION_TEXT)
        return words_set_text(words, word, err);
    hli_option_set(word->option, words->settings, value);
    return 0;
}

/* Only the name is shown of a word that is no option: its value may be a secret. */
static int words_unknown(const char *name, hl_error *err)
{
    const char *meant = hli_option_meant(name);
    char shown[WORDS_SHOWN];

    if (strcmp(name, "username") == 0 || strcmp(name, "password") == 0)
        return hli_fail(err, HL_EINVAL,
                        "URL: %s stands before the host, redis://user:password@host; a file is "
                        "named by password_file",
                        name);
    if (strcmp(name, "dispatch") == 0)
        return hli_fail(err, HL_EINVAL, "URL: dispatch is for the program: HL_CLIENT_DISPATCH");
    hli_error_escape(shown, sizeof(shown), name, strlen(name));
    return hli_fail(err, HL_EINVAL, "URL: '%s' is no option%s%s%s", shown,
                    meant ? "; did you mean '" : "; docs/options.md lists them", meant ? meant : "",
                    meant ? "'?" : "");
}

static int words_take_query(const char *name, const char *value, void *arg, hl_error *err)
{
    const struct hli_option *option = hli_option_of(name);
    char from[WORDS_SHOWN];

    if (!option)
        return words_unknown(name, err);
    snprintf(from, sizeof(from), "URL: %s", name);
    return words_take(arg, &(struct word){from, option, value}, err);
}

/* An empty variable counts as none, as in a template whose value is missing. A program with more
 * rights than its user has (AT_SECURE) does not read the user's environment. */
static const char *words_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && value[0] ? value : NULL;
}

const char *hli_option_words_url(void)
{
    const char *url = words_variable("HIRELOCK_URL");

    return url ? url : words_variable("REDIS_URL");
}

/* A password is an option of another name in each place that can have it. */
static void words_note_login(struct words *words, const struct hli_url *url)
{
    const hl_client_options *settings = words->settings;
    const struct hli_option *file = hli_option_of("password_file");
    const struct hli_option *sentinel_file = hli_option_of("sentinel_password_file");

    if (url->login.password || settings->credentials_cb)
        words->is_set[file - hli_option_table] = true;
    if (url->sentinel_login.password)
        words->is_set[sentinel_file - hli_option_table] = true;
}

static int words_take_environment(struct words *words, hl_error *err)
{
    for (int i = 0; i < HLI_OPTIONS; i++) {
        char name[WORDS_SHOWN];
        const struct hli_option *option = &hli_option_table[i];
        size_t length = (size_t)snprintf(name, sizeof(name), "HIRELOCK_%s", option->name);

        for (size_t at = 0; at < length; at++)
            name[at] = (char)toupper((unsigned char)name[at]);
        const char *value = words_variable(name);
        int rc = value ? words_take(words, &(struct word){name, option, value}, err) : 0;
        if (rc < 0)
            return rc;
    }
    if (words_variable("HIRELOCK_PASSWORD"))
        return hli_fail(err, HL_EINVAL,
                        "HIRELOCK_PASSWORD is not read: HIRELOCK_URL may have the password, and "
                        "HIRELOCK_PASSWORD_FILE the name of its file");
    return 0;
}

int hli_option_words_apply(const struct hli_url *url, hl_client_options *settings, hl_error *err)
{
    struct words words = {.settings = settings};

    /* HL_CLIENT_OPTIONS_INIT sets the default log level, so that one counts as not set. */
    for (int i = 0; i < HLI_OPTIONS; i++) {
        int64_t value = hli_option_get(&hli_option_table[i], settings);
        words.is_set[i] =
            value != 0 && (hli_option_table[i].kind != HLI_OPTION_LEVEL || value != HL_LOG_WARN);
    }
    int rc = hli_url_query(url, words_take_query, &words, err);
    if (rc < 0 || !(settings->flags & HL_CLIENT_ENVIRONMENT))
        return rc;
    words_note_login(&words, url);
    memset(words.is_said, 0, sizeof(words.is_said));
    return words_take_environment(&words, err);
}
