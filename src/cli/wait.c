/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock wait NAME: until no owner holds the lock. It takes nothing, so it looks again and again.
 */
#include "cli/server.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_LOOK_MS = 100 };

struct wait_words {
    struct cli_server server;
    const char *name;
    int64_t wait_ms; /* -1: without end */
};

static error_t wait_parse(int key, char *word, struct argp_state *state)
{
    struct wait_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case 'w':
        words->wait_ms = cli_read_time(word);
        if (words->wait_ms < 0)
            argp_error(state, "'%s' is no time: 10, 1.5, 200ms, 5m", word);
        return 0;
    default:
        return cli_take_name(&words->name, key, word, state);
    }
}

static const struct argp_option wait_options[] = {
    {"timeout", 'w', "SECONDS", 0, "how long at most; then the status is 124", 0}, {0}};
static const struct argp_child wait_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp wait_argp = {
    .options = wait_options,
    .parser = wait_parse,
    .args_doc = "NAME",
    .doc = "Waits until no owner holds the lock NAME.\v"
           "Examples:\n"
           "  hirelock wait import && echo 'the import is over'\n"
           "  hirelock wait -w 30 deploy || exit 1\n\n"
           "It looks every 100 ms, and takes nothing: the next owner may come at any time.",
    .children = wait_children};

/* Looks until the lock is free, or the time is over. */
static int wait_for(hl_lock *lock, int64_t wait_ms)
{
    const struct timespec pause = {.tv_nsec = WAIT_LOOK_MS * 1000000L};
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_error err = HL_ERROR_INIT;
    const long long began_ms = cli_now_ms();

    for (;;) {
        if (hl_lock_inspect(lock, &info, &err) < 0)
            return cli_failed(&err);
        if (!info.locked)
            return CLI_OK;
        if (wait_ms >= 0 && cli_now_ms() - began_ms >= wait_ms)
            return CLI_CONFLICT;
        nanosleep(&pause, NULL);
    }
}

static int wait_run(int argc, char **argv)
{
    struct wait_words words = {.wait_ms = -1};
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    cli_parse(&cli_wait, argc, argv, &words);
    int status = cli_server_open(&words.server, NULL, &client);
    if (status == CLI_OK && hl_lock_new(client, words.name, &lock, &err) < 0)
        status = cli_failed(&err);
    if (status == CLI_OK)
        status = wait_for(lock, words.wait_ms);
    hl_lock_free(lock);
    cli_server_close(&words.server, client);
    return status;
}

const struct cli_command cli_wait = {
    .name = "wait", .summary = "wait until a lock is free", .argp = &wait_argp, .run = wait_run};
