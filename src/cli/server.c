/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A URL may have a password: it is wiped from the command line, which ps(1) shows to all users. */
#include "cli/server.h"

#include <stdio.h>
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
        free(server->prefix);
        server->prefix = strdup(word);
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

/* "redis://user:password@host": an @ stands nowhere else in a URL. */
char *cli_server_shown_url(const struct cli_server *server)
{
    char *url = server->url ? strdup(server->url) : NULL;
    char *at = url ? strchr(url, '@') : NULL, *login = at ? strstr(url, "://") : NULL;

    if (!login)
        return url;
    login += strlen("://");
    char *colon = memchr(login, ':', (size_t)(at - login));
    if (colon == login)
        at++;
    if (colon)
        memmove(colon, at, strlen(at) + 1);
    return url;
}

struct server_nodes {
    struct cli_node *nodes;
    size_t count, most;
};

static void server_note_node(const hl_node *node, void *arg)
{
    struct server_nodes *all = arg;

    if (all->count == all->most)
        return;
    struct cli_node *mine = &all->nodes[all->count++];
    snprintf(mine->address, sizeof(mine->address), "%s", node->address);
    snprintf(mine->problem, sizeof(mine->problem), "%s", node->problem ? node->problem : "");
    mine->is_sentinel = node->role == HL_NODE_SENTINEL;
    mine->is_connected = node->is_connected;
}

int cli_server_nodes(hl_client *client, struct cli_node *ret_nodes, size_t most)
{
    struct server_nodes all = {.nodes = ret_nodes, .most = most};

    return hl_client_nodes(client, server_note_node, &all);
}

int cli_status(int code)
{
    switch (code) {
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

int cli_failed(const hl_error *err)
{
    cli_say("%s", err->text);
    return cli_status(err->code);
}

/* The client's prefix is that of each name that it makes. */
static int server_find_prefix(struct cli_server *server, hl_client *client, hl_error *err)
{
    static const char word[] = "x";
    hl_lock *lock = NULL;
    int rc = hl_lock_new(client, word, &lock, err);

    if (rc < 0)
        return rc;
    server->prefix =
        strndup(hl_lock_name(lock, NULL), strlen(hl_lock_name(lock, NULL)) - strlen(word));
    hl_lock_free(lock);
    if (server->prefix)
        return 0;
    err->code = HL_ENOMEM;
    snprintf(err->text, sizeof(err->text), "out of memory");
    return err->code;
}

int cli_server_open(struct cli_server *server, const hl_client_options *options,
                    hl_client **ret_client)
{
    hl_client_options mine = HL_CLIENT_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;

    if (options)
        mine = *options;
    mine.name_prefix = server->prefix;
    mine.flags |= HL_CLIENT_ENVIRONMENT;
    if (hl_client_open(cli_server_url(server), &mine, ret_client, &err) < 0)
        return cli_failed(&err);
    if (server->prefix || server_find_prefix(server, *ret_client, &err) == 0)
        return CLI_OK;
    hl_client_close(*ret_client);
    *ret_client = NULL;
    return cli_failed(&err);
}

void cli_server_close(struct cli_server *server, hl_client *client)
{
    hl_client_close(client);
    free(server->url);
    free(server->prefix);
    server->url = server->prefix = NULL;
}
