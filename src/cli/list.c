/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock list [PATTERN]: the locks of all nodes, as a table, or as they are found. */
#include "cli/output.h"
#include "cli/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_QUIET_MS = 500, LIST_PROGRESS_MS = 200, LIST_KEY_JSON = 1, LIST_KEY_CLASSIC };

struct list_words {
    struct cli_server server;
    const char *pattern;
    uint64_t limit;
    bool is_json, has_values;
};

struct list_state {
    bool is_json, shows_progress;
    json_object *locks; /* of the table */
    long long began_ms, told_ms;
    bool has_told;
    bool has_missed; /* a node, and has said so */
};

static error_t list_parse(int key, char *word, struct argp_state *state)
{
    struct list_words *words = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case LIST_KEY_JSON:
        words->is_json = true;
        return 0;
    case LIST_KEY_CLASSIC:
        words->has_values = true;
        return 0;
    case 'n':
        words->limit = strtoull(word, &end, 10);
        if (*end || words->limit < 1 || word[0] == '-')
            argp_error(state, "'%s' is no number from 1", word);
        return 0;
    default:
        return cli_take_pattern(&words->pattern, key, word, state);
    }
}

static const struct argp_option list_options[] = {
    {"classic", LIST_KEY_CLASSIC, NULL, 0, "strings with an expiry, too: locks by SET NX", 0},
    {"json", LIST_KEY_JSON, NULL, 0, "an object a line, as they are found", 0},
    {"limit", 'n', "N", 0, "stops when N are found", 0},
    {0}};
static const struct argp_child list_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp list_argp = {
    .options = list_options,
    .parser = list_parse,
    .args_doc = "[PATTERN]",
    .doc = "Lists the locks that are held, on all nodes; PATTERN is that of Redis's SCAN.\v"
           "Examples:\n"
           "  hirelock list 'stock:*'\n"
           "  hirelock list --json | jq -r 'select(.held_ms > 60000).name'\n\n"
           "A holder is named by host, process and thread if its client has "
           "HL_CLIENT_HOLDER_INFO. A fair lock is told from others while owners wait for it, "
           "permits while some are out. Spin locks and members of multi-locks are plain locks. "
           "Semaphores and latches are plain numbers: 'hirelock inspect' shows one by its name. "
           "WAITERS are the clients in a lock's queue: those of read-write locks, spin locks and "
           "Redisson's plain locks are in none.",
    .children = list_children};

static const struct cli_column list_columns[] = {{"name", "NAME", NULL, false},
                                                 {"kind", "KIND", NULL, false},
                                                 {"holder", "HOLDER", NULL, false},
                                                 {"held_ms", "HELD", cli_say_ms, true},
                                                 {"lease_left_ms", "LEASE LEFT", cli_say_ms, true},
                                                 {"waiters", "WAITERS", NULL, true},
                                                 {"levels", "LEVELS", NULL, true}};

static void list_found(const struct cli_name *name, json_object *lock, void *arg)
{
    struct list_state *state = arg;

    (void)name;
    if (state->is_json) {
        cli_print_json(lock);
        json_object_put(lock);
    } else {
        json_object_array_add(state->locks, lock);
    }
}

static bool list_progress(uint64_t keys, void *arg)
{
    struct list_state *state = arg;
    long long now_ms = cli_now_ms();

    if (now_ms - state->began_ms < LIST_QUIET_MS || now_ms - state->told_ms < LIST_PROGRESS_MS)
        return true;
    state->told_ms = now_ms;
    state->has_told = true;
    fprintf(stderr, "\r%llu names so far ...", (unsigned long long)keys);
    return true;
}

static void list_clear_progress(struct list_state *state)
{
    if (state->has_told)
        fputs("\r\033[K", stderr);
    state->has_told = false;
}

static void list_missed(const char *where, const hl_error *err, void *arg)
{
    struct list_state *state = arg;

    list_clear_progress(state);
    cli_say("%s was not read: %s", where, err->text);
    state->has_missed = true;
}

static const char *list_name(const void *lock)
{
    return json_object_get_string(json_object_object_get(*(json_object *const *)lock, "name"));
}

static int list_compare(const void *left, const void *right)
{
    return strcmp(list_name(left), list_name(right));
}

/* SCAN may tell a key twice. */
static json_object *list_sorted(json_object *locks)
{
    json_object *sorted = json_object_new_array();
    const char *last = NULL;

    json_object_array_sort(locks, list_compare);
    for (size_t i = 0; i < json_object_array_length(locks); i++) {
        json_object *lock = json_object_array_get_idx(locks, i);
        const char *name = list_name(&lock);
        if (last && strcmp(name, last) == 0)
            continue;
        json_object_array_add(sorted, json_object_get(lock));
        last = name;
    }
    json_object_put(locks);
    return sorted;
}

/* What was not read has been said already. */
static int list_status(const struct list_state *state, int rc, const hl_error *err)
{
    if (rc == 0)
        return CLI_OK;
    return state->has_missed ? cli_status(rc) : cli_failed(err);
}

static int list_all(const struct list_words *words, hl_client *client, const char *pattern)
{
    struct list_state state = {
        .is_json = words->is_json, .locks = json_object_new_array(), .began_ms = cli_now_ms()};
    const struct cli_survey survey = {.client = client,
                                      .pattern = pattern,
                                      .prefix =
                                          words->server.prefix ? strlen(words->server.prefix) : 0,
                                      .has_values = words->has_values,
                                      .limit = words->limit,
                                      .found = list_found,
                                      .progress = isatty(STDERR_FILENO) ? list_progress : NULL,
                                      .missed = list_missed,
                                      .arg = &state};
    hl_error err = HL_ERROR_INIT;
    int rc = cli_survey(&survey, &err);

    list_clear_progress(&state);
    int status = list_status(&state, rc, &err);
    state.locks = list_sorted(state.locks);
    if (json_object_array_length(state.locks) > 0)
        cli_print_table(stdout, state.locks, list_columns,
                        sizeof(list_columns) / sizeof(list_columns[0]));
    else if (status == CLI_OK && !words->is_json)
        cli_say("no lock is held");
    json_object_put(state.locks);
    return status;
}

static int list_run(int argc, char **argv)
{
    struct list_words words = {0};
    hl_client *client = NULL;
    char *pattern = NULL;

    cli_parse(&cli_list, argc, argv, &words);
    int status = cli_server_open(&words.server, NULL, &client);
    if (status == CLI_OK) {
        pattern = cli_survey_pattern(&words.server, words.pattern);
        status = pattern ? list_all(&words, client, pattern) : CLI_FAILED;
    }
    free(pattern);
    cli_server_close(&words.server, client);
    return status;
}

const struct cli_command cli_list = {
    .name = "list", .summary = "list the locks that are held", .argp = &list_argp, .run = list_run};
