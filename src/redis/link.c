/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The link's states:
 *
 *     WAITING --timer--> DIALLING --both connected--> GREETING --both greeted--> UP
 *        ^                   |                            |                      |
 *        +---- link_settle --+----------------------------+----------------------+   any of them: a
 * problem
 *
 * Whatever goes wrong ends in link_break(), which closes both connections, and then link_settle(),
 * which runs as a task of its own: by then every request that was in flight has ended, and the
 * listener sees a quiet link.
 */
#include "redis/link.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "redis/backoff.h"
#include "redis/dial.h"
#include "redis/greeting.h"
#include "redis/inbox.h"
#include "redis/lead.h"
#include "redis/loader.h"
#include "redis/pulse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINK_COMMANDS, LINK_PUBSUB, LINK_CONNS };
enum { LINK_PING_MS = 5000 };

enum link_state { LINK_STOPPED, LINK_WAITING, LINK_DIALLING, LINK_GREETING, LINK_UP, LINK_BROKEN };

struct hli_link {
    struct hli_loop *loop; /* immutable after new */
    struct hli_link_settings settings;
    struct hli_link_listener listener;
    char where[160];
    struct hli_channel *mailbox;

    atomic_bool is_up;
    atomic_bool has_answered; /* a request, since it came up; for callers that read answers */
    pthread_mutex_t mutex;    /* guards problem */
    hl_error problem;         /* why it is not up; code 0 when it is */

    enum link_state state; /* loop thread, as all below */
    bool was_up;
    struct hli_conn conn[LINK_CONNS];
    struct hli_greeting greeting[LINK_CONNS];
    struct hli_greeting_past past[LINK_CONNS]; /* of those last up: later ones asked nothing */
    unsigned ready;                            /* connections dialled, then greeted */
    struct hli_dial *dial;
    atomic_int dialled; /* its socket; read by a forked child */
    struct hli_pulse pulse[LINK_CONNS];
    struct hli_pubsub pubsub;
    struct hli_loader loader;
    struct hli_backoff backoff;
    struct hli_timer timer; /* WAITING: dial; DIALLING, GREETING: give up; UP: ping */
    struct hli_task start, settle;
};

static void link_dial(struct hli_link *link);
static void link_break(struct hli_link *link, const hl_error *err);
static void link_fail(struct hli_link *link, int code, const char *text);

static void link_set_problem(struct hli_link *link, const hl_error *err)
{
    pthread_mutex_lock(&link->mutex);
    link->problem = *err;
    pthread_mutex_unlock(&link->mutex);
}

int hli_link_problem(struct hli_link *link, hl_error *ret_err)
{
    pthread_mutex_lock(&link->mutex);
    int code = link->problem.code;
    if (code < 0)
        *ret_err = link->problem;
    pthread_mutex_unlock(&link->mutex);
    return code;
}

const char *hli_link_where(const struct hli_link *link)
{
    return link->where;
}

struct hli_pubsub *hli_link_pubsub(struct hli_link *link)
{
    return &link->pubsub;
}

void hli_link_send(struct hli_link *link, struct hli_op *op)
{
    hl_error problem = {HL_ECONN, "not connected yet"};
    struct hli_answer unsent = {.verdict = HLI_UNSENT, .text = problem.text};

    if (atomic_load(&link->is_up) && hli_conn_send_if_ready(&link->conn[LINK_COMMANDS], op))
        return;
    hli_link_problem(link, &problem);
    unsent.code = problem.code;
    op->sent_at = hli_now();
    op->done(op, &unsent);
}

void hli_link_promise(struct hli_link *link)
{
    hli_reader_promise(&link->conn[LINK_COMMANDS].reader);
}

void hli_link_lead(struct hli_link *link, struct hli_gate *gate, hli_ns deadline)
{
    struct hli_conn *conn = &link->conn[LINK_COMMANDS];

    if (hli_reader_redeem(&conn->reader))
        hli_conn_lead(conn, gate, deadline);
}

void hli_link_set_mailbox(struct hli_link *link, struct hli_channel *mailbox)
{
    link->mailbox = mailbox;
}

void hli_link_listen(struct hli_link *link, struct hli_gate *gate, hli_ns deadline)
{
    struct hli_conn *conn = &link->conn[LINK_PUBSUB];

    if (hli_inbox_try_lead(conn))
        hli_conn_lead(conn, gate, deadline);
}

static struct hli_link *link_of(struct hli_conn *conn)
{
    return conn->arg;
}

static bool link_is_mailbox(struct hli_conn *conn, const struct hli_reply *reply)
{
    const struct hli_channel *mailbox = link_of(conn)->mailbox;
    const struct hli_reply *name = hli_reply_text_at(reply, 1);

    return mailbox && name && name->length == mailbox->name.bytes.length &&
           memcmp(name->text, mailbox->name.bytes.data, name->length) == 0;
}

static void link_on_message(struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_link *link = link_of(conn);
    const struct hli_reply *text = hli_reply_text_at(reply, 2);

    if (!link_is_mailbox(conn, reply)) {
        hli_pubsub_message(&link->pubsub, reply);
    } else if (text) {
        const struct hli_message message = {.text = {text->text, text->length}};
        link->mailbox->message(link->mailbox, &message);
    }
}

/* An answer that the script cannot give: answers and requests no longer belong together, so each of
 * those behind it would be taken for another's. */
static void link_lose_step(struct hli_link *link, struct hli_answer *answer)
{
    static const char text[] = "an answer that the script does not give";

    link_fail(link, HL_EPROTO, text);
    *answer = (struct hli_answer){.verdict = HLI_UNKNOWN, .code = HL_EPROTO, .text = text};
}

static void link_on_answered(struct hli_conn *conn, const struct hli_op *op,
                             struct hli_answer *answer)
{
    struct hli_link *link = link_of(conn);

    if (answer->verdict == HLI_REPLIED && op->script >= 0 &&
        !hli_script_may_answer((hli_script_id)op->script, answer->reply))
        link_lose_step(link, answer);
    else
        hli_loader_answered(&link->loader, op, answer);
    /* Only now, for a greeting alone is no success, nor the subscription that follows each: who
     * greets and then fails is not to be stormed. */
    if (link->state == LINK_UP && answer->verdict == HLI_REPLIED &&
        conn == &link->conn[LINK_COMMANDS]) {
        hli_backoff_reset(&link->backoff);
        atomic_store(&link->has_answered, true);
    }
}

/* What a caller may tell that has read it. The first answer of all is the loop's (above); so is
 * whatever doubts the server. */
static bool link_is_plain(struct hli_conn *conn, const struct hli_op *op,
                          const struct hli_answer *answer)
{
    return op->script >= 0 && hli_script_is_plain((hli_script_id)op->script, answer->reply) &&
           atomic_load(&link_of(conn)->has_answered);
}

static void link_on_closed(struct hli_conn *conn, const hl_error *err)
{
    struct hli_link *link = link_of(conn);
    const struct hli_greeting *greeting = &link->greeting[conn - link->conn];

    /* "max number of clients reached" comes as the first answer, and then the server hangs up. */
    if (link->state == LINK_GREETING && greeting->err.code < 0)
        err = &greeting->err;
    else if (link->state == LINK_GREETING && greeting->hint.code < 0)
        err = &greeting->hint;
    link_break(link, err);
}

static const struct hli_conn_events link_conn_events[LINK_CONNS] = {
    [LINK_COMMANDS] = {.answered = link_on_answered,
                       .closed = link_on_closed,
                       .is_plain = link_is_plain},
    [LINK_PUBSUB] = {.message = link_on_message,
                     .is_plain_message = link_is_mailbox,
                     .answered = link_on_answered,
                     .closed = link_on_closed},
};

/* First the reason, in front of it who said it: "127.0.0.1:6379: LOADING Redis is loading the
 * dataset in memory". */
static void link_name_problem(struct hli_link *link, const hl_error *err)
{
    hl_error named = *err;

    if (strncmp(named.text, "connect ", 8) != 0)
        hli_error_wrap(&named, "%s", link->where);
    link_set_problem(link, &named);
}

static void link_break(struct hli_link *link, const hl_error *err)
{
    if (link->state == LINK_BROKEN || link->state == LINK_STOPPED)
        return;
    link->was_up = link->state == LINK_UP;
    link->state = LINK_BROKEN;
    atomic_store(&link->is_up, false);
    link->pubsub.is_up = false;
    link_name_problem(link, err);
    hli_timer_clear(link->loop, &link->timer);
    hli_dial_cancel(link->dial);
    link->dial = NULL;
    for (int i = 0; i < LINK_CONNS; i++) {
        if (link->was_up && link->greeting[i].now.id != 0)
            link->past[i] = link->greeting[i].now;
        hli_conn_close(&link->conn[i], err);
    }
    hli_loop_post(link->loop, &link->settle);
}

static void link_settle(void *arg)
{
    struct hli_link *link = arg;
    hl_error err = HL_ERROR_INIT;

    if (link->state != LINK_BROKEN)
        return;
    hli_pubsub_down(&link->pubsub);
    link->state = LINK_WAITING;
    hli_link_problem(link, &err);
    if (err.code == HL_EDENIED)
        link->backoff.attempts = 32; /* no tight retry against a server that said no */
    hli_timer_set(link->loop, &link->timer,
                  hli_now() + hli_backoff_next(&link->backoff, hli_random_u64()));
    (link->was_up ? link->listener.down : link->listener.failed)(&err, link->listener.arg);
}

static void link_come_up(struct hli_link *link)
{
    static const hl_error none = HL_ERROR_INIT;

    link->state = LINK_UP;
    atomic_store(&link->has_answered, false);
    hli_loader_reset(&link->loader);
    for (int i = 0; i < LINK_CONNS; i++)
        hli_greeting_deinit(&link->greeting[i]);
    link_set_problem(link, &none);
    hli_conn_set_ready(&link->conn[LINK_COMMANDS]);
    atomic_store(&link->is_up, true);
    hli_timer_set(link->loop, &link->timer, hli_after_ms(hli_now(), LINK_PING_MS));
    hli_pubsub_up(&link->pubsub);
    link->listener.up(link->listener.arg);
}

static void link_on_greeted(struct hli_greeting *greeting)
{
    struct hli_link *link = link_of(greeting->conn);

    if (link->state != LINK_GREETING)
        return;
    if (greeting->err.code < 0)
        link_break(link, &greeting->err);
    else if (++link->ready == LINK_CONNS)
        link_come_up(link);
}

static void link_fail(struct hli_link *link, int code, const char *text)
{
    hl_error err;

    hli_fail(&err, code, "%s", text);
    link_break(link, &err);
}

static void link_greet(struct hli_link *link)
{
    link->state = LINK_GREETING;
    link->ready = 0;
    for (int i = 0; i < LINK_CONNS && link->state == LINK_GREETING; i++) {
        const struct hli_greeting_settings settings = {.url = &link->settings.url,
                                                       .client_name = link->settings.client_name,
                                                       .past = &link->past[i]};
        link->greeting[i].done = link_on_greeted;
        if (!hli_greeting_say(&link->greeting[i], &link->conn[i], &settings))
            link_fail(link, HL_ENOMEM, "out of memory while greeting");
    }
}

static void link_on_dialled(int fd, const hl_error *err, void *arg)
{
    struct hli_link *link = arg;

    link->dial = NULL;
    bool is_open = fd >= 0 && hli_conn_open(&link->conn[link->ready], fd) == 0;
    int reason = errno;
    atomic_store(&link->dialled, -1);
    if (fd >= 0 && !is_open)
        close(fd);
    if (fd < 0)
        link_break(link, err);
    else if (!is_open)
        link_fail(link, HL_ENOMEM, strerrordesc_np(reason));
    else if (++link->ready < LINK_CONNS)
        link_dial(link);
    else
        link_greet(link);
}

static void link_dial(struct hli_link *link)
{
    const struct hli_dial_said said = {&link->settings.url, link_on_dialled, link, &link->dialled};

    if (hli_dial_start(link->loop, &said, &link->dial) < 0)
        link_fail(link, HL_ENOMEM, "out of memory while connecting");
}

static void link_begin(struct hli_link *link)
{
    link->state = LINK_DIALLING;
    link->ready = 0;
    hli_timer_set(link->loop, &link->timer,
                  hli_after_ms(hli_now(), link->settings.connect_timeout_ms));
    link_dial(link);
}

static void link_ping(struct hli_link *link)
{
    hli_timer_set(link->loop, &link->timer, hli_after_ms(hli_now(), LINK_PING_MS));
    for (int i = 0; i < LINK_CONNS; i++)
        hli_pulse_beat(&link->pulse[i]);
}

static void link_on_timer(void *arg)
{
    struct hli_link *link = arg;
    char text[sizeof(link->problem.text)];

    if (link->state == LINK_WAITING) {
        link_begin(link);
    } else if (link->state == LINK_UP) {
        link_ping(link);
    } else if (link->state == LINK_DIALLING || link->state == LINK_GREETING) {
        snprintf(text, sizeof(text), "%s%s: no answer%s within %lld ms",
                 link->state == LINK_DIALLING ? "connect " : "", link->where,
                 hli_dial_is_resolving(link->dial) ? " of a name server" : "",
                 (long long)link->settings.connect_timeout_ms);
        link_fail(link, HL_ECONN, text);
    }
}

static void link_on_start(void *arg)
{
    struct hli_link *link = arg;

    if (link->state == LINK_STOPPED)
        link_begin(link);
}

void hli_link_start(struct hli_link *link)
{
    hli_loop_post(link->loop, &link->start);
}

void hli_link_stop(struct hli_link *link)
{
    hl_error err;

    if (link->state == LINK_STOPPED)
        return;
    hli_fail(&err, HL_ECLOSED, "the client is closed");
    link_break(link, &err);
    hli_timer_clear(link->loop, &link->timer);
    link->state = LINK_STOPPED;
    hli_pubsub_down(&link->pubsub);
}

void hli_link_distrust(struct hli_link *link, const char *reason)
{
    hl_error err;

    hli_fail(&err, HL_ESERVER, "%s", reason);
    link_break(link, &err);
}

void hli_link_settings_deinit(struct hli_link_settings *settings)
{
    hli_url_deinit(&settings->url);
    free(settings->client_name);
    settings->client_name = NULL;
}

static int link_init_pulses(struct hli_link *link)
{
    for (int i = 0; i < LINK_CONNS; i++)
        if (hli_pulse_init(&link->pulse[i], &link->conn[i]) < 0)
            return HL_ENOMEM;
    return 0;
}

static void link_init_conns(struct hli_link *link, atomic_uint_fast64_t *commands)
{
    for (int i = 0; i < LINK_CONNS; i++) {
        hli_conn_init(&link->conn[i], link->loop, &link_conn_events[i], link);
        link->conn[i].request_timeout_ms = link->settings.request_timeout_ms;
        link->conn[i].commands = commands;
        link->conn[i].secret = link->settings.url.password;
    }
    link->conn[LINK_COMMANDS].polling.ns = link->settings.busy_poll_us * 1000;
}

int hli_link_new(struct hli_loop *loop, struct hli_link_settings *settings,
                 const struct hli_link_listener *listener, atomic_uint_fast64_t *commands,
                 struct hli_link **ret_link)
{
    struct hli_link *link = calloc(1, sizeof(*link));

    if (!link) {
        hli_link_settings_deinit(settings);
        return HL_ENOMEM;
    }
    link->loop = loop;
    link->settings = *settings;
    link->listener = *listener;
    link->backoff = (struct hli_backoff){.min_ms = settings->backoff_min_ms,
                                         .max_ms = settings->backoff_max_ms};
    link->timer = (struct hli_timer){.run = link_on_timer, .arg = link};
    link->start = (struct hli_task){.run = link_on_start, .arg = link};
    link->settle = (struct hli_task){.run = link_settle, .arg = link};
    pthread_mutex_init(&link->mutex, NULL);
    hli_url_where(&link->settings.url, link->where, sizeof(link->where));
    atomic_init(&link->dialled, -1);
    link_init_conns(link, commands);
    hli_pubsub_init(&link->pubsub, &link->conn[LINK_PUBSUB]);
    hli_loader_init(&link->loader, &link->conn[LINK_COMMANDS]);
    if (link_init_pulses(link) < 0) {
        hli_link_free(link);
        return HL_ENOMEM;
    }
    *ret_link = link;
    return 0;
}

void hli_link_free(struct hli_link *link)
{
    if (!link)
        return;
    for (int i = 0; i < LINK_CONNS; i++) {
        hli_greeting_deinit(&link->greeting[i]);
        hli_pulse_deinit(&link->pulse[i]);
        hli_conn_deinit(&link->conn[i]);
    }
    hli_loader_deinit(&link->loader);
    hli_pubsub_deinit(&link->pubsub);
    hli_link_settings_deinit(&link->settings);
    pthread_mutex_destroy(&link->mutex);
    free(link);
}

void hli_link_abandon(struct hli_link *link)
{
    int dialled = atomic_exchange(&link->dialled, -1);

    for (int i = 0; i < LINK_CONNS; i++)
        hli_conn_abandon(&link->conn[i]);
    if (dialled >= 0)
        close(dialled);
}
