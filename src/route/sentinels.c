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
#include "route/sentinel.h"

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

struct hli_sentinels {
    struct hli_sentinels_events events; /* immutable */

    enum sentinels_state state; /* loop thread, as all below */
    struct hli_sentinel_list list;
    struct hli_sentinel sentinel; /* the one that is asked or watched, and since when it is open */
    hli_ns open_since;
    bool is_wanted;  /* `located` is still to be called */
    bool is_doubted; /* the server that was named last is not confirmed */
    bool is_blind;   /* the last round was in vain */
    hli_ns round_ends;
    hli_ns asked_at;                       /* the last time */
    size_t left;                           /* sentinels that the round has not asked */
    struct hli_sentinel_word stale, known; /* the newest that is too old; the one that counts */
    struct hli_sentinel_word strange;      /* the newest of strangers whom the URL names */
    bool has_met_kin;                      /* in this round: a sentinel that is no stranger */
    hli_ns lost_since;                     /* no round has; 0: the last one did */
    char why[HLI_WHERE_SIZE + 32];         /* who said it */
    hl_error unmapped;                     /* what was said last of an address of no use */
    hl_error estranged;                    /* what was said last of a stranger */
    hli_ns login_began;                    /* LOGIN: when; the round lasts so much longer */
    /* LOGIN: give up; DIALLING, ASKING: to the next sentinel; WATCHING: ask again; IDLE: a new
     * round. */
    struct hli_timer timer;
};

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

static struct hli_sentinels *sentinels_of(struct hli_sentinel *sentinel)
{
    return HLI_OF(sentinel, struct hli_sentinels, sentinel);
}

static int64_t sentinels_timeout_ms(const struct hli_sentinels *sentinels)
{
    return sentinels->sentinel.inquiry.settings->connect_timeout_ms;
}

static void sentinels_set_timer(struct hli_sentinels *sentinels, hli_ns at)
{
    hli_timer_set(sentinels->sentinel.inquiry.loop, &sentinels->timer, at);
}

/* Closes without a word to anybody: the inquiry's conn.closed sees the state. */
static void sentinels_close(struct hli_sentinels *sentinels)
{
    sentinels->state = SENTINELS_IDLE;
    hli_inquiry_close(&sentinels->sentinel.inquiry);
}

static void sentinels_fail(struct hli_sentinels *sentinels, int code, const char *text)
{
    hli_fail(&sentinels->sentinel.err, code, "sentinel %s: %s", sentinels->sentinel.inquiry.where,
             text);
    sentinels_next(sentinels);
}

/* As above, with a warning, unless it is the one that was told last. */
static void sentinels_fail_loudly(struct hli_sentinels *sentinels, const char *text)
{
    hl_error err;

    hli_fail(&err, HL_ESERVER, "sentinel %s: %s", sentinels->sentinel.inquiry.where, text);
    if (strcmp(sentinels->estranged.text, err.text) != 0)
        sentinels_log(sentinels, HL_LOG_WARN, "%s", err.text);
    sentinels->estranged = err;
    sentinels_fail(sentinels, HL_ESERVER, text);
}

/* The time for this sentinel, when others are left. */
static void sentinels_set_share(struct hli_sentinels *sentinels)
{
    hli_ns now = hli_now(), left = hli_later(sentinels->round_ends - now, 0);
    bool is_first = sentinels->left + 1 == hli_sentinel_list_count(&sentinels->list);

    sentinels_set_timer(sentinels, now + hli_inquiry_share(left, sentinels->left, is_first));
}

/* Asks the sentinel that the connection leads to. */
static void sentinels_begin_asking(struct hli_sentinels *sentinels, bool is_new)
{
    struct hli_sentinel *sentinel = &sentinels->sentinel;

    sentinels->state = SENTINELS_ASKING;
    sentinels->asked_at = hli_now();
    sentinels_set_share(sentinels);
    bool is_asked = is_new ? hli_sentinel_greet(sentinel, &sentinels->known)
                           : hli_sentinel_ask_again(sentinel, &sentinels->known);
    if (!is_asked && sentinels->state == SENTINELS_ASKING)
        sentinels_fail(sentinels, HL_ENOMEM, "out of memory");
}

static void sentinels_on_opened(struct hli_inquiry *inquiry, const hl_error *err)
{
    struct hli_sentinels *sentinels = sentinels_of(inquiry->arg);

    sentinels->open_since = hli_now();
    if (err)
        sentinels_fail(sentinels, err->code, err->text);
    else
        sentinels_begin_asking(sentinels, true);
}

static void sentinels_on_login(struct hli_inquiry *inquiry, const hl_error *err)
{
    struct hli_sentinels *sentinels = sentinels_of(inquiry->arg);

    if (sentinels->state != SENTINELS_LOGIN)
        return;
    sentinels->round_ends += hli_now() - sentinels->login_began;
    if (err) {
        sentinels_fail(sentinels, err->code, err->text);
        return;
    }
    sentinels->state = SENTINELS_DIALLING;
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
    sentinels_set_timer(sentinels,
                        hli_after_ms(sentinels->login_began, sentinels_timeout_ms(sentinels)));
    hli_sentinel_begin(&sentinels->sentinel);
}

static void sentinels_begin_round(struct hli_sentinels *sentinels)
{
    sentinels->left = hli_sentinel_list_count(&sentinels->list) - 1;
    sentinels->round_ends = hli_after_ms(hli_now(), sentinels_timeout_ms(sentinels));
    hli_sentinel_word_deinit(&sentinels->stale);
    hli_sentinel_word_deinit(&sentinels->strange);
    sentinels->has_met_kin = false;
}

/* This answer counts from now on. */
static void sentinels_accept(struct hli_sentinels *sentinels, struct hli_sentinel_word *answer)
{
    char was[HLI_WHERE_SIZE] = "", is[HLI_WHERE_SIZE];
    const struct hli_address *known = &sentinels->known.master;

    bool is_other = known->host && !hli_address_is(known, answer->master.host, answer->master.port);
    if (is_other)
        hli_address_where(known, was);
    else if (answer->epoch < 0) /* by an ACL it may not say */
        answer->epoch = sentinels->known.epoch;
    hli_sentinel_word_move(&sentinels->known, answer);
    hli_address_where(known, is);
    if (is_other)
        sentinels_log(sentinels, HL_LOG_WARN,
                      "sentinel %s names another master of '%s': %s; it was %s",
                      sentinels->known.who, sentinels->sentinel.inquiry.url->service, is, was);
    snprintf(sentinels->why, sizeof(sentinels->why), "sentinel %s names it", sentinels->known.who);
    if (sentinels->is_blind && !sentinels->is_wanted)
        sentinels_log(sentinels, HL_LOG_WARN, "sentinel %s of '%s' answers again",
                      sentinels->known.who, sentinels->sentinel.inquiry.url->service);
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
        sentinels->events.located(NULL, &sentinels->sentinel.err, sentinels->events.arg);
    } else if (!sentinels->is_blind) {
        sentinels_log(sentinels, HL_LOG_WARN,
                      "no sentinel of '%s' is of use, so a failover may go unnoticed: %s",
                      sentinels->sentinel.inquiry.url->service, sentinels->sentinel.err.text);
    }
    sentinels->is_blind = true;
}

static bool sentinels_names_known(const struct hli_sentinels *sentinels,
                                  const struct hli_sentinel_word *answer)
{
    const struct hli_address *master = &answer->master;

    return master->host && hli_address_is(&sentinels->known.master, master->host, master->port);
}

/* Strangers count where there is no master, after a while without any sentinel that was met: all
 * may have been set up anew. NULL: none counts. */
static struct hli_sentinel_word *sentinels_find_strange(struct hli_sentinels *sentinels)
{
    hli_ns now = hli_now();

    if (sentinels->has_met_kin)
        sentinels->lost_since = 0;
    else if (sentinels->lost_since == 0)
        sentinels->lost_since = now;
    bool counts = sentinels->strange.master.host && sentinels->is_wanted &&
                  !sentinels->has_met_kin &&
                  hli_inquiry_believes_strangers(now - sentinels->lost_since);
    return counts ? &sentinels->strange : NULL;
}

/* All sentinels of the round were asked. If none has a new epoch, and the newest of the old ones
 * names the master that is known, all may have been set up anew: their epochs count from now on. */
static void sentinels_end_round(struct hli_sentinels *sentinels)
{
    const struct hli_sentinel_word *stale = &sentinels->stale;
    bool is_stale =
        stale->master.host && (sentinels->is_wanted || sentinels_names_known(sentinels, stale));
    struct hli_sentinel_word *counts =
        is_stale ? &sentinels->stale : sentinels_find_strange(sentinels);

    sentinels_set_timer(sentinels,
                        hli_after_ms(hli_now(), counts ? SENTINELS_PAUSE_MS : SENTINELS_POLL_MS));
    if (counts)
        sentinels_accept(sentinels, counts);
    else
        sentinels_give_up(sentinels);
}

/* This sentinel is of no use: err says why. */
static void sentinels_next(struct hli_sentinels *sentinels)
{
    sentinels_log(sentinels, HL_LOG_INFO, "%s", sentinels->sentinel.err.text);
    sentinels_close(sentinels);
    hli_sentinel_list_next(&sentinels->list);
    if (sentinels->left == 0 || hli_now() >= sentinels->round_ends) {
        sentinels_end_round(sentinels);
        return;
    }
    sentinels->left--;
    sentinels_connect(sentinels);
}

/* What is wrong with an address that it names is told once. */
static void sentinels_tell_unmapped(struct hli_sentinels *sentinels)
{
    const struct hli_sentinel *sentinel = &sentinels->sentinel;

    if (sentinel->unmapped.code < 0 &&
        strcmp(sentinel->unmapped.text, sentinels->unmapped.text) != 0)
        sentinels_log(sentinels, HL_LOG_WARN, "sentinel %s names another sentinel: %s",
                      sentinel->inquiry.where, sentinel->unmapped.text);
    sentinels->unmapped = sentinel->unmapped;
}

static void sentinels_keep(struct hli_sentinel_word *kept, struct hli_sentinel_word *said)
{
    if (!kept->master.host || said->epoch > kept->epoch)
        hli_sentinel_word_move(kept, said);
}

/* The addresses of the URL are the program's word; one that sentinels told is a stranger's now. */
static void sentinels_meet_stranger(struct hli_sentinels *sentinels)
{
    char is[HLI_WHERE_SIZE], text[HLI_WHERE_SIZE + 128];

    hli_address_where(&sentinels->sentinel.said.master, is);
    snprintf(text, sizeof(text),
             "it names another master, %s, and knows none of the sentinels that are known", is);
    if (hli_sentinel_list_is_given(&sentinels->list))
        sentinels_keep(&sentinels->strange, &sentinels->sentinel.said);
    sentinels_fail_loudly(sentinels, text);
}

static void sentinels_on_told(struct hli_sentinel *sentinel)
{
    struct hli_sentinels *sentinels = sentinels_of(sentinel);

    sentinels_tell_unmapped(sentinels);
    if (sentinel->err.code < 0) {
        sentinels_next(sentinels);
        return;
    }
    if (hli_sentinel_is_strange(sentinel)) {
        sentinels_meet_stranger(sentinels);
        return;
    }
    sentinels->has_met_kin = true;
    sentinels->lost_since = 0;
    if (hli_sentinel_is_stale(sentinel)) {
        sentinels_keep(&sentinels->stale, &sentinel->said);
        sentinels_fail(sentinels, HL_ESERVER, "it has not heard of the last failover yet");
    } else {
        sentinels->state = SENTINELS_WATCHING;
        hli_inquiry_forget_login(&sentinel->inquiry);
        sentinels_set_timer(sentinels, hli_earlier(hli_after_ms(hli_now(), SENTINELS_POLL_MS),
                                                   sentinel->login_ends));
        sentinels_accept(sentinels, &sentinel->said);
    }
}

/* The message only makes the client ask, from outside this call. */
static void sentinels_on_moved(struct hli_sentinel *sentinel)
{
    struct hli_sentinels *sentinels = sentinels_of(sentinel);

    if (sentinels->state == SENTINELS_WATCHING)
        sentinels_set_timer(sentinels, hli_after_ms(sentinels->asked_at, SENTINELS_PAUSE_MS));
}

static void sentinels_on_closed(struct hli_conn *conn, const hl_error *err)
{
    struct hli_sentinels *sentinels = sentinels_of(conn->arg);
    bool may_meet_tls =
        !sentinels->sentinel.has_answered && !sentinels->sentinel.inquiry.url->has_tls;
    char text[sizeof(err->text)];

    if (sentinels->state == SENTINELS_IDLE)
        return; /* sentinels_close() */
    if (sentinels->state == SENTINELS_WATCHING) {
        sentinels_begin_round(sentinels);
        sentinels->left++; /* this one too, last: it may only have been started anew */
    }
    snprintf(text, sizeof(text), "%s%s", err->text,
             may_meet_tls ? " (if it speaks TLS: rediss-sentinel://)" : "");
    hli_sentinel_blame(&sentinels->sentinel, err->code, text);
    sentinels_set_timer(sentinels, hli_now()); /* the next one, from outside this close */
    sentinels->state = SENTINELS_DIALLING;
}

static const struct hli_inquiry_events sentinels_inquiry_events = {
    .fetched = sentinels_on_login,
    .opened = sentinels_on_opened,
    .authed = hli_sentinel_on_auth,
    .conn = {.message = hli_sentinel_on_message, .closed = sentinels_on_closed},
};

/* A login that ends is renewed by a new connection: nothing waits for this one. */
static void sentinels_look_again(struct hli_sentinels *sentinels)
{
    sentinels_begin_round(sentinels);
    if (hli_now() < sentinels->sentinel.login_ends) {
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
             (long long)sentinels_timeout_ms(sentinels));
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
        snprintf(text, sizeof(text), "no answer%s",
                 hli_dial_awaits(sentinels->sentinel.inquiry.dial));
        hli_sentinel_blame(&sentinels->sentinel, HL_ECONN, text);
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

bool hli_sentinels_met_another(const struct hli_sentinels *sentinels,
                               const struct hli_link_met *server, hl_error *ret_err)
{
    const struct hli_sentinel_word *known = &sentinels->known;
    bool is_another = hli_sentinel_met_another(known, server);

    if (is_another)
        hli_fail(ret_err, HL_ECONN,
                 "it is another server (run id %.8s) than the one that sentinel %s watches there "
                 "(%.8s)",
                 server->run_id, known->who, known->run.text);
    return is_another;
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
    memcpy(ret_view->where, sentinels->sentinel.inquiry.where, sizeof(ret_view->where));
    return true;
}

struct hli_sentinels *hli_sentinels_new(const struct hli_sentinels_setup *setup)
{
    struct hli_sentinels *sentinels = calloc(1, sizeof(*sentinels));

    if (!sentinels)
        return NULL;
    const struct hli_inquiry_setup inquiry = {.dialler = setup->dialler,
                                              .settings = setup->settings,
                                              .url = setup->url,
                                              .logins = setup->logins,
                                              .purpose = HL_CREDENTIALS_SENTINEL,
                                              .events = &sentinels_inquiry_events};
    hli_sentinel_init(&sentinels->sentinel, &inquiry);
    sentinels->sentinel.list = &sentinels->list;
    sentinels->sentinel.told = sentinels_on_told;
    sentinels->sentinel.moved = sentinels_on_moved;
    sentinels->events = setup->events;
    sentinels->list.url = setup->url;
    sentinels->list.settings = setup->settings;
    hli_sentinel_word_init(&sentinels->stale);
    hli_sentinel_word_init(&sentinels->strange);
    hli_sentinel_word_init(&sentinels->known);
    sentinels->timer = (struct hli_timer){.run = sentinels_on_timer, .arg = sentinels};
    return sentinels;
}

void hli_sentinels_free(struct hli_sentinels *sentinels)
{
    if (!sentinels)
        return;
    hli_sentinel_deinit(&sentinels->sentinel);
    hli_sentinel_list_deinit(&sentinels->list);
    hli_sentinel_word_deinit(&sentinels->stale);
    hli_sentinel_word_deinit(&sentinels->strange);
    hli_sentinel_word_deinit(&sentinels->known);
    free(sentinels);
}

void hli_sentinels_stop(struct hli_sentinels *sentinels)
{
    sentinels->is_wanted = false;
    sentinels_close(sentinels);
    hli_timer_clear(sentinels->sentinel.inquiry.loop, &sentinels->timer);
}

void hli_sentinels_abandon(struct hli_sentinels *sentinels)
{
    hli_inquiry_abandon(&sentinels->sentinel.inquiry);
}
