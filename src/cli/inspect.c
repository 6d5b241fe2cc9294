/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock inspect NAME: one name in full. */
#include "cli/escape.h"
#include "cli/inspection.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>

enum { INSPECT_KEY_JSON = 1 };

struct inspect_words {
    struct cli_server server;
    const char *name;
    bool is_json;
};

static error_t inspect_parse(int key, char *word, struct argp_state *state)
{
    struct inspect_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case INSPECT_KEY_JSON:
        words->is_json = true;
        return 0;
    default:
        return cli_take_name(&words->name, key, word, state);
    }
}

static const struct argp_option inspect_options[] = {
    {"json", INSPECT_KEY_JSON, NULL, 0, "an object on one line", 0}, {0}};
static const struct argp_child inspect_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp inspect_argp = {
    .options = inspect_options,
    .parser = inspect_parse,
    .args_doc = "NAME",
    .doc = "Shows all that the server knows of NAME. The status is 0 if it is held, 1 if it is "
           "free.\v"
           "Examples:\n"
           "  hirelock inspect stock:42\n"
           "  hirelock inspect --json nightly | jq -r .owner\n\n"
           "Owners are named by host, process and thread if their client has "
           "HL_CLIENT_HOLDER_INFO; waiters are named by their client's id. A semaphore and a latch "
           "are plain numbers, and shown as such. A string may be a lock by SET NX, or anything.",
    .children = inspect_children};

static int inspect_free(const struct inspect_words *words, const struct cli_name *name)
{
    json_object *lock = json_object_new_object();
    json_object *shown = cli_escaped(name->bytes + name->prefix, name->length - name->prefix);

    json_object_object_add(lock, "name", shown);
    json_object_object_add(lock, "held", json_object_new_boolean(false));
    if (words->is_json)
        cli_print_json(lock);
    else
        printf("'%s' is free\n", json_object_get_string(shown));
    json_object_put(lock);
    return CLI_NO;
}

static int inspect_name(const struct inspect_words *words, hl_client *client,
                        const struct cli_name *name)
{
    json_object *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    if (cli_inspection(client, name, &lock, &err) < 0)
        return cli_failed(&err);
    if (!lock)
        return inspect_free(words, name);
    if (words->is_json)
        cli_print_json(lock);
    else
        cli_inspection_print(stdout, lock);
    json_object_put(lock);
    return CLI_OK;
}

static int inspect_run(int argc, char **argv)
{
    struct inspect_words words = {0};
    hl_client *client = NULL;
    struct cli_name name;
    char *bytes = NULL;

    cli_parse(&cli_inspect, argc, argv, &words);
    int status = cli_server_open(&words.server, NULL, &client);
    if (status == CLI_OK) {
        bytes = cli_name_make(&words.server, words.name, &name);
        status = bytes ? inspect_name(&words, client, &name) : CLI_FAILED;
    }
    free(bytes);
    cli_server_close(&words.server, client);
    return status;
}

const struct cli_command cli_inspect = {.name = "inspect",
                                        .summary = "show one lock in full",
                                        .argp = &inspect_argp,
                                        .run = inspect_run};
