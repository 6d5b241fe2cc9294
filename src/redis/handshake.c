/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The handshake: AUTH, INFO, SELECT, CLIENT SETNAME, CLIENT ID, CLUSTER MYID, ROLE, the term, PING.
 * If INFO has the same run id as before, CLIENT KILL of our old connection follows: after its reply
 * no request that was sent on the old connection can run any more.
 */
#include "redis/handshake.h"

#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char hli_handshake_forgotten[] = "NOAUTH the server forgot the login that it had accepted";

/* A server with too many clients sends this as its first answer to any command, and hangs up. */
static const char handshake_full[] = "ERR max number of clients";

static void handshake_check_auth(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    hli_login_judge(answer, "the server refused the user or password", &handshake->err);
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
    if (handshake->has_login && hli_answer_is(answer, "NOAUTH"))
        hli_fail(&handshake->err, HL_ESERVER, "%s", hli_handshake_forgotten);
}

static void handshake_check_id(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    handshake_check_kind(handshake, answer);
    if (answer->verdict == HLI_REPLIED && answer->reply->kind == HLI_REPLY_INTEGER)
        handshake->now.id = answer->reply->integer;
}

/* An error (before Redis 3, by an ACL, of a proxy) leaves unknown which node it is. */
static void handshake_check_node(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    handshake_check_kind(handshake, answer);
    if (answer->verdict == HLI_REPLIED)
        handshake->now.node = hli_reply_id(answer->reply);
}

static void handshake_note_offsets(struct hli_handshake *handshake, const struct hli_reply *role)
{
    const struct hli_reply *replicas = hli_reply_item(role, 2), *replica;
    int64_t offset;

    handshake->replica_offset = -1;
    if (!hli_reply_integer_at(role, 1, &handshake->offset))
        return;
    handshake->replicas = 0;
    for (size_t i = 0; (replica = hli_reply_item(replicas, i)) != NULL; i++) {
        handshake->replicas++;
        if (hli_reply_integer_at(replica, 2, &offset) && offset > handshake->replica_offset)
            handshake->replica_offset = offset;
    }
}

/* {"slave", host, port, ...}: the master's address is what the user needs. */
static void handshake_refuse_role(struct hli_handshake *handshake, const char *role,
                                  const struct hli_reply *reply)
{
    const struct hli_reply *host = hli_reply_text_at(reply, 1);
    char shown[72];
    int64_t port = 0;

    if (!host || !hli_reply_integer_at(reply, 2, &port))
        hli_fail(&handshake->err, HL_ESERVER, "READONLY the server is a %.20s, not a master", role);
    else
        hli_fail(&handshake->err, HL_ESERVER,
                 "READONLY the server is a replica, not a master; that is %s:%lld",
                 hli_error_escape(shown, sizeof(shown), host->text, host->length), (long long)port);
}

/* A replica must be refused: it answers a script that happens not to write, from data that may be
 * old, with "renewal: gone" or "release: not held". */
static void handshake_check_master(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    const struct hli_reply *role =
        answer->verdict == HLI_REPLIED ? hli_reply_text_at(answer->reply, 0) : NULL;

    if (role && strcmp(role->text, "master") != 0)
        handshake_refuse_role(handshake, role->text, answer->reply);
    else if (role)
        handshake_note_offsets(handshake, answer->reply);
}

static void handshake_check_role(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    handshake_check_kind(handshake, answer);
    handshake->tells_role = answer->verdict == HLI_REPLIED;
    handshake_check_master(handshake, answer);
}

static void handshake_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_handshake_word *word = HLI_PART_OF(op, struct hli_handshake_word, op);
    struct hli_handshake *handshake = word->handshake;

    if (answer->verdict == HLI_UNKNOWN || answer->verdict == HLI_UNSENT)
        return; /* the connection is closed, and reports that itself */
    if (handshake->err.code == 0 && word->check)
        word->check(handshake, answer);
    if (++handshake->answers == handshake->words)
        handshake->done(handshake);
}

typedef void (*handshake_check)(struct hli_handshake *handshake, const struct hli_answer *answer);

/* Where the next command is written to. */
static struct hli_op *handshake_op(struct hli_handshake *handshake)
{
    return &handshake->word[handshake->words].op;
}

static bool handshake_send(struct hli_handshake *handshake, handshake_check check)
{
    struct hli_handshake_word *word = &handshake->word[handshake->words];

    word->handshake = handshake;
    word->check = check;
    HLI_PART_IS(&word->op, struct hli_handshake_word, op);
    word->op.done = handshake_done;
    if (!hli_conn_send(handshake->conn, &word->op, HLI_CONN_AT_ONCE))
        return false;
    handshake->words++;
    return true;
}

/* Sends a command of these words, with NULL behind the last one. False when memory is out, or the
 * connection is not open. */
static bool handshake_add(struct hli_handshake *handshake, const char *const *words,
                          handshake_check check)
{
    return hli_op_texts(handshake_op(handshake), words) == 0 && handshake_send(handshake, check);
}

int hli_handshake_write_kill(const struct hli_handshake_past *past, struct hli_op *op)
{
    char id[24];
    const char *const words[] = {"CLIENT", "KILL", "ID", id, NULL};

    snprintf(id, sizeof(id), "%" PRId64, past->id);
    return hli_op_texts(op, words);
}

static void handshake_add_kill(struct hli_handshake *handshake)
{
    if (hli_handshake_write_kill(&handshake->past, handshake_op(handshake)) == 0)
        handshake_send(handshake, handshake_check_kind);
}

/* Redis has 40 digits. Of a shorter one the lines behind it are no part: they may change. */
static void handshake_note_run_id(struct hli_handshake *handshake, const char *line)
{
    size_t length = strcspn(line, "\r\n");

    if (length > HLI_RUN_ID_LENGTH)
        length = HLI_RUN_ID_LENGTH;
    memcpy(handshake->now.run_id, line, length);
    handshake->now.run_id[length] = '\0';
}

static void handshake_check_info(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    static const char key[] = "run_id:", uptime_key[] = "uptime_in_seconds:";

    handshake_check_kind(handshake, answer);
    if (answer->verdict != HLI_REPLIED || answer->reply->kind != HLI_REPLY_STRING)
        return;
    /* redis_mode, or server_mode as Valkey calls it */
    if (!handshake->may_be_cluster && strstr(answer->reply->text, "_mode:cluster"))
        hli_fail(&handshake->err, HL_ENOTSUP,
                 "the server is a node of a cluster: redis-cluster:// connects to it");
    const char *uptime = strstr(answer->reply->text, uptime_key);
    if (uptime)
        handshake->uptime_s = strtoll(uptime + strlen(uptime_key), NULL, 10);
    const char *at = strstr(answer->reply->text, key);
    if (at)
        handshake_note_run_id(handshake, at + strlen(key));
    if (handshake->past.id != 0 && handshake->now.run_id[0] &&
        strcmp(handshake->now.run_id, handshake->past.run_id) == 0)
        handshake_add_kill(handshake);
}

static void handshake_check_term(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    hli_term_read(answer, &handshake->term, &handshake->err);
}

static void handshake_check_bounds(struct hli_handshake *handshake, const struct hli_answer *answer)
{
    handshake_check_kind(handshake, answer);
    hli_term_read_bounds(answer, &handshake->term);
}

static bool handshake_add_bounds(struct hli_handshake *handshake)
{
    return !handshake->asks_bounds || (hli_term_ask_bounds(handshake_op(handshake)) == 0 &&
                                       handshake_send(handshake, handshake_check_bounds));
}

/* Behind ROLE, so that a replica is refused as one. */
static bool handshake_add_term(struct hli_handshake *handshake)
{
    return handshake->graceful.grace_ms == 0 ||
           (hli_term_ask(handshake_op(handshake), &handshake->graceful,
                         handshake->may_be_cluster) == 0 &&
            handshake_send(handshake, handshake_check_term));
}

static bool handshake_add_auth(struct hli_handshake *handshake, const struct hli_login *login)
{
    return !login->password || (hli_login_write(login, handshake_op(handshake)) == 0 &&
                                handshake_send(handshake, handshake_check_auth));
}

static bool handshake_add_select(struct hli_handshake *handshake, uint32_t database)
{
    char text[12];
    const char *const words[] = {"SELECT", text, NULL};

    snprintf(text, sizeof(text), "%" PRIu32, database);
    return database == 0 || handshake_add(handshake, words, handshake_check_vital);
}

static bool handshake_add_node(struct hli_handshake *handshake)
{
    const char *const words[] = {"CLUSTER", "MYID", NULL};

    return !handshake->may_be_cluster || handshake_add(handshake, words, handshake_check_node);
}

bool hli_handshake_say(struct hli_handshake *handshake, struct hli_conn *conn,
                       const struct hli_login *login, uint32_t database, const char *client_name)
{
    const char *const info[] = {"INFO", "server", NULL};
    const char *const name[] = {"CLIENT", "SETNAME", client_name, NULL};
    const char *const id[] = {"CLIENT", "ID", NULL};
    const char *const role[] = {"ROLE", NULL}, *const ping[] = {"PING", NULL};

    hli_handshake_deinit(handshake);
    handshake->conn = conn;
    handshake->words = handshake->answers = 0;
    handshake->now = (struct hli_handshake_past){0};
    handshake->has_login = login->password != NULL;
    handshake->tells_role = false;
    handshake->offset = handshake->uptime_s = -1;
    handshake->err = (hl_error)HL_ERROR_INIT;
    return handshake_add_auth(handshake, login) &&
           handshake_add(handshake, info, handshake_check_info) &&
           handshake_add_select(handshake, database) &&
           handshake_add(handshake, name, handshake_check_kind) &&
           handshake_add(handshake, id, handshake_check_id) && handshake_add_node(handshake) &&
           handshake_add(handshake, role, handshake_check_role) && handshake_add_term(handshake) &&
           handshake_add_bounds(handshake) && handshake_add(handshake, ping, handshake_check_kind);
}

/* Was the server a replica for a moment, between two beats? Its data may be others by now. */
static void handshake_check_same_term(struct hli_handshake *handshake,
                                      const struct hli_answer *answer)
{
    if (hli_term_is_another(answer, handshake->term.id))
        hli_fail(&handshake->err, HL_ESERVER, "the server's data are of another term");
}

/* Any answer shows that the server is alive, an error too. Only a changed role or term is acted
 * upon. */
void hli_handshake_beat(struct hli_handshake *handshake, bool asks_role)
{
    const char *const words[] = {asks_role ? "ROLE" : "PING", NULL};

    if (handshake->answers < handshake->words)
        return;
    handshake->words = handshake->answers = 0;
    handshake->offset = -1;
    handshake_add(handshake, words, asks_role ? handshake_check_master : NULL);
    if (handshake->graceful.grace_ms > 0 && hli_term_ask_again(handshake_op(handshake)) == 0)
        handshake_send(handshake, handshake_check_same_term);
}

/* The commands may contain a password, so they are wiped. */
void hli_handshake_deinit(struct hli_handshake *handshake)
{
    for (unsigned i = 0; i < HLI_HANDSHAKE_WORDS; i++)
        hli_op_wipe(&handshake->word[i].op);
}
