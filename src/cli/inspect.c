/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock inspect NAME: one name in full. The look (look.h) is of one moment; the lists of owners,
 * waiters and permits are read behind it, in steps. */
#include "cli/escape.h"
#include "cli/look.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSPECT_STEP = 200, INSPECT_LEVELS = 1000, INSPECT_KEY_JSON = 1 };

struct inspect_words {
    struct cli_server server;
    const char *name;
    bool is_json;
};

struct inspect {
    hl_client *client;
    struct cli_name name;
    json_object *lock;
    hl_error err;
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

struct inspect_word {
    const char *bytes;
    size_t length;
};

#define WORD(text_) ((struct inspect_word){(text_), strlen(text_)})

/* NULL: it has failed, and inspect->err says why. */
static hl_reply *inspect_ask(struct inspect *inspect, const struct inspect_word *words,
                             size_t count)
{
    const char *texts[10];
    size_t lengths[10];
    hl_command command = HL_COMMAND_INIT;
    hl_reply *reply = NULL;

    for (size_t i = 0; i < count; i++) {
        texts[i] = words[i].bytes;
        lengths[i] = words[i].length;
    }
    command.flags = HL_COMMAND_READS;
    command.words = texts;
    command.lengths = lengths;
    command.word_count = count;
    command.key = inspect->name.bytes;
    command.key_length = inspect->name.length;
    int rc = hl_client_command(inspect->client, &command, &reply, &inspect->err);
    return rc < 0 ? NULL : reply;
}

static void inspect_add(json_object *object, const char *key, long long number)
{
    json_object_object_add(object, key, json_object_new_int64(number));
}

/* The longest lease of a reader's levels; each level has a key of its own (lua/rw.lua). */
static long long inspect_reader_left(struct inspect *inspect, const hl_reply *field,
                                     long long count)
{
    char key[CLI_LOOK_KEY], ending[160];
    long long longest = -2;

    for (long long level = 1; level <= count && level <= INSPECT_LEVELS; level++) {
        snprintf(ending, sizeof(ending), ":%.*s:rwlock_timeout:%lld", (int)field->length,
                 field->text, level);
        size_t length = cli_name_derive(&inspect->name, "", ending, key);
        hl_reply *left =
            inspect_ask(inspect, (const struct inspect_word[]){WORD("PTTL"), {key, length}}, 2);
        if (left && left->integer > longest)
            longest = left->integer;
        hl_reply_free(left);
    }
    return longest;
}

static bool inspect_is_reader(const struct inspect *inspect, const hl_reply *field)
{
    const char *kind = json_object_get_string(json_object_object_get(inspect->lock, "kind"));
    bool is_rw = strcmp(kind, "read lock") == 0 || strcmp(kind, "write lock") == 0;

    return is_rw && !strstr(field->text, ":write") && !strstr(field->text, ":rest");
}

static void inspect_add_owner(struct inspect *inspect, json_object *owners, const hl_reply *page,
                              size_t at)
{
    const hl_reply *field = cli_reply_text(page, at);
    long long levels = cli_reply_number(page, at + 1);

    if (!field || strcmp(field->text, "mode") == 0 || field->length > 80)
        return;
    json_object *owner = json_object_new_object();
    json_object_object_add(owner, "owner", cli_escaped(field->text, field->length));
    inspect_add(owner, "levels", levels);
    inspect_add(owner, "lease_left_ms",
                inspect_is_reader(inspect, field) ? inspect_reader_left(inspect, field, levels)
                                                  : json_object_get_int64(json_object_object_get(
                                                        inspect->lock, "lease_left_ms")));
    json_object_array_add(owners, owner);
}

/* Returns a code of the library. */
static int inspect_owners(struct inspect *inspect)
{
    json_object *owners = json_object_new_array();
    const struct inspect_word name = {inspect->name.bytes, inspect->name.length};
    char cursor[32] = "0";

    json_object_object_add(inspect->lock, "owner_list", owners);
    do {
        hl_reply *reply =
            inspect_ask(inspect,
                        (const struct inspect_word[]){WORD("HSCAN"), name, WORD(cursor),
                                                      WORD("COUNT"), WORD("200")},
                        5);
        const hl_reply *next = cli_reply_text(reply, 0);
        if (!reply)
            return inspect->err.code;
        snprintf(cursor, sizeof(cursor), "%s", next ? next->text : "0");
        const hl_reply *page = reply->element_count > 1 ? reply->elements[1] : NULL;
        for (size_t at = 0; page && at + 1 < page->element_count; at += 2)
            inspect_add_owner(inspect, owners, page, at);
        hl_reply_free(reply);
    } while (strcmp(cursor, "0") != 0);
    return 0;
}

static void inspect_add_waiter(json_object *list, const hl_reply *page, size_t at)
{
    const hl_reply *field = cli_reply_text(page, at);
    json_object *waiter = json_object_new_object();

    inspect_add(waiter, "place", (long long)json_object_array_length(list) + 1);
    if (field)
        json_object_object_add(waiter, "owner", cli_escaped(field->text, field->length));
    json_object_array_add(list, waiter);
}

/* A permit's id is of 16 bytes, which is shown as 32 digits; its score is the end of its lease. */
static void inspect_add_permit(json_object *list, const hl_reply *page, size_t at, long long now_ms)
{
    const hl_reply *id = cli_reply_text(page, at);
    const long long never_ms = 922337203685477; /* of a permit without an end (lua/permit.lua) */
    long long end_ms = cli_reply_number(page, at + 1);
    char digits[2 * 16 + 1] = "";

    if (end_ms <= now_ms)
        return;
    for (size_t i = 0; id && i < id->length && i < 16; i++)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned char)id->text[i]);
    json_object *permit = json_object_new_object();
    json_object_object_add(permit, "id", json_object_new_string(digits));
    inspect_add(permit, "lease_left_ms", end_ms >= never_ms ? -1 : end_ms - now_ms);
    json_object_array_add(list, permit);
}

/* A list in a key beside the name, in its order, by a command that takes two places. */
struct inspect_list {
    const char *command, *first, *last;
    bool is_permits; /* with scores */
};

static int inspect_list(struct inspect *inspect, const struct inspect_list *what, json_object *list)
{
    long long now_ms = json_object_get_int64(json_object_object_get(inspect->lock, "now_ms"));
    char key[CLI_LOOK_KEY], from[24], to[24];
    size_t length = cli_name_derive(&inspect->name, what->first, what->last, key), found;
    size_t step = what->is_permits ? 2 : 1;

    for (long long at = 0;; at += INSPECT_STEP) {
        snprintf(from, sizeof(from), "%lld", at);
        snprintf(to, sizeof(to), "%lld", at + INSPECT_STEP - 1);
        const struct inspect_word words[] = {
            WORD(what->command), {key, length}, WORD(from), WORD(to), WORD("WITHSCORES")};
        hl_reply *reply = inspect_ask(inspect, words, what->is_permits ? 5 : 4);
        if (!reply)
            return inspect->err.code;
        found = reply->element_count;
        for (size_t i = 0; i + step <= found; i += step)
            if (what->is_permits)
                inspect_add_permit(list, reply, i, now_ms);
            else
                inspect_add_waiter(list, reply, i);
        hl_reply_free(reply);
        if (found < INSPECT_STEP * step)
            return 0;
    }
}

static int inspect_waiters(struct inspect *inspect)
{
    static const struct inspect_list fair = {"LRANGE", "redisson_lock_queue:", "", false};
    static const struct inspect_list queue = {"ZRANGE", "hirelock_queue:", "", false};
    json_object *waiters = json_object_new_array();

    json_object_object_add(inspect->lock, "waiter_list", waiters);
    int rc = inspect_list(inspect, &fair, waiters);
    return rc < 0 ? rc : inspect_list(inspect, &queue, waiters);
}

static int inspect_permits(struct inspect *inspect)
{
    static const struct inspect_list permits = {"ZRANGE", "", ":timeout", true};
    json_object *list = json_object_new_array();

    json_object_object_add(inspect->lock, "permit_list", list);
    return inspect_list(inspect, &permits, list);
}

static int inspect_lists(struct inspect *inspect)
{
    const char *kind = json_object_get_string(json_object_object_get(inspect->lock, "kind"));

    if (strcmp(kind, "permits") == 0)
        return inspect_permits(inspect);
    if (strcmp(kind, "number") == 0 || strcmp(kind, "value") == 0)
        return 0;
    int rc = inspect_owners(inspect);
    return rc < 0 ? rc : inspect_waiters(inspect);
}

static const struct cli_column inspect_lines[] = {
    {"name", "name", NULL, false},
    {"kind", "kind", NULL, false},
    {"holder", "holder", NULL, false},
    {"owner", "owner", NULL, false},
    {"host", "host", NULL, false},
    {"pid", "process", NULL, false},
    {"thread", "thread", NULL, false},
    {"since", "since", NULL, false},
    {"held_ms", "held for", cli_say_ms, false},
    {"lease_left_ms", "lease left", cli_say_ms, false},
    {"rest_left_ms", "rests for", cli_say_ms, false},
    {"levels", "levels", NULL, false},
    {"owners", "owners", NULL, false},
    {"waiters", "waiters", NULL, false},
    {"available", "available", NULL, false},
    {"token_counter", "last token", NULL, false}};
static const struct cli_column inspect_of_owners[] = {
    {"owner", "OWNER", NULL, false},
    {"levels", "LEVELS", NULL, true},
    {"lease_left_ms", "LEASE LEFT", cli_say_ms, true}};
static const struct cli_column inspect_of_waiters[] = {{"place", "PLACE", NULL, true},
                                                       {"owner", "WAITER", NULL, false}};
static const struct cli_column inspect_of_permits[] = {
    {"id", "PERMIT", NULL, false}, {"lease_left_ms", "LEASE LEFT", cli_say_ms, true}};

static void inspect_print_list(const json_object *lock, const char *key,
                               const struct cli_column *columns, size_t count)
{
    json_object *list = json_object_object_get(lock, key);

    if (!list || json_object_array_length(list) == 0)
        return;
    putchar('\n');
    fflush(stdout);
    cli_print_table(list, columns, count);
}

static void inspect_print(const json_object *lock)
{
    cli_print_lines(lock, inspect_lines, sizeof(inspect_lines) / sizeof(inspect_lines[0]));
    inspect_print_list(lock, "owner_list", inspect_of_owners, 3);
    inspect_print_list(lock, "waiter_list", inspect_of_waiters, 2);
    inspect_print_list(lock, "permit_list", inspect_of_permits, 2);
}

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

static int inspect_name(const struct inspect_words *words, struct inspect *inspect)
{
    int rc = cli_look(inspect->client, &inspect->name, &inspect->lock, &inspect->err);

    if (rc == 0 && !inspect->lock)
        return inspect_free(words, &inspect->name);
    if (rc == 0)
        rc = inspect_lists(inspect);
    if (rc < 0) {
        json_object_put(inspect->lock);
        return cli_failed(&inspect->err);
    }
    json_object_object_add(inspect->lock, "held", json_object_new_boolean(true));
    if (words->is_json)
        cli_print_json(inspect->lock);
    else
        inspect_print(inspect->lock);
    json_object_put(inspect->lock);
    return CLI_OK;
}

static int inspect_run(int argc, char **argv)
{
    struct inspect_words words = {0};
    struct inspect inspect = {0};

    cli_parse(&cli_inspect, argc, argv, &words);
    char *name = cli_name_make(&words.server, words.name, &inspect.name);
    int status = cli_server_open(&words.server, NULL, &inspect.client);
    if (status == CLI_OK)
        status = name ? inspect_name(&words, &inspect) : CLI_FAILED;
    free(name);
    cli_server_close(&words.server, inspect.client);
    return status;
}

const struct cli_command cli_inspect = {.name = "inspect",
                                        .summary = "show one lock in full",
                                        .argp = &inspect_argp,
                                        .run = inspect_run};
