/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock exporter [PATTERN]: the metrics of the server's side, for Prometheus. */
#include "cli/exporter/pages.h"
#include "cli/exporter/surveyor.h"
#include "cli/survey.h"

#include <stdlib.h>
#include <string.h>

enum {
    EXPORTER_INTERVAL_MS = 15000,
    EXPORTER_LEAST_MS = 100,
    EXPORTER_NAMES = 20,
    EXPORTER_MOST_NAMES = 1000,
    EXPORTER_OUTAGE_MS = 2000, /* a survey without a server has failed by then */
    EXPORTER_KEY_NAMES = 1
};

/* Redis' exporter has 9121. */
#define EXPORTER_PORT "19121"

struct exporter_words {
    struct cli_server server;
    const char *pattern, *listen;
    int64_t interval_ms;
    size_t names;
};

static error_t exporter_parse(int key, char *word, struct argp_state *state)
{
    struct exporter_words *words = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case 'i':
        words->interval_ms = cli_read_time(word);
        if (words->interval_ms < EXPORTER_LEAST_MS)
            argp_error(state, "'%s' is no time from 100ms on: 15, 0.5, 1m", word);
        return 0;
    case 'l':
        words->listen = word;
        return 0;
    case EXPORTER_KEY_NAMES:
        words->names = strtoul(word, &end, 10);
        if (end == word || *end || word[0] == '-' || words->names > EXPORTER_MOST_NAMES)
            argp_error(state, "'%s' is no number from 0 to %d", word, EXPORTER_MOST_NAMES);
        return 0;
    default:
        return cli_take_pattern(&words->pattern, key, word, state);
    }
}

static const struct argp_option exporter_options[] = {
    {"interval", 'i', "SECONDS", 0, "between two surveys; 15", 0},
    {"listen", 'l', "[HOST:]PORT", 0, "127.0.0.1:" EXPORTER_PORT "; port 0: one that is free", 0},
    {"names", EXPORTER_KEY_NAMES, "N", 0, "at most N names become labels; 20", 0},
    {0}};
static const struct argp_child exporter_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp exporter_argp = {
    .options = exporter_options,
    .parser = exporter_parse,
    .args_doc = "[PATTERN]",
    .doc = "Serves what the servers' data say of locks, for Prometheus, until SIGINT or SIGTERM.\v"
           "Examples:\n"
           "  hirelock exporter --url rediss://locks.example --listen 0.0.0.0:" EXPORTER_PORT "\n"
           "  hirelock exporter --names 0 --interval 1m 'stock:*'\n\n"
           "It serves /metrics, /health and a page /, to all who reach the port. Each survey goes "
           "through all keys, as 'hirelock list' does, and looks at each node, as 'hirelock "
           "doctor --read-only' does. A scrape starts no survey: it gets the last one. A name "
           "becomes a label while somebody waits for it, while it has no expiry, or once it is "
           "held for a minute.",
    .children = exporter_children};

static char *exporter_write_metrics(void *arg, size_t *ret_length)
{
    return exporter_surveyor_text(arg, ret_length);
}

static char *exporter_copy(const char *text, size_t *ret_length)
{
    *ret_length = strlen(text);
    return strdup(text);
}

static char *exporter_write_health(void *arg, size_t *ret_length)
{
    (void)arg;
    return exporter_copy("ok\n", ret_length);
}

static char *exporter_write_start(void *arg, size_t *ret_length)
{
    (void)arg;
    return exporter_copy("<!DOCTYPE html><html lang=\"en\"><title>hirelock exporter</title>"
                         "<h1>hirelock exporter</h1><p><a href=\"/metrics\">metrics</a></p>\n",
                         ret_length);
}

static const struct exporter_page exporter_page[] = {
    {"/metrics", HL_METRICS_CONTENT_TYPE, exporter_write_metrics},
    {"/health", "text/plain; charset=utf-8", exporter_write_health},
    {"/", "text/html; charset=utf-8", exporter_write_start},
};

/* Takes over the socket. */
static int exporter_run_at(int socket, const struct exporter_options *options)
{
    struct exporter_surveyor *surveyor = exporter_surveyor_start(options);
    const struct exporter_pages pages = {
        exporter_page, sizeof(exporter_page) / sizeof(exporter_page[0]), surveyor};

    if (!surveyor) {
        cli_say("there is no memory or no thread left");
        return CLI_FAILED;
    }
    bool is_served = exporter_serve(socket, &pages);
    exporter_surveyor_end(surveyor);
    return is_served ? CLI_OK : CLI_FAILED;
}

/* The server may come later: the port is what must be there. */
static int exporter_run(int argc, char **argv)
{
    struct exporter_words words = {
        .listen = EXPORTER_PORT, .interval_ms = EXPORTER_INTERVAL_MS, .names = EXPORTER_NAMES};
    hl_client_options client_options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    char *pattern = NULL;

    client_options.flags = HL_CLIENT_LAZY;
    client_options.outage_timeout_ms = EXPORTER_OUTAGE_MS;
    cli_parse(&cli_exporter, argc, argv, &words);
    int socket = exporter_listen(words.listen);
    int status = socket < 0 ? CLI_FAILED : CLI_OK;
    if (status == CLI_OK)
        status = cli_server_open(&words.server, &client_options, &client);
    if (status == CLI_OK) {
        pattern = cli_survey_pattern(&words.server, words.pattern);
        status = pattern ? CLI_OK : CLI_FAILED;
    }
    if (status == CLI_OK) {
        const struct exporter_options options = {.client = client,
                                                 .server = &words.server,
                                                 .pattern = pattern,
                                                 .interval_ms = words.interval_ms,
                                                 .names = words.names};
        status = exporter_run_at(socket, &options);
    }
    cli_server_close(&words.server, client);
    free(pattern);
    return status;
}

const struct cli_command cli_exporter = {.name = "exporter",
                                         .summary = "serve the servers' metrics for Prometheus",
                                         .argp = &exporter_argp,
                                         .run = exporter_run};
