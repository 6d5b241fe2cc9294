/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { FACTS_TIMEOUT_MS = 5000, FACTS_SLOW_LOG = 128, FACTS_CLOCK_LOOKS = 5 };

/* The reply to a command of C strings that only reads; NULL if the server refuses. */
static hl_reply *facts_ask(hl_client *client, const char *node, const char *const *words,
                           hl_error *err)
{
    hl_command command = HL_COMMAND_INIT;
    hl_reply *reply = NULL;

    command.flags = HL_COMMAND_READS;
    command.node = node;
    command.words = words;
    command.timeout_ms = FACTS_TIMEOUT_MS;
    while (words[command.word_count])
        command.word_count++;
    return hl_client_command(client, &command, &reply, err) == 0 ? reply : NULL;
}

static char *facts_copy(const hl_reply *reply)
{
    return reply && reply->text ? strndup(reply->text, reply->length) : NULL;
}

static void facts_ask_info(hl_client *client, struct cli_facts *facts)
{
    static const char *const words[] = {"INFO", "all", NULL};
    hl_error err = HL_ERROR_INIT;
    hl_reply *reply = facts_ask(client, facts->node, words, &err);

    facts->info = facts_copy(reply);
    if (!facts->info)
        facts->why = strdup(err.text);
    hl_reply_free(reply);
}

static void facts_ask_user(hl_client *client, struct cli_facts *facts)
{
    static const char *const words[] = {"ACL", "WHOAMI", NULL};
    hl_reply *reply = facts_ask(client, facts->node, words, NULL);

    facts->user = facts_copy(reply);
    hl_reply_free(reply);
}

/* The reply is a list of the name and its value: empty for a name that the server does not know. */
static char *facts_ask_config(hl_client *client, struct cli_facts *facts, const char *name)
{
    const char *const words[] = {"CONFIG", "GET", name, NULL};
    hl_reply *reply = facts_ask(client, facts->node, words, NULL);
    char *value = NULL;

    if (reply && reply->element_count >= 2)
        value = facts_copy(reply->elements[1]);
    facts->has_config = facts->has_config || reply;
    hl_reply_free(reply);
    return value;
}

static void facts_ask_settings(hl_client *client, struct cli_facts *facts)
{
    facts->policy = facts_ask_config(client, facts, "maxmemory-policy");
    if (!facts->has_config)
        return;
    facts->appendfsync = facts_ask_config(client, facts, "appendfsync");
    facts->save = facts_ask_config(client, facts, "save");
    facts->min_replicas = facts_ask_config(client, facts, "min-replicas-to-write");
    facts->protected_mode = facts_ask_config(client, facts, "protected-mode");
}

static int64_t facts_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* How far the server's clock is ahead of one of this machine, give or take half a round trip. */
struct facts_clock {
    int64_t ahead_us, doubt_us;
};

static bool facts_ask_clock(hl_client *client, const char *node, clockid_t clock,
                            struct facts_clock *ret_clock)
{
    static const char *const words[] = {"TIME", NULL};
    int64_t before_us = facts_us(clock);
    hl_reply *reply = facts_ask(client, node, words, NULL);
    int64_t half_us = (facts_us(clock) - before_us) / 2;
    bool is_told = reply && reply->element_count == 2;

    if (is_told) {
        ret_clock->ahead_us = strtoll(reply->elements[0]->text, NULL, 10) * 1000000 +
                              strtoll(reply->elements[1]->text, NULL, 10) - (before_us + half_us);
        ret_clock->doubt_us = half_us;
    }
    hl_reply_free(reply);
    return is_told;
}

/* The quickest answer of several is the surest. */
static bool facts_look_at_clock(hl_client *client, const char *node, clockid_t clock,
                                struct facts_clock *ret_clock)
{
    if (!facts_ask_clock(client, node, clock, ret_clock))
        return false;
    for (int i = 1; i < FACTS_CLOCK_LOOKS; i++) {
        struct facts_clock again;
        if (facts_ask_clock(client, node, clock, &again) && again.doubt_us < ret_clock->doubt_us)
            *ret_clock = again;
    }
    return true;
}

/* The drift is measured beside a clock that is never stepped. */
static void facts_watch_clock(hl_client *client, struct cli_facts *facts, int64_t span_ms)
{
    const struct timespec span = {span_ms / 1000, span_ms % 1000 * 1000000};
    struct facts_clock shown, first, last;

    if (!facts_look_at_clock(client, facts->node, CLOCK_REALTIME, &shown) ||
        !facts_look_at_clock(client, facts->node, CLOCK_MONOTONIC, &first))
        return;
    nanosleep(&span, NULL);
    facts->has_clock = facts_look_at_clock(client, facts->node, CLOCK_MONOTONIC, &last);
    if (!facts->has_clock)
        return;
    facts->clock_ahead_us = shown.ahead_us;
    facts->clock_drift_us = last.ahead_us - first.ahead_us;
    facts->clock_doubt_us = first.doubt_us + last.doubt_us;
    facts->clock_span_ms = span_ms;
}

/* An entry: {id, time, microseconds, words, ...} (Redis docs, SLOWLOG GET). */
static bool facts_is_script(const hl_reply *entry)
{
    static const char *const scripts[] = {"EVALSHA", "EVAL", "FCALL"};

    if (entry->element_count < 4 || entry->elements[3]->element_count == 0)
        return false;
    const hl_reply *word = entry->elements[3]->elements[0];
    for (size_t i = 0; word->text && i < sizeof(scripts) / sizeof(scripts[0]); i++)
        if (strcasecmp(word->text, scripts[i]) == 0)
            return true;
    return false;
}

static void facts_ask_slow_log(hl_client *client, struct cli_facts *facts)
{
    char count[16];
    const char *const words[] = {"SLOWLOG", "GET", count, NULL};

    snprintf(count, sizeof(count), "%d", FACTS_SLOW_LOG);
    hl_reply *reply = facts_ask(client, facts->node, words, NULL);
    facts->slow_scripts = reply ? 0 : -1;
    for (size_t i = 0; reply && i < reply->element_count; i++) {
        const hl_reply *entry = reply->elements[i];
        if (!facts_is_script(entry))
            continue;
        facts->slow_scripts++;
        if (entry->elements[2]->integer > facts->slowest_script_us)
            facts->slowest_script_us = entry->elements[2]->integer;
    }
    hl_reply_free(reply);
}

void cli_facts_gather(hl_client *client, const char *node, int64_t span_ms,
                      struct cli_facts *ret_facts)
{
    *ret_facts = (struct cli_facts){.node = node, .slow_scripts = -1};
    facts_ask_info(client, ret_facts);
    facts_ask_user(client, ret_facts);
    facts_ask_settings(client, ret_facts);
    facts_watch_clock(client, ret_facts, span_ms);
    facts_ask_slow_log(client, ret_facts);
}

void cli_facts_free(struct cli_facts *facts)
{
    char *const owned[] = {facts->info, facts->why,    facts->user,         facts->appendfsync,
                           facts->save, facts->policy, facts->min_replicas, facts->protected_mode};

    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        free(owned[i]);
}

/* INFO has lines "field:value\r\n". */
bool cli_facts_text(const struct cli_facts *facts, const char *field, char *text, size_t size)
{
    size_t length = strlen(field);

    for (const char *line = facts->info; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, length) != 0 || line[length] != ':')
            continue;
        const char *value = line + length + 1;
        snprintf(text, size, "%.*s", (int)strcspn(value, "\r\n"), value);
        return true;
    }
    return false;
}

int64_t cli_facts_number(const struct cli_facts *facts, const char *field, int64_t otherwise)
{
    char text[64], *end;

    if (!cli_facts_text(facts, field, text, sizeof(text)))
        return otherwise;
    long long number = strtoll(text, &end, 10);
    return end == text ? otherwise : number;
}
