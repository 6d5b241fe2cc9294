/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock unlock NAME: takes a lock from its owner, after the operator has seen who that is. */
#include "cli/escape.h"
#include "cli/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
        "owner may be inside: it learns of its loss at its next renewal, within a third of its "
        "lease, or at its release. Of a read lock all readers lose it.",
    .children = unlock_children};

static const char *unlock_text(const struct unlock *unlock, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(unlock->lock, key));

    return text ? text : "";
}

static bool unlock_is(const struct unlock *unlock, const char *kind)
{
    return strcmp(unlock_text(unlock, "kind"), kind) == 0;
}

/* A handle of the right kind. Returns a code of the library. */
static int unlock_handle(const struct unlock *unlock, hl_lock **ret_lock, hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;

    if (unlock_is(unlock, "value") || unlock_is(unlock, "number"))
        return hl_redlock_new(&unlock->client, 1, unlock->words->name, ret_lock, err);
    if (unlock_is(unlock, "read lock"))
        options.kind = HL_LOCK_READ;
    else if (unlock_is(unlock, "write lock"))
        options.kind = HL_LOCK_WRITE;
    else if (unlock_is(unlock, "fair lock"))
        options.kind = HL_LOCK_FAIR;
    options.name = unlock->words->name;
    return hl_lock_new_with(unlock->client, &options, ret_lock, err);
}

/* Returns an exit status; CLI_OK: it may be taken away. */
static int unlock_check(const struct unlock *unlock)
{
    bool is_string = unlock_is(unlock, "value") || unlock_is(unlock, "number");

    if (unlock_is(unlock, "permits")) {
        cli_say("'%s' has permits; each is given back by its id, by a program "
                "(hl_permits_release())",
                unlock_text(unlock, "name"));
        return CLI_FAILED;
    }
    if (is_string && !unlock->words->has_values) {
        cli_say("'%s' is a string, which may be a lock by SET NX or anything else; --classic says "
                "that it is a lock",
                unlock_text(unlock, "name"));
        return CLI_FAILED;
    }
    if (!unlock->words->is_sure && !isatty(STDIN_FILENO)) {
        cli_say("standard input is no terminal, so nobody can be asked; --yes does not ask");
        return CLI_FAILED;
    }
    return CLI_OK;
}

/* "'stock' (lock) is held by web-1 4711 worker, 1b2c...:5, with 2 waiting" */
static void unlock_say_who(const struct unlock *unlock)
{
    const char *owner = unlock_text(unlock, "owner"), *waiters = unlock_text(unlock, "waiters");
    const char *since = unlock_text(unlock, "since");
    bool has_owner = owner[0] && !strstr(unlock_text(unlock, "holder"), owner);

    printf("'%s' (%s) is held by %s%s%s%s%s%s%s%s\n", unlock_text(unlock, "name"),
           unlock_text(unlock, "kind"), unlock_text(unlock, "holder"), has_owner ? ", " : "",
           has_owner ? owner : "", since[0] ? ", since " : "", since, waiters[0] ? "; " : "",
           waiters, waiters[0] ? " waiting" : "");
    fflush(stdout);
}

static bool unlock_ask(void)
{
    char answer[16] = "";

    printf("Take it away? [y/N] ");
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int unlock_force(const struct unlock *unlock)
{
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = unlock_handle(unlock, &lock, &err);

    if (rc == 0)
        rc = hl_lock_force_release(lock, &err);
    hl_lock_free(lock);
    if (rc == HL_ENOENT) {
        cli_say("'%s' was released meanwhile", unlock_text(unlock, "name"));
        return CLI_NO;
    }
    if (rc < 0)
        return cli_failed(&err);
    printf("'%s' was taken away\n", unlock_text(unlock, "name"));
    return CLI_OK;
}

/* Is it held as it was when the operator was asked? A later owner is not the one who was shown. */
static int unlock_look_again(const struct unlock *unlock)
{
    json_object *now = NULL;
    hl_error err = HL_ERROR_INIT;

    if (cli_look(unlock->client, &unlock->name, &now, &err) < 0)
        return cli_failed(&err);
    struct unlock later = {.lock = now};
    bool is_same = now &&
                   strcmp(unlock_text(&later, "holder"), unlock_text(unlock, "holder")) == 0 &&
                   strcmp(unlock_text(&later, "owner"), unlock_text(unlock, "owner")) == 0;
    if (!is_same)
        cli_say("'%s' has another owner by now, or none; nothing was done",
                unlock_text(unlock, "name"));
    json_object_put(now);
    return is_same ? CLI_OK : CLI_NO;
}

static int unlock_held(const struct unlock *unlock)
{
    int status = unlock_check(unlock);

    if (status != CLI_OK)
        return status;
    unlock_say_who(unlock);
    if (unlock->words->is_sure)
        return unlock_force(unlock);
    if (!unlock_ask()) {
        cli_say("nothing was done");
        return CLI_FAILED;
    }
    status = unlock_look_again(unlock);
    return status == CLI_OK ? unlock_force(unlock) : status;
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

    cli_parse(&cli_unlock, argc, argv, &words);
    char *name = cli_name_make(&words.server, words.name, &unlock.name);
    int status = cli_server_open(&words.server, NULL, &unlock.client);
    if (status == CLI_OK)
        status = name ? unlock_name(&unlock) : CLI_FAILED;
    free(name);
    cli_server_close(&words.server, unlock.client);
    return status;
}

const struct cli_command cli_unlock = {.name = "unlock",
                                       .summary = "take a lock from its owner",
                                       .argp = &unlock_argp,
                                       .run = unlock_run};
