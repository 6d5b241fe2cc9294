/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock unlock NAME: takes a lock from its owner, after the operator has seen who that is. */
#include "cli/force.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { UNLOCK_KEY_CLASSIC = 1 };

struct unlock_words {
    struct cli_server server;
    const char *name;
    bool is_sure, has_values;
};

struct unlock {
    const struct unlock_words *words;
    hl_client *client;
    struct cli_name name;
    json_object *lock; /* who has it */
};

static error_t unlock_parse(int key, char *word, struct argp_state *state)
{
    struct unlock_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case 'y':
        words->is_sure = true;
        return 0;
    case UNLOCK_KEY_CLASSIC:
        words->has_values = true;
        return 0;
    default:
        return cli_take_name(&words->name, key, word, state);
    }
}

static const struct argp_option unlock_options[] = {
    {"classic", UNLOCK_KEY_CLASSIC, NULL, 0, "a string is a lock by SET NX, and is deleted", 0},
    {"yes", 'y', NULL, 0, "does not ask", 0},
    {0}};
static const struct argp_child unlock_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp unlock_argp = {
    .options = unlock_options,
    .parser = unlock_parse,
    .args_doc = "NAME",
    .doc =
        "Takes the lock NAME from whoever holds it, and wakes those who wait. The status is 1 if "
        "nobody held it.\v"
        "Examples:\n"
        "  hirelock unlock stock:42\n"
        "  hirelock unlock --yes nightly\n\n"
        "It says who loses the lock and asks on the terminal; without one it needs --yes. The "
        "owner may be inside: its client is told, or learns of its loss at its next renewal, "
        "within a third of its lease, or at its release. Of a read lock all readers lose it.",
    .children = unlock_children};

/* What the operator is asked about, or that it cannot be taken. */
static struct cli_force unlock_target(const struct unlock *unlock)
{
    return (struct cli_force){.client = unlock->client,
                              .name = unlock->name,
                              .lock = unlock->lock,
                              .has_values = unlock->words->has_values};
}

static bool unlock_ask(void)
{
    char answer[16] = "";

    printf("Take it away? [y/N] ");
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Returns an exit status. */
static int unlock_failed(const hl_error *err)
{
    if (err->code != HL_ENOENT)
        return cli_failed(err);
    cli_say("%s", err->text);
    return CLI_NO;
}

static int unlock_held(const struct unlock *unlock)
{
    const struct cli_force target = unlock_target(unlock);
    const bool is_sure = unlock->words->is_sure;
    hl_error err = HL_ERROR_INIT;
    char who[CLI_FORCE_WHO];

    if (!cli_force_may(&target, &err))
        return cli_failed(&err);
    if (!is_sure && !isatty(STDIN_FILENO)) {
        cli_say("standard input is no terminal, so nobody can be asked; --yes does not ask");
        return CLI_FAILED;
    }
    cli_force_who(&target, who);
    puts(who);
    if (!is_sure && !unlock_ask()) {
        cli_say("nothing was done");
        return CLI_FAILED;
    }
    if ((!is_sure && cli_force_look_again(&target, &err) < 0) || cli_force(&target, &err) < 0)
        return unlock_failed(&err);
    printf("'%s' was taken away\n",
           json_object_get_string(json_object_object_get(unlock->lock, "name")));
    return CLI_OK;
}

static int unlock_name(struct unlock *unlock)
{
    hl_error err = HL_ERROR_INIT;

    if (cli_look(unlock->client, &unlock->name, &unlock->lock, &err) < 0)
        return cli_failed(&err);
    if (!unlock->lock) {
        cli_say("nobody holds it");
        return CLI_NO;
    }
    int status = unlock_held(unlock);
    json_object_put(unlock->lock);
    return status;
}

static int unlock_run(int argc, char **argv)
{
    struct unlock_words words = {0};
    struct unlock unlock = {.words = &words};
    char *name = NULL;

    cli_parse(&cli_unlock, argc, argv, &words);
    int status = cli_server_open(&words.server, NULL, &unlock.client);
    if (status == CLI_OK) {
        name = cli_name_make(&words.server, words.name, &unlock.name);
        status = name ? unlock_name(&unlock) : CLI_FAILED;
    }
    free(name);
    cli_server_close(&words.server, unlock.client);
    return status;
}

const struct cli_command cli_unlock = {.name = "unlock",
                                       .summary = "take a lock from its owner",
                                       .argp = &unlock_argp,
                                       .run = unlock_run};
