/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The handshake: AUTH, INFO, SELECT, CLIENT SETNAME, CLIENT ID, ROLE, PING. If INFO has the same
 * run id as before, CLIENT KILL of our old connection follows: after its reply no request that was
 * sent on the old connection can run any more.
 */
#include "redis/handshake.h"

#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A server with too many clients sends this as its first answer to any command, and hangs up. */
static const char handshake_full[] = "ERR max number of clients";

/* Keeps the first word of the answer only: an old server or a proxy may repeat the password behind
 * it. */
static void handshake_check_auth(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    if (hli_answer_is(answer, handshake_full))
        hli_fail(&handshake->err, HL_ESERVER, "%s", answer->text);
    else if (answer->verdict == HLI_REFUSED &&
             (hli_answer_is(answer, "LOADING") || hli_answer_is(answer, "BUSY")))
        hli_fail(&handshake->err, HL_ESERVER, "%.*s", (int)strcspn(answer->text, " "),
                 answer->text);
    else if (answer->verdict != HLI_REPLIED)
        hli_fail(&handshake->err, HL_EDENIED, "the server refused the user or password (%.*s)",
                 (int)strcspn(answer->text, " "), answer->text);
}

static void handshake_check_vital(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    if (answer->verdict != HLI_REPLIED)
        hli_fail(&handshake->err, answer->code, "%s", answer->text);
}

/* Ignores a refusal, unless it says that the server is not ready for this client. */
static void handshake_check_kind(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    static const char *const serious[] = {"NOAUTH", "LOADING", "BUSY",        "MASTERDOWN",
                                          "DENIED", "NOPROTO", handshake_full};

    for (size_t i = 0; i < sizeof(serious) / sizeof(serious[0]); i++)
        if (hli_answer_is(answer, serious[i]))
            hli_fail(&handshake->err, answer->code, "%s", answer->text);
}

static void handshake_check_id(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    handshake_check_kind(handshake, answer);
    if (answer->verdict == HLI_REPLIED && answer->reply->kind == HLI_REPLY_INTEGER)
        handshake->now.id = answer->reply->integer;
}

/* A replica must be refused: it answers a script that happens not to write, from data that may be
 * old, with "renewal: gone" or "release: not held". */
static void handshake_check_master(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    const struct hli_reply *role =
        answer->verdict == HLI_REPLIED ? hli_reply_text_at(answer->reply, 0) : NULL;

    if (role && strcmp(role->text, "master") != 0)
        hli_fail(&handshake->err, HL_ESERVER, "READONLY the server is a %s, not a master",
                 role->text);
}

static void handshake_check_role(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    handshake_check_kind(handshake, answer);
    handshake->tells_role = answer->verdict == HLI_REPLIED;
    handshake_check_master(handshake, answer);
}

static void handshake_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_handshake_word *word = HLI_OF(op, struct hli_handshake_word, op);
    struct hli_handshake *handshake = word->handshake;

    if (answer->verdict == HLI_UNKNOWN || answer->verdict == HLI_UNSENT)
        return; /* the connection is closed, and reports that itself */
    if (handshake->err.code == 0 && word->check)
        word->check(handshake, answer);
    if (++handshake->answers == handshake->words)
        handshake->done(handshake);
}

/* Sends a command of these words, with NULL behind the last one. False when memory is out, or the
 * connection is not open. */
static bool handshake_add(struct hli_handshake *handshake, const char *const *words,
                          void (*check)(struct hli_handshake *, const struct hli_answer *))
{
    struct hli_handshake_word *word = &handshake->word[handshake->words];
    struct hli_args args;

    word->handshake = handshake;
    word->check = check;
    word->op.done = handshake_done;
    hli_args_begin(&args);
    for (; *words; words++)
        hli_args_text(&args, *words);
    if (hli_args_end(&args, &word->op) < 0 ||
        !hli_conn_send(handshake->conn, &word->op, HLI_CONN_AT_ONCE))
        return false;
    handshake->words++;
    return true;
}

static void handshake_add_kill(struct hli_handshake *handshake)
{
    char id[24];
    const char *const words[] = {"CLIENT", "KILL", "ID", id, NULL};

    snprintf(id, sizeof(id), "%" PRId64, handshake->past.id);
    handshake_add(handshake, words, handshake_check_kind);
}

static void handshake_check_info(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    static const char key[] = "run_id:";

    handshake_check_kind(handshake, answer);
    if (answer->verdict != HLI_REPLIED || answer->reply->kind != HLI_REPLY_STRING)
        return;
    if (strstr(answer->reply->text, "redis_mode:cluster"))
        hli_fail(&handshake->err, HL_ENOTSUP,
                 "the server is a node of a cluster, which this version does not support");
    const char *at = strstr(answer->reply->text, key);
    if (at && strlen(at) >= strlen(key) + HLI_RUN_ID_LENGTH)
        memcpy(handshake->now.run_id, at + strlen(key), HLI_RUN_ID_LENGTH);
    if (handshake->past.id != 0 && handshake->now.run_id[0] &&
        strcmp(handshake->now.run_id, handshake->past.run_id) == 0)
        handshake_add_kill(handshake);
}

static bool handshake_add_auth(struct hli_handshake *handshake, const struct hli_url *url)
{
    const char *const by_user[] = {"AUTH", url->username, url->password, NULL};
    const char *const by_password[] = {"AUTH", url->password, NULL};

    return !url->password ||
           handshake_add(handshake, url->username ? by_user : by_password, handshake_check_auth);
}

static bool handshake_add_select(struct hli_handshake *handshake, uint32_t database)
{
    char text[12];
    const char *const words[] = {"SELECT", text, NULL};

    snprintf(text, sizeof(text), "%" PRIu32, database);
    return database == 0 || handshake_add(handshake, words, handshake_check_vital);
}

bool hli_handshake_say(struct hli_handshake *handshake, struct hli_conn *conn,
                       const struct hli_url *url, const char *client_name)
{
    const char *const info[] = {"INFO", "server", NULL};
    const char *const name[] = {"CLIENT", "SETNAME", client_name, NULL};
    const char *const id[] = {"CLIENT", "ID", NULL};
    const char *const role[] = {"ROLE", NULL}, *const ping[] = {"PING", NULL};

    hli_handshake_deinit(handshake);
    handshake->conn = conn;
    handshake->words = handshake->answers = 0;
    handshake->now = (struct hli_handshake_past){0};
    handshake->tells_role = false;
    handshake->err = (hl_error)HL_ERROR_INIT;
    return handshake_add_auth(handshake, url) &&
           handshake_add(handshake, info, handshake_check_info) &&
           handshake_add_select(handshake, url->database) &&
           handshake_add(handshake, name, handshake_check_kind) &&
           handshake_add(handshake, id, handshake_check_id) &&
           handshake_add(handshake, role, handshake_check_role) &&
           handshake_add(handshake, ping, handshake_check_kind);
}

/* Any answer shows that the server is alive, an error too. Only a changed role is acted upon. */
void hli_handshake_beat(struct hli_handshake *handshake, bool asks_role)
{
    const char *const words[] = {asks_role ? "ROLE" : "PING", NULL};

    if (handshake->answers < handshake->words)
        return;
    handshake->words = handshake->answers = 0;
    handshake_add(handshake, words, asks_role ? handshake_check_master : NULL);
}

/* The commands may contain a password, so they are wiped. */
void hli_handshake_deinit(struct hli_handshake *handshake)
{
    for (unsigned i = 0; i < HLI_HANDSHAKE_WORDS; i++) {
        struct hli_op *op = &handshake->word[i].op;
        if (op->bytes)
            explicit_bzero(op->bytes, op->length);
        hli_op_deinit(op);
    }
}
