/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The greeting: AUTH, INFO, SELECT, CLIENT SETNAME, CLIENT ID, ROLE, PING, and, once INFO has told
 * that the server is the one of before, CLIENT KILL of our old connection: after its reply nothing
 * that was sent on that one can run any more.
 */
#include "redis/greeting.h"

#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The first word only: an old server or a proxy may repeat the password in what follows it. A full
 * server says so in its first answer, whatever was asked. */
static void greeting_check_auth(struct hli_greeting *greeting, const struct hli_answer *answer)
{
    static const char full[] = "ERR max number of clients";

    if (answer->verdict == HLI_REFUSED && strncmp(answer->text, full, strlen(full)) == 0)
        hli_fail(&greeting->err, HL_ESERVER, "%s", answer->text);
    else if (answer->verdict == HLI_REFUSED &&
             (hli_answer_is(answer, "LOADING") || hli_answer_is(answer, "BUSY")))
        hli_fail(&greeting->err, HL_ESERVER, "%.*s", (int)strcspn(answer->text, " "), answer->text);
    else if (answer->verdict != HLI_REPLIED)
        hli_fail(&greeting->err, HL_EDENIED, "the server refused the user or password (%.*s)",
                 (int)strcspn(answer->text, " "), answer->text);
}

static void greeting_check_vital(struct hli_greeting *greeting, const struct hli_answer *answer)
{
    if (answer->verdict != HLI_REPLIED)
        hli_fail(&greeting->err, answer->code, "%s", answer->text);
}

/* A refusal is forgiven, but for what says that the server is not ready for us. */
static void greeting_check_kind(struct hli_greeting *greeting, const struct hli_answer *answer)
{
    static const char *const serious[] = {"NOAUTH",     "LOADING", "BUSY",
                                          "MASTERDOWN", "DENIED",  "NOPROTO"};

    if (answer->verdict == HLI_REPLIED)
        return;
    hli_fail(&greeting->hint, answer->code, "%s", answer->text);
    for (size_t i = 0; i < sizeof(serious) / sizeof(serious[0]); i++)
        if (hli_answer_is(answer, serious[i]))
            greeting->err = greeting->hint;
}

static void greeting_check_id(struct hli_greeting *greeting, const struct hli_answer *answer)
{
    greeting_check_kind(greeting, answer);
    if (answer->verdict == HLI_REPLIED && answer->reply->kind == HLI_REPLY_INTEGER)
        greeting->now.id = answer->reply->integer;
}

/* A replica answers scripts that happen not to write from data that may be old: "renewal: gone",
 * "release: not held". */
static void greeting_check_role(struct hli_greeting *greeting, const struct hli_answer *answer)
{
    greeting_check_kind(greeting, answer);
    const struct hli_reply *role =
        answer->verdict == HLI_REPLIED ? hli_reply_text_at(answer->reply, 0) : NULL;
    if (role && strcmp(role->text, "master") != 0)
        hli_fail(&greeting->err, HL_ESERVER, "READONLY the server is a %s, not a master",
                 role->text);
}

static void greeting_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_greeting_word *word = HLI_OF(op, struct hli_greeting_word, op);
    struct hli_greeting *greeting = word->greeting;

    if (answer->verdict == HLI_UNKNOWN || answer->verdict == HLI_UNSENT)
        return; /* the connection is closed, and says so itself */
    if (greeting->err.code == 0)
        word->check(greeting, answer);
    if (++greeting->answers == greeting->words)
        greeting->done(greeting);
}

static bool greeting_add(struct hli_greeting *greeting, const struct hli_bytes *words, size_t count,
                         void (*check)(struct hli_greeting *, const struct hli_answer *))
{
    struct hli_greeting_word *word = &greeting->word[greeting->words];

    word->greeting = greeting;
    word->check = check;
    word->op.done = greeting_done;
    if (hli_op_command(&word->op, words, count) < 0)
        return false;
    greeting->words++;
    return true;
}

static bool greeting_add_kill(struct hli_greeting *greeting)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, greeting->past.id);
    const struct hli_bytes words[] = {hli_bytes_of("CLIENT"), hli_bytes_of("KILL"),
                                      hli_bytes_of("ID"), hli_bytes_of(text)};
    return greeting_add(greeting, words, 4, greeting_check_kind);
}

static void greeting_check_info(struct hli_greeting *greeting, const struct hli_answer *answer)
{
    static const char key[] = "run_id:";

    greeting_check_kind(greeting, answer);
    if (answer->verdict != HLI_REPLIED || answer->reply->kind != HLI_REPLY_STRING)
        return;
    const char *at = strstr(answer->reply->text, key);
    if (at && strlen(at) >= strlen(key) + HLI_RUN_ID_LENGTH)
        memcpy(greeting->now.run_id, at + strlen(key), HLI_RUN_ID_LENGTH);
    if (greeting->past.id != 0 && greeting->now.run_id[0] &&
        strcmp(greeting->now.run_id, greeting->past.run_id) == 0 && greeting_add_kill(greeting) &&
        !hli_conn_send(greeting->conn, &greeting->word[greeting->words - 1].op))
        greeting->words--;
}

static bool greeting_add_auth(struct hli_greeting *greeting, const struct hli_url *url)
{
    struct hli_bytes words[3] = {hli_bytes_of("AUTH")};
    size_t count = 1;

    if (!url->password)
        return true;
    if (url->username)
        words[count++] = hli_bytes_of(url->username);
    words[count++] = hli_bytes_of(url->password);
    return greeting_add(greeting, words, count, greeting_check_auth);
}

static bool greeting_add_select(struct hli_greeting *greeting, uint32_t database)
{
    char text[12];

    if (database == 0)
        return true;
    snprintf(text, sizeof(text), "%" PRIu32, database);
    const struct hli_bytes words[] = {hli_bytes_of("SELECT"), hli_bytes_of(text)};
    return greeting_add(greeting, words, 2, greeting_check_vital);
}

static bool greeting_prepare(struct hli_greeting *greeting,
                             const struct hli_greeting_settings *settings)
{
    const struct hli_bytes name[] = {hli_bytes_of("CLIENT"), hli_bytes_of("SETNAME"),
                                     hli_bytes_of(settings->client_name)};
    const struct hli_bytes info[] = {hli_bytes_of("INFO"), hli_bytes_of("server")};
    const struct hli_bytes id[] = {hli_bytes_of("CLIENT"), hli_bytes_of("ID")};
    const struct hli_bytes role = hli_bytes_of("ROLE"), ping = hli_bytes_of("PING");

    return greeting_add_auth(greeting, settings->url) &&
           greeting_add(greeting, info, 2, greeting_check_info) &&
           greeting_add_select(greeting, settings->url->database) &&
           greeting_add(greeting, name, 3, greeting_check_kind) &&
           greeting_add(greeting, id, 2, greeting_check_id) &&
           greeting_add(greeting, &role, 1, greeting_check_role) &&
           greeting_add(greeting, &ping, 1, greeting_check_kind);
}

bool hli_greeting_say(struct hli_greeting *greeting, struct hli_conn *conn,
                      const struct hli_greeting_settings *settings)
{
    hli_greeting_deinit(greeting);
    greeting->conn = conn;
    greeting->words = greeting->answers = 0;
    greeting->past = *settings->past;
    greeting->now = (struct hli_greeting_past){0};
    greeting->err = greeting->hint = (hl_error)HL_ERROR_INIT;
    if (!greeting_prepare(greeting, settings))
        return false;
    for (unsigned i = 0; i < greeting->words; i++)
        if (!hli_conn_send(conn, &greeting->word[i].op))
            return false;
    return true;
}

/* The commands may hold a password. */
void hli_greeting_deinit(struct hli_greeting *greeting)
{
    for (unsigned i = 0; i < HLI_GREETING_WORDS; i++) {
        struct hli_op *op = &greeting->word[i].op;
        if (op->bytes)
            explicit_bzero(op->bytes, op->length);
        hli_op_deinit(op);
    }
}
