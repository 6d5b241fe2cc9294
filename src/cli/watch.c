/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock watch NAME: a line for each change of owner. No message tells of all of them, since a
 * lock may be passed on or expire in silence: so it looks again and again. */
#include "cli/look.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WATCH_LOOK_MS = 100, WATCH_LEAST_MS = 10, WATCH_KEY_JSON = 1 };

struct watch_words {
    struct cli_server server;
    const char *name;
    int64_t interval_ms;
    bool is_json;
};

static error_t watch_parse(int key, char *word, struct argp_state *state)
{
    struct watch_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case WATCH_KEY_JSON:
        words->is_json = true;
        return 0;
    case 'i':
        words->interval_ms = cli_read_time(word);
        if (words->interval_ms < WATCH_LEAST_MS)
            argp_error(state, "'%s' is no time from 10ms on: 1, 0.5, 200ms", word);
        return 0;
    default:
        return cli_take_name(&words->name, key, word, state);
    }
}

static const struct argp_option watch_options[] = {
    {"interval", 'i', "SECONDS", 0, "how often it looks; 100ms", 0},
    {"json", WATCH_KEY_JSON, NULL, 0, "an object a line", 0},
    {0}};
static const struct argp_child watch_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp watch_argp = {
    .options = watch_options,
    .parser = watch_parse,
    .args_doc = "NAME",
    .doc =
        "Prints a line for the owner of NAME now, and for each change, until it is interrupted.\v"
        "Examples:\n"
        "  hirelock watch stock:42\n"
        "  hirelock watch --interval 1 --json nightly >>nightly.log\n\n"
        "It looks every 100 ms, and tells what it sees: an owner that came and left between two "
        "looks is not seen, nor is a pass of the lock within one process, which the server does "
        "not see either. Of several readers one is named. Times are the server's, in UTC.",
    .children = watch_children};

static void watch_tell_event(const hl_event *event, void *arg)
{
    (void)arg;
    switch (event->kind) {
    case HL_EVENT_DISCONNECTED:
        cli_say("the server is away: %s", event->reason);
        break;
    case HL_EVENT_CONNECTED:
        cli_say("the server is back");
        break;
    case HL_EVENT_MASTER_CHANGED:
        cli_say("another master: %s", event->to ? event->to : event->reason);
        break;
    default:
        break;
    }
}

static const char *watch_text(json_object *lock, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(lock, key));

    return text ? text : "";
}

/* NULL: it is free. */
static bool watch_is_same(json_object *left, json_object *right)
{
    static const char *const keys[] = {"kind", "owner", "owners", "available"};

    if (!left || !right)
        return left == right;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(watch_text(left, keys[i]), watch_text(right, keys[i])) != 0)
            return false;
    return true;
}

static void watch_tell_json(json_object *lock, const char *time)
{
    json_object *line = json_object_new_object();

    json_object_object_add(line, "time", json_object_new_string(time));
    json_object_object_add(line, "held", json_object_new_boolean(lock != NULL));
    if (lock)
        json_object_object_add(line, "lock", json_object_get(lock));
    cli_print_json(line);
    json_object_put(line);
}

static void watch_tell(json_object *lock, const char *time, bool is_json)
{
    const char *owner = lock ? watch_text(lock, "owner") : "";
    bool has_owner = owner[0] && !strstr(watch_text(lock, "holder"), owner);

    if (is_json)
        watch_tell_json(lock, time);
    else if (!lock)
        printf("%s free\n", time);
    else
        printf("%s %s %s%s%s\n", time, watch_text(lock, "kind"), watch_text(lock, "holder"),
               has_owner ? " " : "", has_owner ? owner : "");
    fflush(stdout);
}

/* Events tell that the server goes away and comes back. A refusal that may pass, as while it loads
 * its data, is told once. Returns an exit status; CLI_OK: it looks on. */
static int watch_failed(const hl_error *err, char said[sizeof(err->text)])
{
    if (!hl_err_is_transient(err->code) && err->code != HL_EPROTO)
        return cli_failed(err);
    if (err->code == HL_ESERVER && strcmp(said, err->text) != 0)
        cli_say("%s", err->text);
    snprintf(said, sizeof(err->text), "%s", err->text);
    return CLI_OK;
}

static int watch_lock(const struct watch_words *words, hl_client *client,
                      const struct cli_name *name)
{
    const struct timespec pause = {.tv_sec = words->interval_ms / 1000,
                                   .tv_nsec = words->interval_ms % 1000 * 1000000};
    json_object *last = NULL, *lock = NULL;
    char said[sizeof(((hl_error *)0)->text)] = "";
    bool is_first = true;
    int status = CLI_OK;

    while (status == CLI_OK && !ferror(stdout)) {
        hl_error err = HL_ERROR_INIT;
        char time[CLI_TIME];
        int rc = cli_look_at(client, name, &lock, time, &err);
        if (rc < 0)
            status = watch_failed(&err, said);
        if (rc == 0 && (is_first || !watch_is_same(last, lock)))
            watch_tell(lock, time, words->is_json);
        if (rc == 0) {
            json_object_put(last);
            last = lock;
            is_first = false;
        }
        nanosleep(&pause, NULL);
    }
    json_object_put(last);
    return status;
}

static int watch_run(int argc, char **argv)
{
    struct watch_words words = {.interval_ms = WATCH_LOOK_MS};
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    struct cli_name name;
    char *bytes = NULL;

    options.on_event = watch_tell_event;
    cli_parse(&cli_watch, argc, argv, &words);
    int status = cli_server_open(&words.server, &options, &client);
    if (status == CLI_OK) {
        bytes = cli_name_make(&words.server, words.name, &name);
        status = bytes ? watch_lock(&words, client, &name) : CLI_FAILED;
    }
    free(bytes);
    cli_server_close(&words.server, client);
    return status;
}

const struct cli_command cli_watch = {.name = "watch",
                                      .summary = "print each change of a lock's owner",
                                      .argp = &watch_argp,
                                      .run = watch_run};
