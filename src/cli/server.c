/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A URL may have a password: it is wiped from the command line, which ps(1) shows to all users. */
#include "cli/server.h"

#include <stdlib.h>
#include <string.h>

void cli_server_take_url(struct cli_server *server, char *word)
{
    free(server->url);
    server->url = strdup(word);
    memset(word, 'x', strlen(word));
}

static error_t server_parse(int key, char *word, struct argp_state *state)
{
    struct cli_server *server = state->input;

    switch (key) {
    case 'u':
        cli_server_take_url(server, word);
        return 0;
    case 'p':
        server->prefix = word;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option server_options[] = {
    {"url", 'u', "URL", 0, "the server, for HIRELOCK_URL or REDIS_URL of the environment", 8},
    {"prefix", 'p', "TEXT", 0, "stands before each name", 8},
    {0}};

const struct argp cli_server_argp = {.options = server_options, .parser = server_parse};

const char *cli_server_url(const struct cli_server *server)
{
    static const char *const names[] = {"HIRELOCK_URL", "REDIS_URL"};

    if (server->url)
        return server->url;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *url = getenv(names[i]);
        if (url && url[0])
            return url;
    }
    return "redis://127.0.0.1";
}

int cli_failed(const hl_error *err)
{
    cli_say("%s", err->text);
    switch (err->code) {
    case HL_ECONN:
    case HL_EPROTO:
        return CLI_NO_SERVER;
    case HL_EBUSY:
    case HL_ETIMEDOUT:
        return CLI_CONFLICT;
    case HL_ELOST:
        return CLI_LOST;
    default:
        return CLI_FAILED;
    }
}

int cli_server_open(const struct cli_server *server, const hl_client_options *options,
                    hl_client **ret_client)
{
    hl_client_options mine = HL_CLIENT_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;

    if (options)
        mine = *options;
    mine.name_prefix = server->prefix;
    mine.flags |= HL_CLIENT_ENVIRONMENT;
    return hl_client_open(cli_server_url(server), &mine, ret_client, &err) == 0 ? CLI_OK
                                                                                : cli_failed(&err);
}

void cli_server_close(struct cli_server *server, hl_client *client)
{
    hl_client_close(client);
    free(server->url);
    server->url = NULL;
}
