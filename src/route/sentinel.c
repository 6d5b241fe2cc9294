/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Asking a sentinel, and reading its answers and messages. */
#include "route/sentinel.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "route/address_map.h"

#include <stdio.h>
#include <string.h>

enum {
    SENTINEL_NAME,
    SENTINEL_UNSUBSCRIBE,
    SENTINEL_ADDRESS,
    SENTINEL_EPOCH,
    SENTINEL_ID,
    SENTINEL_PEERS,
    SENTINEL_PROMOTED,
    SENTINEL_SWITCH,
};

enum { SENTINEL_AGE_MAX_MS = 24 * 3600 * 1000 };

/* The sentinel that leads a failover names the next master as soon as this one is promoted. It
 * speaks of the switch when the other replicas follow, which may be the failover-timeout later. */
static const char sentinel_promoted[] = "+promoted-slave", sentinel_switch[] = "+switch-master";

void hli_sentinel_word_init(struct hli_sentinel_word *word)
{
    *word = (struct hli_sentinel_word){.epoch = -1};
}

void hli_sentinel_word_deinit(struct hli_sentinel_word *word)
{
    hli_address_deinit(&word->master);
    hli_sentinel_word_init(word);
}

void hli_sentinel_word_move(struct hli_sentinel_word *to, struct hli_sentinel_word *from)
{
    hli_sentinel_word_deinit(to);
    *to = *from;
    hli_sentinel_word_init(from);
}

/* --- what it is asked --- */

void hli_sentinel_begin(struct hli_sentinel *sentinel)
{
    sentinel->has_answered = false;
    sentinel->err = (hl_error)HL_ERROR_INIT;
    hli_inquiry_begin(&sentinel->inquiry, hli_sentinel_list_current(sentinel->list));
}

static bool sentinel_say(struct hli_sentinel *sentinel, int index, const char *const *words)
{
    return hli_inquiry_say(&sentinel->inquiry, &sentinel->request[index].op, words);
}

/* The address is asked for by itself: during a failover SENTINEL MASTER still has the old one. */
static bool sentinel_ask(struct hli_sentinel *sentinel, const struct hli_sentinel_word *known)
{
    const char *service = sentinel->inquiry.url->service;
    const char *const address[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service, NULL};
    const char *const epoch[] = {"SENTINEL", "MASTER", service, NULL};
    const char *const id[] = {"SENTINEL", "MYID", NULL};
    const char *const peers[] = {"SENTINEL", "SENTINELS", service, NULL};
    const char *const promoted[] = {"SUBSCRIBE", sentinel_promoted, NULL};
    const char *const switched[] = {"SUBSCRIBE", sentinel_switch, NULL};

    sentinel->err = (hl_error)HL_ERROR_INIT;
    sentinel->known = known;
    sentinel->id = (struct hli_id){""};
    sentinel->is_unmet = false;
    sentinel->described[0] = '\0';
    sentinel->asked_at = hli_now();
    hli_sentinel_word_deinit(&sentinel->said);
    memcpy(sentinel->said.who, sentinel->inquiry.where, sizeof(sentinel->inquiry.where));
    return sentinel_say(sentinel, SENTINEL_EPOCH, epoch) &&
           sentinel_say(sentinel, SENTINEL_ADDRESS, address) &&
           sentinel_say(sentinel, SENTINEL_ID, id) &&
           sentinel_say(sentinel, SENTINEL_PEERS, peers) &&
           sentinel_say(sentinel, SENTINEL_PROMOTED, promoted) &&
           sentinel_say(sentinel, SENTINEL_SWITCH, switched);
}

bool hli_sentinel_greet(struct hli_sentinel *sentinel, const struct hli_sentinel_word *known)
{
    const char *const name[] = {"CLIENT", "SETNAME", sentinel->inquiry.settings->client_name, NULL};

    sentinel->login_ends = hli_login_renew_at(sentinel->inquiry.login.login, hli_random_u64());
    return sentinel_say(sentinel, SENTINEL_NAME, name) && sentinel_ask(sentinel, known);
}

/* A connection that is subscribed cannot ask. */
bool hli_sentinel_ask_again(struct hli_sentinel *sentinel, const struct hli_sentinel_word *known)
{
    const char *const unsubscribe[] = {"UNSUBSCRIBE", sentinel_promoted, sentinel_switch, NULL};

    return sentinel_say(sentinel, SENTINEL_UNSUBSCRIBE, unsubscribe) &&
           sentinel_ask(sentinel, known);
}

/* --- what it says --- */

bool hli_sentinel_is_stale(const struct hli_sentinel *sentinel)
{
    return sentinel->said.epoch >= 0 && sentinel->said.epoch < sentinel->known->epoch;
}

bool hli_sentinel_met_another(const struct hli_sentinel_word *word,
                              const struct hli_link_met *server)
{
    return word->run.text[0] && server->run_id[0] && strcmp(word->run.text, server->run_id) != 0 &&
           server->began < word->met_at;
}

bool hli_sentinel_is_strange(const struct hli_sentinel *sentinel)
{
    const struct hli_address *known = &sentinel->known->master, *said = &sentinel->said.master;

    return sentinel->is_unmet && known->host && said->host &&
           !hli_address_is(known, said->host, said->port);
}

void hli_sentinel_blame(struct hli_sentinel *sentinel, int code, const char *text)
{
    if (sentinel->err.code == 0)
        hli_fail(&sentinel->err, code, "sentinel %s: %s", sentinel->inquiry.where, text);
}

void hli_sentinel_on_auth(struct hli_inquiry *inquiry, const struct hli_answer *answer)
{
    struct hli_sentinel *sentinel = inquiry->arg;
    hl_error err;

    sentinel->has_answered = true;
    if (hli_login_judge(answer, "it refused sentinel_username or sentinel_password", &err) < 0)
        hli_sentinel_blame(sentinel, err.code, err.text);
}

static void sentinel_write_place(char text[HLI_WHERE_SIZE], const struct hli_reply *host,
                                 int64_t port)
{
    snprintf(text, HLI_WHERE_SIZE, "%s:%lld", host ? host->text : "", (long long)port);
}

/* A sentinel sends INFO to the master every 10 seconds, and tells how long ago it was answered. */
static void sentinel_note_run(struct hli_sentinel *sentinel, const struct hli_reply *fields)
{
    int64_t port = 0, age_ms = -1;

    hli_reply_integer(hli_reply_field(fields, "port"), &port);
    hli_reply_integer(hli_reply_field(fields, "info-refresh"), &age_ms);
    if (age_ms < 0 || age_ms > SENTINEL_AGE_MAX_MS)
        return;
    sentinel_write_place(sentinel->described, hli_reply_field(fields, "ip"), port);
    sentinel->said.run = hli_reply_id(hli_reply_field(fields, "runid"));
    sentinel->said.met_at = sentinel->asked_at - HLI_MS(age_ms);
}

/* A refusal (by ACL) leaves the epoch unknown, and which server it has met. */
static void sentinel_on_epoch(struct hli_sentinel *sentinel, const struct hli_answer *answer)
{
    if (answer->verdict != HLI_REPLIED)
        return;
    hli_reply_integer(hli_reply_field(answer->reply, "config-epoch"), &sentinel->said.epoch);
    sentinel_note_run(sentinel, answer->reply);
}

static void sentinel_note_master(struct hli_sentinel *sentinel, const char *host, uint16_t port)
{
    hl_error err;
    int rc = hli_address_map(sentinel->inquiry.settings, host, port, &sentinel->said.master, &err);

    if (rc < 0)
        hli_sentinel_blame(sentinel, rc, rc == HL_EPROTO ? "its answer is no address" : err.text);
}

static void sentinel_on_address(struct hli_sentinel *sentinel, const struct hli_answer *answer)
{
    const struct hli_reply *reply = answer->reply, *host = hli_reply_text_at(reply, 0);
    char place[HLI_WHERE_SIZE];
    int64_t port = 0;

    if (answer->verdict == HLI_FAILED && hli_answer_is(answer, "NOAUTH")) {
        hli_sentinel_blame(sentinel, HL_EDENIED,
                           "it wants a password: give sentinel_password in the options");
    } else if (answer->verdict != HLI_REPLIED) {
        hli_sentinel_blame(sentinel, answer->code, answer->text);
    } else if (reply->kind == HLI_REPLY_NIL) {
        char text[160];
        snprintf(text, sizeof(text), "it knows no master '%s'", sentinel->inquiry.url->service);
        hli_sentinel_blame(sentinel, HL_ESERVER, text);
    } else if (!host || !hli_reply_integer_at(reply, 1, &port) || port < 1 || port > UINT16_MAX) {
        hli_sentinel_blame(sentinel, HL_EPROTO, "its answer is no address");
    } else {
        sentinel_write_place(place, host, port);
        if (strcmp(place, sentinel->described) != 0) /* a failover is under way */
            sentinel->said.run = (struct hli_id){""};
        sentinel_note_master(sentinel, host->text, (uint16_t)port);
    }
}

/* A refusal leaves the id unknown. */
static void sentinel_on_id(struct hli_sentinel *sentinel, const struct hli_answer *answer)
{
    if (answer->verdict == HLI_REPLIED)
        sentinel->id = hli_reply_id(answer->reply);
}

static void sentinel_on_peers(struct hli_sentinel *sentinel, const struct hli_answer *answer)
{
    const struct hli_reply *peers = answer->verdict == HLI_REPLIED ? answer->reply : NULL;

    sentinel->is_unmet = !hli_sentinel_list_has_met(sentinel->list, &sentinel->id, peers);
    if (sentinel->err.code < 0 || hli_sentinel_is_stale(sentinel) ||
        hli_sentinel_is_strange(sentinel))
        return;
    hli_sentinel_list_meet(sentinel->list, &sentinel->id, peers);
    if (!peers)
        return;
    sentinel->unmapped = (hl_error)HL_ERROR_INIT;
    hli_sentinel_list_learn(sentinel->list, peers, &sentinel->unmapped);
}

/* The last answer. By an ACL the sentinel may refuse to send messages: then it is only asked. */
static void sentinel_on_switch(struct hli_sentinel *sentinel, const struct hli_answer *answer)
{
    (void)answer;
    sentinel->told(sentinel);
}

static void (*const sentinel_read[HLI_SENTINEL_WORDS])(struct hli_sentinel *sentinel,
                                                       const struct hli_answer *answer) = {
    [SENTINEL_ADDRESS] = sentinel_on_address, [SENTINEL_EPOCH] = sentinel_on_epoch,
    [SENTINEL_ID] = sentinel_on_id,           [SENTINEL_PEERS] = sentinel_on_peers,
    [SENTINEL_SWITCH] = sentinel_on_switch,
};

static void sentinel_request_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_sentinel_request *request = HLI_PART_OF(op, struct hli_sentinel_request, op);
    struct hli_sentinel *sentinel = request->sentinel;
    size_t index = (size_t)(request - sentinel->request);

    if (answer->verdict == HLI_UNKNOWN)
        return;
    sentinel->has_answered = true;
    if (sentinel_read[index])
        sentinel_read[index](sentinel, answer);
}

static bool sentinel_begins_with_name(const struct hli_sentinel *sentinel, const char *text)
{
    size_t length = strlen(sentinel->inquiry.url->service);

    return strncmp(text, sentinel->inquiry.url->service, length) == 0 && text[length] == ' ';
}

/* "mymaster 127.0.0.1 7001 127.0.0.1 7002"; "slave 127.0.0.1:7002 127.0.0.1 7002 @ mymaster
 * 127.0.0.1 7001". */
void hli_sentinel_on_message(struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_sentinel *sentinel = conn->arg;
    const struct hli_reply *text = hli_reply_text_at(reply, 2);
    const char *at = text ? strstr(text->text, " @ ") : NULL;

    if (!text)
        return;
    if (sentinel_begins_with_name(sentinel, text->text) ||
        (at && sentinel_begins_with_name(sentinel, at + strlen(" @ "))))
        sentinel->moved(sentinel);
}

void hli_sentinel_init(struct hli_sentinel *sentinel, const struct hli_inquiry_setup *setup)
{
    struct hli_inquiry_setup inquiry = *setup;

    inquiry.arg = sentinel;
    hli_inquiry_init(&sentinel->inquiry, &inquiry);
    hli_sentinel_word_init(&sentinel->said);
    for (int i = 0; i < HLI_SENTINEL_WORDS; i++) {
        sentinel->request[i].sentinel = sentinel;
        HLI_PART_IS(&sentinel->request[i].op, struct hli_sentinel_request, op);
        sentinel->request[i].op.done = sentinel_request_done;
    }
    sentinel->request[SENTINEL_UNSUBSCRIBE].op.more_replies = 1;
}

void hli_sentinel_deinit(struct hli_sentinel *sentinel)
{
    for (int i = 0; i < HLI_SENTINEL_WORDS; i++)
        hli_op_wipe(&sentinel->request[i].op);
    hli_inquiry_deinit(&sentinel->inquiry);
    hli_sentinel_word_deinit(&sentinel->said);
}
