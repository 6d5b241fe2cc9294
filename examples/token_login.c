/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A login by a token that expires: a command prints it, such as `gcloud auth print-access-token`,
 * and the client asks for the next one before the server would end the connections. TOKEN_COMMAND
 * and TOKEN_USER of the environment say which command and which user.
 */
#define _DEFAULT_SOURCE /* popen(), explicit_bzero() */
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct token_source {
    const char *command, *user;
    int64_t valid_ms; /* how long the server leaves a connection with this token alone */
};

/* The first line that the command prints. */
static bool token_read(const struct token_source *source, char *token, int size)
{
    FILE *output = popen(source->command, "r");

    if (!output)
        return false;
    setvbuf(output, NULL, _IONBF, 0); /* no copy of the token stays in a buffer */
    bool has_line = fgets(token, size, output) != NULL;
    token[has_line ? strcspn(token, "\n") : 0] = '\0';
    return pclose(output) == 0 && token[0];
}

/* Runs on the client's thread hirelock-login, so it may wait for the command. */
static void give_token(const hl_credentials_request *request, hl_credentials *credentials,
                       void *arg)
{
    const struct token_source *source = arg;
    char token[8192];

    if (token_read(source, token, sizeof(token)))
        hl_credentials_set(credentials, source->user, token, source->valid_ms);
    else
        hl_credentials_fail(credentials, "the command printed no token");
    explicit_bzero(token, sizeof(token));
    printf("asked for a login at %s\n", request->address);
}

static int run(hl_client *client, hl_error *err)
{
    hl_lock *lock = NULL;
    int rc = hl_lock_new(client, "stock:42", &lock, err);

    if (rc == 0 && (rc = hl_lock_acquire_for(lock, 500, err)) == 0) {
        puts("mine, by a token");
        rc = hl_lock_release(lock, err);
    }
    hl_lock_free(lock);
    return rc;
}

static const char *environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value ? value : otherwise;
}

static const char does[] =
    "A login by a token that expires: TOKEN_COMMAND prints it, TOKEN_USER is its user.";

int main(int argc, char **argv)
{
    const char *url = example_url(argc, argv, does);
    struct token_source source = {.command = environment("TOKEN_COMMAND", "echo a-token"),
                                  .user = environment("TOKEN_USER", "default"),
                                  .valid_ms = INT64_C(12) * 3600 * 1000};
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    options.credentials_cb = give_token;
    options.credentials_arg = &source; /* lives until the client is closed */
    int rc = hl_client_open(url, &options, &client, &err);
    if (rc == 0)
        rc = run(client, &err);
    if (rc < 0)
        fprintf(stderr, "token_login: %s\n", err.text);
    hl_client_close(client);
    return rc < 0;
}
