/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/waits.h"

#include "cli/escape.h"
#include "cli/scan.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITS_BEGIN "hirelock_waiter:"

enum {
    WAITS_TAG = 512,     /* bytes of a tag; a longer text is none */
    WAITS_SAME_MS = 500, /* each writing computes its begin anew; the next wait's tag comes after a
                            second */
};

struct waits_state {
    const struct cli_waits *waits;
    struct cli_nodes nodes;
    long long now_ms; /* of the node that is gone through now */

    pthread_mutex_t mutex; /* guards all below, and `found` */
    pthread_cond_t answered;
    unsigned under_way;
    hl_error err; /* the first failure at this node */

    hl_error first; /* of all nodes that were missed */
};

struct waits_question {
    struct waits_state *state;
    size_t length;
    char key[];
};

static void waits_fail(struct waits_state *state, const hl_error *err)
{
    pthread_mutex_lock(&state->mutex);
    if (state->err.code == 0)
        state->err = *err;
    pthread_mutex_unlock(&state->mutex);
}

/* The number that ends the text, behind a colon. */
static bool waits_take_number(const char *text, size_t *length, uint64_t *ret_number)
{
    size_t at = *length;

    while (at > 0 && isdigit((unsigned char)text[at - 1]))
        at--;
    if (at == 0 || at == *length || *length - at > 20 || text[at - 1] != ':')
        return false;
    *ret_number = strtoull(text + at, NULL, 10);
    *length = at - 1;
    return true;
}

/* The client's id that ends the text then. */
static bool waits_take_client(const char *text, size_t *length, char client[CLI_CLIENT_ID + 1])
{
    size_t at = *length - CLI_CLIENT_ID;

    if (*length <= CLI_CLIENT_ID || text[at - 1] != ':' ||
        strspn(text + at, "0123456789abcdef-") < CLI_CLIENT_ID)
        return false;
    memcpy(client, text + at, CLI_CLIENT_ID);
    client[CLI_CLIENT_ID] = '\0';
    *length = at - 1;
    return true;
}

/* "hirelock_waiter:{name}:<client's id>:<number>"; a name with a brace of its own has none more. */
static bool waits_read_key(const char *key, size_t length, struct cli_wait *wait)
{
    size_t begin = strlen(WAITS_BEGIN);

    if (length <= begin || memcmp(key, WAITS_BEGIN, begin) != 0 ||
        !waits_take_number(key, &length, &wait->owner) ||
        !waits_take_client(key, &length, wait->client) || length <= begin + 2)
        return false;
    const char *name = key + begin;
    length -= begin;
    bool is_braced =
        name[0] == '{' && name[length - 1] == '}' && !memchr(name + 1, '{', length - 1);
    wait->name.bytes = name + (is_braced ? 1 : 0);
    wait->name.length = length - (is_braced ? 2 : 0);
    return is_braced || memchr(name, '{', length);
}

static bool waits_has_prefix(const struct cli_waits *waits, struct cli_name *name)
{
    name->prefix = waits->prefix ? strlen(waits->prefix) : 0;
    return name->length > name->prefix &&
           (name->prefix == 0 || memcmp(name->bytes, waits->prefix, name->prefix) == 0);
}

static bool waits_read_number(const char **text, long long *ret_number)
{
    char *end;

    *ret_number = strtoll(*text, &end, 10);
    if (end == *text || *end != ' ' || *ret_number <= 0)
        return false;
    *text = end + 1;
    return true;
}

static void waits_escape(const char *bytes, size_t length, char text[CLI_WAIT_TEXT])
{
    json_object *escaped = cli_escaped(bytes, length);

    snprintf(text, CLI_WAIT_TEXT, "%s", escaped ? json_object_get_string(escaped) : "");
    json_object_put(escaped);
}

/* "since_ms pid host thread"; the last may have spaces, or be empty. */
static bool waits_read_tag(const hl_reply *tag, struct cli_wait *wait)
{
    if (tag->kind != HL_REPLY_TEXT || tag->length > WAITS_TAG)
        return false;
    const char *text = tag->text;
    if (!waits_read_number(&text, &wait->since_ms) || !waits_read_number(&text, &wait->pid))
        return false;
    size_t host = strcspn(text, " ");
    const char *thread = text + host + (text[host] ? 1 : 0);
    waits_escape(text, host, wait->host);
    waits_escape(thread, strlen(thread), wait->thread);
    return host > 0;
}

static void waits_tell(struct waits_state *state, struct cli_wait *wait)
{
    wait->waited_ms = state->now_ms > wait->since_ms ? state->now_ms - wait->since_ms : 0;
    state->waits->found(wait, state->waits->arg);
}

/* The user may GET, but not this key: it stands beside a name of others. */
static bool waits_is_of_others(int code, const hl_error *err)
{
    return code == HL_EDENIED && strstr(err->text, " to access ");
}

/* A key of another type is no tag. */
static bool waits_is_no_tag(int code, const hl_error *err)
{
    return code == HL_ESERVER && strstr(err->text, "WRONGTYPE");
}

static void waits_answered(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    struct waits_question *asked = arg;
    struct waits_state *state = asked->state;
    struct cli_wait wait = {0};
    bool is_found = code == 0 && waits_read_key(asked->key, asked->length, &wait) &&
                    waits_has_prefix(state->waits, &wait.name) && waits_read_tag(reply, &wait);
    bool is_denied = code < 0 && waits_is_of_others(code, err);

    if (code < 0 && !is_denied && !waits_is_no_tag(code, err))
        waits_fail(state, err);
    pthread_mutex_lock(&state->mutex);
    if (is_denied && state->waits->denied)
        ++*state->waits->denied;
    if (is_found)
        waits_tell(state, &wait);
    state->under_way--;
    pthread_cond_signal(&state->answered);
    pthread_mutex_unlock(&state->mutex);
    free(asked);
}

static void waits_ask(struct waits_state *state, const hl_reply *key)
{
    struct waits_question *asked = malloc(sizeof(*asked) + key->length + 1);
    const char *words[] = {"GET", key->text};
    const size_t lengths[] = {3, key->length};
    hl_command command = HL_COMMAND_INIT;

    if (!asked) {
        waits_fail(state, &(hl_error){.code = HL_ENOMEM, .text = "there is no memory left"});
        return;
    }
    asked->state = state;
    asked->length = key->length;
    memcpy(asked->key, key->text, key->length + 1);
    command.flags = HL_COMMAND_READS;
    command.words = words;
    command.word_count = 2;
    command.lengths = lengths;
    command.key = key->text;
    command.key_length = key->length;
    pthread_mutex_lock(&state->mutex);
    state->under_way++;
    pthread_mutex_unlock(&state->mutex);
    if (hl_client_command_async(state->waits->client, &command, waits_answered, asked) < 0)
        waits_answered(hl_err_last()->code, NULL, hl_err_last(), asked);
}

static int waits_ask_time(struct waits_state *state, const char *where, hl_error *err)
{
    const char *words[] = {"TIME"};
    hl_command command = HL_COMMAND_INIT;
    hl_reply *reply = NULL;

    command.flags = HL_COMMAND_READS;
    command.words = words;
    command.word_count = 1;
    command.node = where;
    int rc = hl_client_command(state->waits->client, &command, &reply, err);
    if (rc == 0)
        state->now_ms = cli_reply_number(reply, 0) * 1000 + cli_reply_number(reply, 1) / 1000;
    hl_reply_free(reply);
    return rc;
}

/* The keys of one step; none is under way when it ends. */
static void waits_step(struct waits_state *state, const hl_reply *keys)
{
    struct cli_wait wait;

    for (size_t i = 0; i < keys->element_count; i++) {
        const hl_reply *key = cli_reply_text(keys, i);
        if (key && waits_read_key(key->text, key->length, &wait) &&
            waits_has_prefix(state->waits, &wait.name))
            waits_ask(state, key);
    }
    pthread_mutex_lock(&state->mutex);
    while (state->under_way > 0)
        pthread_cond_wait(&state->answered, &state->mutex);
    pthread_mutex_unlock(&state->mutex);
}

/* Callbacks run in a thread of the client; between two steps none is under way. */
static void waits_go_through(struct waits_state *state, const char *where)
{
    struct cli_scan scan = cli_scan_of(state->waits->client, where, "string");
    hl_error err = HL_ERROR_INIT;

    scan.pattern = WAITS_BEGIN "*";
    while (!scan.is_over && state->err.code == 0) {
        hl_reply *reply = NULL;
        int rc = cli_scan_next(&scan, &reply, &err);
        const hl_reply *keys = reply ? reply->elements[1] : NULL;
        if (rc == 0 && keys && keys->element_count > 0)
            rc = waits_ask_time(state, where, &err);
        if (rc < 0)
            waits_fail(state, &err);
        else if (keys)
            waits_step(state, keys);
        hl_reply_free(reply);
    }
}

/* What has failed here says nothing of the other nodes. */
static void waits_end_node(struct waits_state *state, const char *where)
{
    const struct cli_waits *waits = state->waits;

    if (state->err.code == 0)
        return;
    if (waits->missed)
        waits->missed(where, &state->err, waits->arg);
    if (state->first.code == 0)
        state->first = state->err;
    state->err = (hl_error){0};
}

int cli_waits(const struct cli_waits *waits, hl_error *err)
{
    struct waits_state *state = calloc(1, sizeof(*state));

    if (!state) {
        *err = (hl_error){.code = HL_ENOMEM, .text = "there is no memory left"};
        return HL_ENOMEM;
    }
    state->waits = waits;
    pthread_mutex_init(&state->mutex, NULL);
    pthread_cond_init(&state->answered, NULL);
    if (cli_nodes_note(&state->nodes, waits->client, &state->first) < 0)
        state->nodes.count = 0;
    for (size_t i = 0; i < state->nodes.count; i++) {
        waits_go_through(state, state->nodes.where[i]);
        waits_end_node(state, state->nodes.where[i]);
    }
    int rc = state->first.code;
    if (rc < 0)
        *err = state->first;
    pthread_cond_destroy(&state->answered);
    pthread_mutex_destroy(&state->mutex);
    free(state);
    return rc;
}

int cli_wait_goes_on(hl_client *client, const struct cli_wait *wait, bool *ret_goes_on,
                     hl_error *err)
{
    char key[CLI_LOOK_KEY], end[CLI_CLIENT_ID + 32];
    struct cli_wait now = {0};
    hl_reply *reply = NULL;

    *ret_goes_on = false;
    snprintf(end, sizeof(end), ":%s:%llu", wait->client, (unsigned long long)wait->owner);
    size_t length = cli_name_derive(&wait->name, WAITS_BEGIN, end, key);
    if (length == 0)
        return 0;
    const char *words[] = {"GET", key};
    const size_t lengths[] = {3, length};
    hl_command command = HL_COMMAND_INIT;
    command.flags = HL_COMMAND_READS;
    command.words = words;
    command.word_count = 2;
    command.lengths = lengths;
    command.key = key;
    command.key_length = length;
    int rc = hl_client_command(client, &command, &reply, err);
    if (rc == 0)
        *ret_goes_on =
            waits_read_tag(reply, &now) && llabs(now.since_ms - wait->since_ms) < WAITS_SAME_MS;
    hl_reply_free(reply);
    return rc < 0 && waits_is_no_tag(rc, err) ? 0 : rc;
}
