/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/inspection.h"

#include "cli/escape.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

enum { INSPECTION_STEP = 200, INSPECTION_LEVELS = 1000 };

struct inspection {
    hl_client *client;
    struct cli_name name;
    json_object *lock;
    hl_error err;
};

struct inspection_word {
    const char *bytes;
    size_t length;
};

#define WORD(text_) ((struct inspection_word){(text_), strlen(text_)})

/* NULL: it has failed, and inspection->err says why. */
static hl_reply *inspection_ask(struct inspection *inspection, const struct inspection_word *words,
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
    command.key = inspection->name.bytes;
    command.key_length = inspection->name.length;
    int rc = hl_client_command(inspection->client, &command, &reply, &inspection->err);
    return rc < 0 ? NULL : reply;
}

static void inspection_add(json_object *object, const char *key, long long number)
{
    json_object_object_add(object, key, json_object_new_int64(number));
}

/* The longest lease of a reader's levels; each level has a key of its own (lua/rw.lua). */
static long long inspection_reader_left(struct inspection *inspection, const hl_reply *field,
                                        long long count)
{
    char key[CLI_LOOK_KEY], ending[160];
    long long longest = -2;

    for (long long level = 1; level <= count && level <= INSPECTION_LEVELS; level++) {
        snprintf(ending, sizeof(ending), ":%.*s:rwlock_timeout:%lld", (int)field->length,
                 field->text, level);
        size_t length = cli_name_derive(&inspection->name, "", ending, key);
        hl_reply *left = inspection_ask(
            inspection, (const struct inspection_word[]){WORD("PTTL"), {key, length}}, 2);
        if (left && left->integer > longest)
            longest = left->integer;
        hl_reply_free(left);
    }
    return longest;
}

static bool inspection_is_reader(const struct inspection *inspection, const hl_reply *field)
{
    const char *kind = json_object_get_string(json_object_object_get(inspection->lock, "kind"));
    bool is_rw = strcmp(kind, "read lock") == 0 || strcmp(kind, "write lock") == 0;

    return is_rw && !strstr(field->text, ":write") && !strstr(field->text, ":rest");
}

static void inspection_add_owner(struct inspection *inspection, json_object *owners,
                                 const hl_reply *page, size_t at)
{
    const hl_reply *field = cli_reply_text(page, at);
    long long levels = cli_reply_number(page, at + 1);

    if (!field || strcmp(field->text, "mode") == 0 || field->length > 80)
        return;
    json_object *owner = json_object_new_object();
    json_object_object_add(owner, "owner", cli_escaped(field->text, field->length));
    inspection_add(owner, "levels", levels);
    inspection_add(
        owner, "lease_left_ms",
        inspection_is_reader(inspection, field)
            ? inspection_reader_left(inspection, field, levels)
            : json_object_get_int64(json_object_object_get(inspection->lock, "lease_left_ms")));
    json_object_array_add(owners, owner);
}

/* Returns a code of the library. */
static int inspection_owners(struct inspection *inspection)
{
    json_object *owners = json_object_new_array();
    const struct inspection_word name = {inspection->name.bytes, inspection->name.length};
    char cursor[32] = "0";

    json_object_object_add(inspection->lock, "owner_list", owners);
    do {
        hl_reply *reply =
            inspection_ask(inspection,
                           (const struct inspection_word[]){WORD("HSCAN"), name, WORD(cursor),
                                                            WORD("COUNT"), WORD("200")},
                           5);
        const hl_reply *next = cli_reply_text(reply, 0);
        if (!reply)
            return inspection->err.code;
        snprintf(cursor, sizeof(cursor), "%s", next ? next->text : "0");
        const hl_reply *page = reply->element_count > 1 ? reply->elements[1] : NULL;
        for (size_t at = 0; page && at + 1 < page->element_count; at += 2)
            inspection_add_owner(inspection, owners, page, at);
        hl_reply_free(reply);
    } while (strcmp(cursor, "0") != 0);
    return 0;
}

/* A sign of life, "@" and the waiter's field, is nobody. */
static void inspection_add_waiter(json_object *list, const hl_reply *page, size_t at)
{
    const hl_reply *field = cli_reply_text(page, at);
    if (field && field->text[0] == '@')
        return;
    json_object *waiter = json_object_new_object();

    inspection_add(waiter, "place", (long long)json_object_array_length(list) + 1);
    if (field)
        json_object_object_add(waiter, "owner", cli_escaped(field->text, field->length));
    json_object_array_add(list, waiter);
}

/* A permit's id is of 16 bytes, which is shown as 32 digits; its score is the end of its lease. */
static void inspection_add_permit(json_object *list, const hl_reply *page, size_t at,
                                  long long now_ms)
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
    inspection_add(permit, "lease_left_ms", end_ms >= never_ms ? -1 : end_ms - now_ms);
    json_object_array_add(list, permit);
}

/* A list in a key beside the name, in its order, by a command that takes two places. */
struct inspection_list {
    const char *command, *first, *last;
    bool is_permits; /* with scores */
};

static int inspection_list(struct inspection *inspection, const struct inspection_list *what,
                           json_object *list)
{
    long long now_ms = json_object_get_int64(json_object_object_get(inspection->lock, "now_ms"));
    char key[CLI_LOOK_KEY], from[24], to[24];
    size_t length = cli_name_derive(&inspection->name, what->first, what->last, key), found;
    size_t step = what->is_permits ? 2 : 1;

    for (long long at = 0;; at += INSPECTION_STEP) {
        snprintf(from, sizeof(from), "%lld", at);
        snprintf(to, sizeof(to), "%lld", at + INSPECTION_STEP - 1);
        const struct inspection_word words[] = {
            WORD(what->command), {key, length}, WORD(from), WORD(to), WORD("WITHSCORES")};
        hl_reply *reply = inspection_ask(inspection, words, what->is_permits ? 5 : 4);
        if (!reply)
            return inspection->err.code;
        found = reply->element_count;
        for (size_t i = 0; i + step <= found; i += step)
            if (what->is_permits)
                inspection_add_permit(list, reply, i, now_ms);
            else
                inspection_add_waiter(list, reply, i);
        hl_reply_free(reply);
        if (found < INSPECTION_STEP * step)
            return 0;
    }
}

static int inspection_waiters(struct inspection *inspection)
{
    static const struct inspection_list fair = {"LRANGE", "redisson_lock_queue:", "", false};
    static const struct inspection_list queue = {"ZRANGE", "hirelock_queue:", "", false};
    json_object *waiters = json_object_new_array();

    json_object_object_add(inspection->lock, "waiter_list", waiters);
    int rc = inspection_list(inspection, &fair, waiters);
    return rc < 0 ? rc : inspection_list(inspection, &queue, waiters);
}

static int inspection_permits(struct inspection *inspection)
{
    static const struct inspection_list permits = {"ZRANGE", "", ":timeout", true};
    json_object *list = json_object_new_array();

    json_object_object_add(inspection->lock, "permit_list", list);
    return inspection_list(inspection, &permits, list);
}

static int inspection_lists(struct inspection *inspection)
{
    const char *kind = json_object_get_string(json_object_object_get(inspection->lock, "kind"));

    if (strcmp(kind, "permits") == 0)
        return inspection_permits(inspection);
    if (strcmp(kind, "number") == 0 || strcmp(kind, "value") == 0)
        return 0;
    int rc = inspection_owners(inspection);
    return rc < 0 ? rc : inspection_waiters(inspection);
}

static const struct cli_column inspection_lines[] = {
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
    {"queued_ms", "first waits", cli_say_ms, false},
    {"available", "available", NULL, false},
    {"token_counter", "last token", NULL, false}};
static const struct cli_column inspection_of_owners[] = {
    {"owner", "OWNER", NULL, false},
    {"levels", "LEVELS", NULL, true},
    {"lease_left_ms", "LEASE LEFT", cli_say_ms, true}};
static const struct cli_column inspection_of_waiters[] = {{"place", "PLACE", NULL, true},
                                                          {"owner", "WAITER", NULL, false}};
static const struct cli_column inspection_of_permits[] = {
    {"id", "PERMIT", NULL, false}, {"lease_left_ms", "LEASE LEFT", cli_say_ms, true}};

static void inspection_print_list(FILE *to, const json_object *lock, const char *key,
                                  const struct cli_column *columns, size_t count)
{
    json_object *list = json_object_object_get(lock, key);

    if (!list || json_object_array_length(list) == 0)
        return;
    fputc('\n', to);
    fflush(to);
    cli_print_table(to, list, columns, count);
}

void cli_inspection_print(FILE *to, const json_object *lock)
{
    cli_print_lines(to, lock, inspection_lines,
                    sizeof(inspection_lines) / sizeof(inspection_lines[0]));
    inspection_print_list(to, lock, "owner_list", inspection_of_owners, 3);
    inspection_print_list(to, lock, "waiter_list", inspection_of_waiters, 2);
    inspection_print_list(to, lock, "permit_list", inspection_of_permits, 2);
}

int cli_inspection(hl_client *client, const struct cli_name *name, json_object **ret_lock,
                   hl_error *err)
{
    struct inspection inspection = {.client = client, .name = *name, .err = HL_ERROR_INIT};
    int rc = cli_look(client, name, &inspection.lock, &inspection.err);

    if (rc == 0 && inspection.lock)
        rc = inspection_lists(&inspection);
    if (rc < 0) {
        json_object_put(inspection.lock);
        *err = inspection.err;
        return rc;
    }
    if (inspection.lock)
        json_object_object_add(inspection.lock, "held", json_object_new_boolean(true));
    *ret_lock = inspection.lock;
    return 0;
}
