/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Asking sentinels, in rounds: each sentinel once, from the one that answered last.
 *
 *     IDLE --> LOGIN --> DIALLING --> ASKING --a good answer--> WATCHING --message, 10 s--> ASKING
 *       ^        |           |            |                         |
 *       +-- all -+-----------+- the next -+---------- lost ---------+
 *
 * A sentinel that was out of reach for a while may name the master of an earlier time. So the
 * configuration epoch, which each failover raises, orders the answers: an answer of an older epoch
 * counts only while there is no master, and if no sentinel of the round has a newer one (all may
 * have been set up anew).
 */
#include "route/sentinels.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "route/address_map.h"
#include "route/inquiry.h"
#include "route/sentinel_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SENTINELS_POLL_MS = 10 * 1000,
    SENTINELS_PAUSE_MS = 100, /* messages in a storm make the client ask only so often */
};

enum sentinels_state {
    SENTINELS_IDLE,
    SENTINELS_LOGIN,
    SENTINELS_DIALLING,
    SENTINELS_ASKING,
    SENTINELS_WATCHING
};

enum {
    SENTINELS_NAME,
    SENTINELS_UNSUBSCRIBE,
    SENTINELS_ADDRESS,
    SENTINELS_EPOCH,
    SENTINELS_PEERS,
    SENTINELS_PROMOTED,
    SENTINELS_SWITCH,
    SENTINELS_WORDS
};

struct sentinels_word {
    struct hli_op op;
    struct hli_sentinels *sentinels;
};

struct sentinels_answer {
    struct hli_address master; /* owned; host NULL: none */
    int64_t epoch;             /* -1: unknown */
    char who[HLI_WHERE_SIZE];  /* the sentinel that said it */
};

struct hli_sentinels {
    struct hli_sentinels_events events; /* immutable */

    enum sentinels_state state; /* loop thread, as all below */
    struct hli_sentinel_list list;
    struct hli_inquiry inquiry; /* the connection to a sentinel, and since when it is open */
    hli_ns open_since;
    bool is_wanted;    /* `located` is still to be called */
    bool is_doubted;   /* the server that was named last is not confirmed */
    bool is_blind;     /* the last round was in vain */
    bool has_answered; /* the sentinel of this connection, anything */
    hli_ns round_ends;
    hli_ns asked_at;                             /* the last time */
    size_t left;                                 /* sentinels that the round has not asked */
    struct sentinels_answer heard, stale, known; /* of this sentinel; the newest that is too old;
                                                    the one that counts */
    char why[HLI_WHERE_SIZE + 32];               /* who said it */
    hl_error err;                                /* why this sentinel's answer is of no use */
    hl_error unmapped;                           /* why an address of the last list is of none */

    hli_ns login_began; /* LOGIN: when; the round lasts so much longer */
    hli_ns login_ends;  /* WATCHING: when to greet anew, with another login */
    struct sentinels_word word[SENTINELS_WORDS];
    /* LOGIN: give up; DIALLING, ASKING: to the next sentinel; WATCHING: ask again; IDLE: a new
     * round. */
    struct hli_timer timer;
};

/* The sentinel that leads a failover names the next master as soon as this one is promoted. It
 * speaks of the switch when the other replicas follow, which may be the failover-timeout later. */
static const char sentinels_promoted[] = "+promoted-slave", sentinels_switch[] = "+switch-master";

static void sentinels_next(struct hli_sentinels *sentinels);
static void sentinels_on_timer(void *arg);

static void sentinels_log(struct hli_sentinels *sentinels, hl_log_level level, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

static void sentinels_log(struct hli_sentinels *sentinels, hl_log_level level, const char *format,
                          ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    sentinels->events.log(level, text, sentinels->events.arg);
}

static void sentinels_forget(struct sentinels_answer *answer)
{
    hli_address_deinit(&answer->master);
    answer->epoch = -1;
}

static void sentinels_take(struct sentinels_answer *to, struct sentinels_answer *from)
{
    sentinels_forget(to);
    *to = *from;
    *from = (struct sentinels_answer){.epoch = -1};
}

static void sentinels_set_timer(struct hli_sentinels *sentinels, hli_ns at)
{
    hli_timer_set(sentinels->inquiry.loop, &sentinels->timer, at);
}

/* Closes without a word to anybody: the inquiry's conn.closed sees the state. */
static void sentinels_close(struct hli_sentinels *sentinels)
{
    sentinels->state = SENTINELS_IDLE;
    hli_inquiry_close(&sentinels->inquiry);
}

static bool sentinels_say(struct hli_sentinels *sentinels, int index, const char *const *words)
{
    return hli_inquiry_say(&sentinels->inquiry, &sentinels->word[index].op, words);
}

static bool sentinels_greet(struct hli_sentinels *sentinels)
{
    const char *const name[] = {"CLIENT", "SETNAME", sentinels->inquiry.settings->client_name,
                                NULL};

    sentinels->login_ends = hli_login_renew_at(sentinels->inquiry.login.login, hli_random_u64());
    return sentinels_say(sentinels, SENTINELS_NAME, name);
}

/* The address is asked for by itself: during a failover SENTINEL MASTER still has the old one. */
static bool sentinels_ask(struct hli_sentinels *sentinels)
{
    const char *service = sentinels->inquiry.url->service;
    const char *const address[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service, NULL};
    const char *const epoch[] = {"SENTINEL", "MASTER", service, NULL};
    const char *const peers[] = {"SENTINEL", "SENTINELS", service, NULL};
    const char *const promoted[] = {"SUBSCRIBE", sentinels_promoted, NULL};
    const char *const switched[] = {"SUBSCRIBE", sentinels_switch, NULL};

    sentinels->err = (hl_error)HL_ERROR_INIT;
    sentinels_forget(&sentinels->heard);
    memcpy(sentinels->heard.who, sentinels->inquiry.where, sizeof(sentinels->inquiry.where));
    return sentinels_say(sentinels, SENTINELS_EPOCH, epoch) &&
           sentinels_say(sentinels, SENTINELS_ADDRESS, address) &&
           sentinels_say(sentinels, SENTINELS_PEERS, peers) &&
           sentinels_say(sentinels, SENTINELS_PROMOTED, promoted) &&
           sentinels_say(sentinels, SENTINELS_SWITCH, switched);
}

static void sentinels_fail(struct hli_sentinels *sentinels, int code, const char *text)
{
    hli_fail(&sentinels->err, code, "sentinel %s: %s", sentinels->inquiry.where, text);
    sentinels_next(sentinels);
}

/* The time for this sentinel, when others are left. */
static void sentinels_set_share(struct hli_sentinels *sentinels)
{
    hli_ns now = hli_now(), left = hli_later(sentinels->round_ends - now, 0);
    bool is_first = sentinels->left + 1 == hli_sentinel_list_count(&sentinels->list);

    sentinels_set_timer(sentinels, now + hli_inquiry_share(left, sentinels->left, is_first));
}

/* Asks the sentinel that the connection leads to. A connection that is subscribed cannot ask. */
static void sentinels_begin_asking(struct hli_sentinels *sentinels, bool is_new)
{
    const char *const unsubscribe[] = {"UNSUBSCRIBE", sentinels_promoted, sentinels_switch, NULL};

    sentinels->state = SENTINELS_ASKING;
    sentinels->asked_at = hli_now();
    sentinels_set_share(sentinels);
    bool is_said = is_new ? sentinels_greet(sentinels)
                          : sentinels_say(sentinels, SENTINELS_UNSUBSCRIBE, unsubscribe);
    if ((!is_said || !sentinels_ask(sentinels)) && sentinels->state == SENTINELS_ASKING)
        sentinels_fail(sentinels, HL_ENOMEM, "out of memory");
}

static void sentinels_on_opened(struct hli_inquiry *inquiry, const hl_error *err)
{
    struct hli_sentinels *sentinels = inquiry->arg;

    sentinels->open_since = hli_now();
    if (err)
        sentinels_fail(sentinels, err->code, err->text);
    else
        sentinels_begin_asking(sentinels, true);
}

static void sentinels_on_login(struct hli_inquiry *inquiry, const hl_error *err)
{
    struct hli_sentinels *sentinels = inquiry->arg;

    if (sentinels->state != SENTINELS_LOGIN)
        return;
    sentinels->round_ends += hli_now() - sentinels->login_began;
    if (err) {
        sentinels_fail(sentinels, err->code, err->text);
        return;
    }
    sentinels->state = SENTINELS_DIALLING;
    sentinels->has_answered = false;
    sentinels_set_share(sentinels);
    if (!hli_inquiry_dial(inquiry, sentinels->timer.node.at))
        sentinels_fail(sentinels, HL_ENOMEM, "out of memory");
}

/* To the current sentinel of the list. The login has a time of its own: a share of the round's is
 * for an answer of a sentinel. */
static void sentinels_connect(struct hli_sentinels *sentinels)
{
    sentinels->state = SENTINELS_LOGIN;
    sentinels->login_began = hli_now();
    sentinels_set_timer(sentinels, hli_after_ms(sentinels->login_began,
                                                sentinels->inquiry.settings->connect_timeout_ms));
    hli_inquiry_begin(&sentinels->inquiry, hli_sentinel_list_current(&sentinels->list));
}

static void sentinels_begin_round(struct hli_sentinels *sentinels)
{
    sentinels->left = hli_sentinel_list_count(&sentinels->list) - 1;
    sentinels->round_ends =
        hli_after_ms(hli_now(), sentinels->inquiry.settings->connect_timeout_ms);
    sentinels_forget(&sentinels->stale);
}

/* This answer counts from now on. */
static void sentinels_accept(struct hli_sentinels *sentinels, struct sentinels_answer *answer)
{
    char was[HLI_WHERE_SIZE] = "", is[HLI_WHERE_SIZE];
    const struct hli_address *known = &sentinels->known.master;

    bool is_other = known->host && !hli_address_is(known, answer->master.host, answer->master.port);
    if (is_other)
        hli_address_where(known, was);
    sentinels_take(&sentinels->known, answer);
    hli_address_where(known, is);
    if (is_other)
        sentinels_log(sentinels, HL_LOG_WARN,
                      "sentinel %s names another master of '%s': %s; it was %s",
                      sentinels->known.who, sentinels->inquiry.url->service, is, was);
    snprintf(sentinels->why, sizeof(sentinels->why), "sentinel %s names it", sentinels->known.who);
    if (sentinels->is_blind && !sentinels->is_wanted)
        sentinels_log(sentinels, HL_LOG_WARN, "sentinel %s of '%s' answers again",
                      sentinels->known.who, sentinels->inquiry.url->service);
    sentinels->is_blind = false;
    if (sentinels->is_wanted) {
        sentinels->is_wanted = false;
        sentinels->is_doubted = true;
        sentinels->events.located(known, NULL, sentinels->events.arg);
    } else if (is_other) {
        sentinels->is_doubted = false; /* nobody has tried this one */
        sentinels->events.moved(sentinels->why, sentinels->events.arg);
    }
}

/* Another sentinel is the first one of the next round, and has the most time then. */
static void sentinels_give_up(struct hli_sentinels *sentinels)
{
    hli_sentinel_list_next(&sentinels->list);
    if (sentinels->is_wanted) {
        sentinels->is_wanted = sentinels->is_doubted = false;
        sentinels->events.located(NULL, &sentinels->err, sentinels->events.arg);
    } else if (!sentinels->is_blind) {
        sentinels_log(sentinels, HL_LOG_WARN,
                      "no sentinel of '%s' is of use, so a failover may go unnoticed: %s",
                      sentinels->inquiry.url->service, sentinels->err.text);
    }
    sentinels->is_blind = true;
}

static bool sentinels_names_known(const struct hli_sentinels *sentinels,
                                  const struct sentinels_answer *answer)
{
    const struct hli_address *master = &answer->master;

    return master->host && hli_address_is(&sentinels->known.master, master->host, master->port);
}

/* All sentinels of the round were asked. If none has a new epoch, and the newest of the old ones
 * names the master that is known, all may have been set up anew: their epochs count from now on. */
static void sentinels_end_round(struct hli_sentinels *sentinels)
{
    const struct sentinels_answer *stale = &sentinels->stale;
    bool counts =
        stale->master.host && (sentinels->is_wanted || sentinels_names_known(sentinels, stale));
    int64_t pause_ms = counts ? SENTINELS_PAUSE_MS : SENTINELS_POLL_MS;

    sentinels_set_timer(sentinels, hli_after_ms(hli_now(), pause_ms));
    if (counts)
        sentinels_accept(sentinels, &sentinels->stale);
    else
        sentinels_give_up(sentinels);
}

/* This sentinel is of no use: err says why. */
static void sentinels_next(struct hli_sentinels *sentinels)
{
    sentinels_log(sentinels, HL_LOG_INFO, "%s", sentinels->err.text);
    sentinels_close(sentinels);
    hli_sentinel_list_next(&sentinels->list);
    if (sentinels->left == 0 || hli_now() >= sentinels->round_ends) {
        sentinels_end_round(sentinels);
        return;
    }
    sentinels->left--;
    sentinels_connect(sentinels);
}

static bool sentinels_is_stale(const struct hli_sentinels *sentinels)
{
    return sentinels->heard.epoch >= 0 && sentinels->heard.epoch < sentinels->known.epoch;
}

/* The sentinel has told all. */
static void sentinels_judge(struct hli_sentinels *sentinels)
{
    struct sentinels_answer *heard = &sentinels->heard, *stale = &sentinels->stale;

    if (sentinels->err.code < 0) {
        sentinels_next(sentinels);
    } else if (sentinels_is_stale(sentinels)) {
        if (!stale->master.host || heard->epoch > stale->epoch)
            sentinels_take(stale, heard);
        sentinels_fail(sentinels, HL_ESERVER, "it has not heard of the last failover yet");
    } else {
        sentinels->state = SENTINELS_WATCHING;
        hli_inquiry_forget_login(&sentinels->inquiry);
        sentinels_set_timer(sentinels, hli_earlier(hli_after_ms(hli_now(), SENTINELS_POLL_MS),
                                                   sentinels->login_ends));
        sentinels_accept(sentinels, heard);
    }
}

static void sentinels_note(struct hli_sentinels *sentinels, int code, const char *text)
{
    if (sentinels->err.code == 0)
        hli_fail(&sentinels->err, code, "sentinel %s: %s", sentinels->inquiry.where, text);
}

static void sentinels_on_auth(struct hli_inquiry *inquiry, const struct hli_answer *answer)
{
    struct hli_sentinels *sentinels = inquiry->arg;
    char text[96];

    if (sentinels->state != SENTINELS_ASKING)
        return;
    sentinels->has_answered = true;
    if (answer->verdict == HLI_REPLIED)
        return;
    snprintf(text, sizeof(text), "it refused sentinel_username or sentinel_password (%.*s)",
             (int)strcspn(answer->text, " "), answer->text);
    sentinels_note(sentinels, HL_EDENIED, text);
}

/* A refusal (by ACL) leaves the epoch unknown. */
static void sentinels_on_epoch(struct hli_sentinels *sentinels, const struct hli_answer *answer)
{
    if (answer->verdict == HLI_REPLIED)
        hli_reply_integer(hli_sentinel_field(answer->reply, "config-epoch"),
                          &sentinels->heard.epoch);
}

static void sentinels_note_master(struct hli_sentinels *sentinels, const char *host, uint16_t port)
{
    hl_error err;
    int rc =
        hli_address_map(sentinels->inquiry.settings, host, port, &sentinels->heard.master, &err);

    if (rc < 0)
        sentinels_note(sentinels, rc, rc == HL_EPROTO ? "its answer is no address" : err.text);
}

static void sentinels_on_address(struct hli_sentinels *sentinels, const struct hli_answer *answer)
{
    const struct hli_reply *reply = answer->reply, *host = hli_reply_text_at(reply, 0);
    int64_t port = 0;

    if (answer->verdict == HLI_FAILED && hli_answer_is(answer, "NOAUTH")) {
        sentinels_note(sentinels, HL_EDENIED,
                       "it wants a password: give sentinel_password in the options");
    } else if (answer->verdict != HLI_REPLIED) {
        sentinels_note(sentinels, answer->code, answer->text);
    } else if (reply->kind == HLI_REPLY_NIL) {
        char text[160];
        snprintf(text, sizeof(text), "it knows no master '%s'", sentinels->inquiry.url->service);
        sentinels_note(sentinels, HL_ESERVER, text);
    } else if (!host || !hli_reply_integer_at(reply, 1, &port) || port < 1 || port > UINT16_MAX) {
        sentinels_note(sentinels, HL_EPROTO, "its answer is no address");
    } else {
        sentinels_note_master(sentinels, host->text, (uint16_t)port);
    }
}

static void sentinels_on_peers(struct hli_sentinels *sentinels, const struct hli_answer *answer)
{
    hl_error unmapped = HL_ERROR_INIT;

    if (answer->verdict != HLI_REPLIED || sentinels->err.code < 0 || sentinels_is_stale(sentinels))
        return;
    hli_sentinel_list_learn(&sentinels->list, answer->reply, &unmapped);
    if (unmapped.code < 0 && strcmp(unmapped.text, sentinels->unmapped.text) != 0)
        sentinels_log(sentinels, HL_LOG_WARN, "sentinel %s names another sentinel: %s",
                      sentinels->inquiry.where, unmapped.text);
    sentinels->unmapped = unmapped;
}

/* The last answer. By an ACL the sentinel may refuse to send messages: then it is only asked. */
static void sentinels_on_switch(struct hli_sentinels *sentinels, const struct hli_answer *answer)
{
    (void)answer;
    sentinels_judge(sentinels);
}

static void (*const sentinels_read[SENTINELS_WORDS])(struct hli_sentinels *sentinels,
                                                     const struct hli_answer *answer) = {
    [SENTINELS_ADDRESS] = sentinels_on_address,
    [SENTINELS_EPOCH] = sentinels_on_epoch,
    [SENTINELS_PEERS] = sentinels_on_peers,
    [SENTINELS_SWITCH] = sentinels_on_switch,
};

static void sentinels_word_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct sentinels_word *word = HLI_OF(op, struct sentinels_word, op);
    struct hli_sentinels *sentinels = word->sentinels;
    size_t index = (size_t)(word - sentinels->word);

    if (answer->verdict == HLI_UNKNOWN || sentinels->state != SENTINELS_ASKING)
        return;
    sentinels->has_answered = true;
    if (sentinels_read[index])
        sentinels_read[index](sentinels, answer);
}

static bool sentinels_begins_with_name(const struct hli_sentinels *sentinels, const char *text)
{
    size_t length = strlen(sentinels->inquiry.url->service);

    return strncmp(text, sentinels->inquiry.url->service, length) == 0 && text[length] == ' ';
}

/* "mymaster 127.0.0.1 7001 127.0.0.1 7002"; "slave 127.0.0.1:7002 127.0.0.1 7002 @ mymaster
 * 127.0.0.1 7001". The message only makes the client ask, from outside this call. */
static void sentinels_on_message(struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_sentinels *sentinels = conn->arg;
    const struct hli_reply *text = hli_reply_text_at(reply, 2);
    const char *at = text ? strstr(text->text, " @ ") : NULL;

    if (sentinels->state != SENTINELS_WATCHING || !text)
        return;
    if (sentinels_begins_with_name(sentinels, text->text) ||
        (at && sentinels_begins_with_name(sentinels, at + strlen(" @ "))))
        sentinels_set_timer(sentinels, hli_after_ms(sentinels->asked_at, SENTINELS_PAUSE_MS));
}

static void sentinels_on_closed(struct hli_conn *conn, const hl_error *err)
{
    struct hli_sentinels *sentinels = conn->arg;
    bool may_meet_tls = !sentinels->has_answered && !sentinels->inquiry.url->has_tls;
    char text[sizeof(err->text)];

    if (sentinels->state == SENTINELS_IDLE)
        return; /* sentinels_close() */
    if (sentinels->state == SENTINELS_WATCHING) {
        sentinels_begin_round(sentinels);
        sentinels->left++; /* this one too, last: it may only have been started anew */
    }
    snprintf(text, sizeof(text), "%s%s", err->text,
             may_meet_tls ? " (if it speaks TLS: rediss-sentinel://)" : "");
    sentinels_note(sentinels, err->code, text);
    sentinels_set_timer(sentinels, hli_now()); /* the next one, from outside this close */
    sentinels->state = SENTINELS_DIALLING;
}

static const struct hli_inquiry_events sentinels_inquiry_events = {
    .fetched = sentinels_on_login,
    .opened = sentinels_on_opened,
    .authed = sentinels_on_auth,
    .conn = {.message = sentinels_on_message, .closed = sentinels_on_closed},
};

/* A login that ends is renewed by a new connection: nothing waits for this one. */
static void sentinels_look_again(struct hli_sentinels *sentinels)
{
    sentinels_begin_round(sentinels);
    if (hli_now() < sentinels->login_ends) {
        sentinels_begin_asking(sentinels, false);
        return;
    }
    sentinels_close(sentinels);
    sentinels_connect(sentinels);
}

/* No other sentinel is asked: its login would be asked of the same callback. */
static void sentinels_give_up_login(struct hli_sentinels *sentinels)
{
    char text[96];

    snprintf(text, sizeof(text), "no answer of the credentials callback within %lld ms",
             (long long)sentinels->inquiry.settings->connect_timeout_ms);
    sentinels->left = 0;
    sentinels_fail(sentinels, HL_ECONN, text);
}

static void sentinels_on_timer(void *arg)
{
    struct hli_sentinels *sentinels = arg;
    char text[96];

    switch (sentinels->state) {
    case SENTINELS_IDLE:
        sentinels_begin_round(sentinels);
        sentinels_connect(sentinels);
        break;
    case SENTINELS_WATCHING:
        sentinels_look_again(sentinels);
        break;
    case SENTINELS_LOGIN:
        sentinels_give_up_login(sentinels);
        break;
    case SENTINELS_DIALLING:
    case SENTINELS_ASKING:
        snprintf(text, sizeof(text), "no answer%s", hli_dial_awaits(sentinels->inquiry.dial));
        sentinels_note(sentinels, HL_ECONN, text);
        sentinels_next(sentinels);
        break;
    }
}

void hli_sentinels_locate(struct hli_sentinels *sentinels)
{
    bool is_doubted = sentinels->is_doubted;

    sentinels->is_wanted = true;
    if (sentinels->state != SENTINELS_IDLE && sentinels->state != SENTINELS_WATCHING)
        return;
    sentinels->err = (hl_error)HL_ERROR_INIT;
    sentinels_begin_round(sentinels);
    if (sentinels->state == SENTINELS_WATCHING && !is_doubted) {
        sentinels_begin_asking(sentinels, false);
        return;
    }
    sentinels_close(sentinels);
    if (is_doubted)
        hli_sentinel_list_next(&sentinels->list);
    sentinels_connect(sentinels);
}

void hli_sentinels_confirm(struct hli_sentinels *sentinels)
{
    sentinels->is_doubted = false;
}

bool hli_sentinels_are_doubted(const struct hli_sentinels *sentinels)
{
    return sentinels->is_doubted;
}

bool hli_sentinels_are_blind(const struct hli_sentinels *sentinels)
{
    return sentinels->is_blind;
}

size_t hli_sentinels_count(const struct hli_sentinels *sentinels)
{
    return hli_sentinel_list_count(&sentinels->list);
}

const char *hli_sentinels_why(const struct hli_sentinels *sentinels)
{
    return sentinels->why;
}

bool hli_sentinels_look(const struct hli_sentinels *sentinels, struct hli_node_view *ret_view)
{
    if (sentinels->state != SENTINELS_WATCHING && sentinels->state != SENTINELS_ASKING)
        return false;
    *ret_view = (struct hli_node_view){
        .role = HL_NODE_SENTINEL, .up_since = sentinels->open_since, .lanes = 1};
    memcpy(ret_view->where, sentinels->inquiry.where, sizeof(ret_view->where));
    return true;
}

struct hli_sentinels *hli_sentinels_new(const struct hli_sentinels_setup *setup)
{
    struct hli_sentinels *sentinels = calloc(1, sizeof(*sentinels));

    if (!sentinels)
        return NULL;
    const struct hli_inquiry_setup inquiry = {.loop = setup->loop,
                                              .settings = setup->settings,
                                              .url = setup->url,
                                              .logins = setup->logins,
                                              .purpose = HL_CREDENTIALS_SENTINEL,
                                              .events = &sentinels_inquiry_events,
                                              .arg = sentinels};
    hli_inquiry_init(&sentinels->inquiry, &inquiry);
    sentinels->events = setup->events;
    sentinels->list.url = setup->url;
    sentinels->list.settings = setup->settings;
    sentinels->heard.epoch = sentinels->stale.epoch = sentinels->known.epoch = -1;
    sentinels->timer = (struct hli_timer){.run = sentinels_on_timer, .arg = sentinels};
    for (int i = 0; i < SENTINELS_WORDS; i++) {
        sentinels->word[i].sentinels = sentinels;
        sentinels->word[i].op.done = sentinels_word_done;
    }
    sentinels->word[SENTINELS_UNSUBSCRIBE].op.more_replies = 1;
    return sentinels;
}

void hli_sentinels_free(struct hli_sentinels *sentinels)
{
    if (!sentinels)
        return;
    for (int i = 0; i < SENTINELS_WORDS; i++)
        hli_op_wipe(&sentinels->word[i].op);
    hli_inquiry_deinit(&sentinels->inquiry);
    hli_sentinel_list_deinit(&sentinels->list);
    sentinels_forget(&sentinels->heard);
    sentinels_forget(&sentinels->stale);
    sentinels_forget(&sentinels->known);
    free(sentinels);
}

void hli_sentinels_stop(struct hli_sentinels *sentinels)
{
    sentinels->is_wanted = false;
    sentinels_close(sentinels);
    hli_timer_clear(sentinels->inquiry.loop, &sentinels->timer);
}

void hli_sentinels_abandon(struct hli_sentinels *sentinels)
{
    hli_inquiry_abandon(&sentinels->inquiry);
}
