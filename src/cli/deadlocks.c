/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock deadlocks [PATTERN]: who waits behind whom, and who waits in a circle. */
#include "cli/drawing.h"
#include "cli/escape.h"
#include "cli/output.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLOCKS_KEY_JSON = 1 };

struct deadlocks_words {
    struct cli_server server;
    const char *pattern;
    bool is_json;
};

static error_t deadlocks_parse(int key, char *word, struct argp_state *state)
{
    struct deadlocks_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case DEADLOCKS_KEY_JSON:
        words->is_json = true;
        return 0;
    default:
        return cli_take_pattern(&words->pattern, key, word, state);
    }
}

static const struct argp_option deadlocks_options[] = {
    {"json", DEADLOCKS_KEY_JSON, NULL, 0, "an object a line, for each wait", 0}, {0}};
static const struct argp_child deadlocks_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp deadlocks_argp = {
    .options = deadlocks_options,
    .parser = deadlocks_parse,
    .args_doc = "[PATTERN]",
    .doc = "Shows who waits behind whom for longer than a second, on all nodes, and who waits in a "
           "circle. The status is 1 if there is a deadlock. PATTERN is of names of locks: what is "
           "joined to one of these is shown.\v"
           "Examples:\n"
           "  hirelock deadlocks\n"
           "  hirelock deadlocks --json | jq 'select(.deadlock)'\n\n"
           "It sees owners of clients with HL_CLIENT_HOLDER_INFO. A holder of another client, or "
           "of a read lock, is shown by its field, and what it waits for is not known; waiters of "
           "permits, semaphores, latches and Redlocks are not seen, nor is an owner known again "
           "in another client of its process, or at another server. A circle is reported when a "
           "second look finds the same waits and the same holders.",
    .children = deadlocks_children};

/* Owners that are to be shown, and whose neighbours are still to be marked. */
struct deadlocks_path {
    struct cli_blocked *blocked;
    size_t *owners, count;
};

static void deadlocks_push(struct deadlocks_path *path, size_t owner)
{
    if (path->blocked->owners[owner].is_shown)
        return;
    path->blocked->owners[owner].is_shown = true;
    path->owners[path->count++] = owner;
}

/* All that is joined to it: those for whom it waits, and those that wait for it. */
static void deadlocks_mark(struct deadlocks_path *path, size_t owner)
{
    const struct cli_blocked *blocked = path->blocked;

    deadlocks_push(path, owner);
    while (path->count > 0) {
        owner = path->owners[--path->count];
        size_t at = blocked->owners[owner].first;
        for (; at != CLI_NONE; at = blocked->waits[at].next) {
            blocked->waits[at].is_shown = true;
            deadlocks_push(path, blocked->waits[at].waiter);
        }
        if (blocked->owners[owner].wait != CLI_NONE)
            deadlocks_push(path, cli_blocked_holder(blocked, blocked->owners[owner].wait));
    }
}

static bool deadlocks_matches(const struct cli_blocked *blocked, size_t wait, const char *pattern)
{
    const struct cli_name *name = &cli_blocked_lock_of(blocked, wait)->name;

    return !pattern || fnmatch(pattern, name->bytes + name->prefix, 0) == 0;
}

/* False when memory is out. */
static bool deadlocks_choose(struct cli_blocked *blocked, const char *pattern)
{
    struct deadlocks_path path = {blocked, calloc(blocked->owner_count + 1, sizeof(size_t)), 0};

    for (size_t i = 0; path.owners && i < blocked->wait_count; i++)
        if (!blocked->waits[i].is_over && deadlocks_matches(blocked, i, pattern))
            deadlocks_mark(&path, cli_blocked_holder(blocked, i));
    bool has_memory = path.owners != NULL;
    free(path.owners);
    return has_memory;
}

static void deadlocks_add_text(json_object *row, const char *key, const char *text)
{
    json_object_object_add(row, key, json_object_new_string(text));
}

static void deadlocks_add_number(json_object *row, const char *key, long long number)
{
    json_object_object_add(row, key, json_object_new_int64(number));
}

/* What the lock's look says, under the key of a wait's row. */
static void deadlocks_add_seen(json_object *row, const char *key, json_object *look,
                               const char *seen)
{
    json_object *value;

    if (json_object_object_get_ex(look, seen, &value))
        json_object_object_add(row, key, json_object_get(value));
}

static void deadlocks_print_wait(const struct cli_blocked *blocked, size_t at)
{
    const struct cli_blocked_wait *found = &blocked->waits[at];
    const struct cli_blocked_lock *lock = cli_blocked_lock_of(blocked, at);
    const struct cli_blocked_owner *waiter = &blocked->owners[found->waiter];
    json_object *row = json_object_new_object();

    json_object_object_add(
        row, "name",
        cli_escaped(lock->name.bytes + lock->name.prefix, lock->name.length - lock->name.prefix));
    deadlocks_add_text(row, "client", found->wait.client);
    json_object_object_add(row, "owner_number", json_object_new_uint64(found->wait.owner));
    deadlocks_add_text(row, "host", found->wait.host);
    deadlocks_add_number(row, "pid", found->wait.pid);
    deadlocks_add_text(row, "thread", found->wait.thread);
    deadlocks_add_number(row, "since_ms", found->wait.since_ms);
    deadlocks_add_number(row, "waited_ms", found->wait.waited_ms);
    deadlocks_add_number(row, "behind", (long long)waiter->behind);
    deadlocks_add_text(row, "holder", blocked->owners[lock->holder].label);
    deadlocks_add_seen(row, "holder_field", lock->look, "owner");
    deadlocks_add_seen(row, "holder_owner_number", lock->look, "owner_number");
    deadlocks_add_seen(row, "held_ms", lock->look, "held_ms");
    if (waiter->deadlock != 0 && waiter->wait == at)
        deadlocks_add_number(row, "deadlock", waiter->deadlock);
    cli_print_json(row);
    json_object_put(row);
}

/* Holders without a tag, of waits that are shown. */
static size_t deadlocks_count_unknown(const struct cli_blocked *blocked)
{
    size_t count = 0;

    for (size_t i = 0; i < blocked->wait_count; i++) {
        json_object *look = cli_blocked_lock_of(blocked, i)->look;
        count += blocked->waits[i].is_shown && look &&
                 !json_object_object_get_ex(look, "owner_number", NULL);
    }
    return count;
}

static bool deadlocks_goes_on_any(const struct cli_blocked *blocked)
{
    for (size_t i = 0; i < blocked->wait_count; i++)
        if (!blocked->waits[i].is_over)
            return true;
    return false;
}

/* Only if all nodes were read. */
static void deadlocks_say_none(const struct cli_blocked *blocked, size_t shown, const char *pattern)
{
    if (shown == 0 && pattern && deadlocks_goes_on_any(blocked))
        cli_say("nobody has waited for a second for a lock whose name matches '%s'", pattern);
    else if (shown == 0)
        cli_say("no client with HL_CLIENT_HOLDER_INFO has waited for a lock for a second");
    else if (blocked->deadlocks == 0)
        cli_say("no deadlock is seen");
}

static void deadlocks_say(const struct cli_blocked *blocked, size_t shown, const char *pattern)
{
    size_t unknown = deadlocks_count_unknown(blocked);

    if (blocked->unread == CLI_OK)
        deadlocks_say_none(blocked, shown, pattern);
    if (unknown > 0)
        cli_say("the holder of %zu waits shows no tag (HL_CLIENT_HOLDER_INFO): what it waits for "
                "is not known",
                unknown);
}

static void deadlocks_say_denied(size_t count)
{
    if (count > 0)
        cli_say("the tags of %zu waits may not be read by this user, so these waits are not shown; "
                "with --prefix only those of its names are asked for",
                count);
}

/* Returns the exit status. */
static int deadlocks_show(struct cli_blocked *blocked, const struct deadlocks_words *words)
{
    size_t shown = 0;
    int status = CLI_OK;

    if (!deadlocks_choose(blocked, words->pattern)) {
        cli_say("there is no memory left");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < blocked->wait_count; i++) {
        if (!blocked->waits[i].is_shown)
            continue;
        shown++;
        if (words->is_json)
            deadlocks_print_wait(blocked, i);
        if (blocked->owners[blocked->waits[i].waiter].deadlock != 0)
            status = CLI_NO;
    }
    if (!words->is_json) {
        cli_draw(blocked, &words->server);
        deadlocks_say(blocked, shown, words->pattern);
    }
    deadlocks_say_denied(blocked->denied);
    return blocked->unread != CLI_OK ? blocked->unread : status;
}

static int deadlocks_run(int argc, char **argv)
{
    struct deadlocks_words words = {0};
    struct cli_blocked blocked = {0};
    hl_client *client = NULL;

    cli_parse(&cli_deadlocks, argc, argv, &words);
    int status = cli_server_open(&words.server, NULL, &client);
    if (status == CLI_OK) {
        status = cli_blocked_read(&blocked, client, words.server.prefix);
        if (status == CLI_OK)
            status = deadlocks_show(&blocked, &words);
        cli_blocked_free(&blocked);
    }
    cli_server_close(&words.server, client);
    return status;
}

const struct cli_command cli_deadlocks = {.name = "deadlocks",
                                          .summary = "show who waits behind whom, and in a circle",
                                          .argp = &deadlocks_argp,
                                          .run = deadlocks_run};
