/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The link's states:
 *
 *     WAITING --timer--> DIALLING --both connected--> HANDSHAKE --both handshaken--> UP
 *        ^                   |                            |                          |
 *        +---- link_settle --+----------------------------+--------------------------+  any problem
 *
 * Every problem ends in link_break(), which closes both connections, and then in link_settle(),
 * which the timer runs: when that calls the listener, every request that was in flight has ended.
 */
#include "redis/link.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "redis/backoff.h"
#include "redis/dial.h"
#include "redis/handshake.h"
#include "redis/lead.h"
#include "redis/loader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { LINK_COMMANDS, LINK_PUBSUB, LINK_CONNS };
enum {
    LINK_KEEPALIVE_MS = 5000,
    LINK_FAST_KEEPALIVE_MS = 1000, /* the server may close idle connections soon (`timeout`) */
};

enum link_state { LINK_STOPPED, LINK_WAITING, LINK_DIALLING, LINK_HANDSHAKE, LINK_UP, LINK_BROKEN };

struct hli_link {
    struct hli_loop *loop; /* immutable after new */
    const hl_client_options *settings;
    struct hli_url url;
    struct hli_link_listener listener;
    char where[160];

    hli_mutex mutex;  /* guards problem and has_failed, which the loop thread sets */
    hl_error problem; /* the reason why the link is not up; code 0 when it is up */
    bool has_failed;  /* the last attempt to connect, for that reason */

    enum link_state state; /* loop thread, as all below */
    hli_ns up_since;       /* the last time; 0: never */
    int64_t keepalive_ms;
    struct hli_conn conn[LINK_CONNS];
    struct hli_handshake handshake[LINK_CONNS];
    unsigned ready;              /* connections dialled, then handshaken */
    struct hli_tls_files *files; /* as they were when the last attempt to connect began */
    struct hli_dial *dial;
    struct hli_dial_peer peer; /* of this attempt to connect */
    atomic_int dialled;        /* its socket; read by a forked child */
    struct hli_pubsub pubsub;
    struct hli_loader loader;
    unsigned attempts; /* to connect, since the last success */
    /* BROKEN: settle; WAITING: dial; DIALLING, HANDSHAKE: give up; UP: keepalive. */
    struct hli_timer timer;
};

static void link_dial(struct hli_link *link);

static void link_set_problem(struct hli_link *link, const hl_error *err, bool has_failed)
{
    hli_mutex_lock(&link->mutex);
    link->problem = *err;
    link->has_failed = has_failed;
    hli_mutex_unlock(&link->mutex);
}

/* Puts the server's address in front of the reason: "connect 127.0.0.1:6379: connection refused",
 * "127.0.0.1:6379: LOADING Redis is loading the dataset in memory". */
static void link_name_problem(struct hli_link *link, const hl_error *err, bool has_failed)
{
    bool has_dialled_in_vain = link->state == LINK_DIALLING && !link->dial;
    hl_error named;

    hli_fail(&named, err->code, "%s%s: %s", has_dialled_in_vain ? "connect " : "", link->where,
             err->text);
    link_set_problem(link, &named, has_failed);
}

/* A handshake and a few answers do not reset the backoff: a link that comes up and is lost again
 * and again must not reconnect without a pause. If the link was up only briefly, the server may
 * have closed it because it was idle: then keepalives are faster. */
static void link_note_life(struct hli_link *link)
{
    int64_t lived_ms = (hli_now() - link->up_since) / 1000000;

    if (lived_ms >= LINK_KEEPALIVE_MS || lived_ms >= link->settings->backoff_max_ms)
        link->attempts = 0;
    link->keepalive_ms = lived_ms < LINK_KEEPALIVE_MS ? LINK_FAST_KEEPALIVE_MS : LINK_KEEPALIVE_MS;
}

static void link_break(struct hli_link *link, const hl_error *err)
{
    bool was_up = link->state == LINK_UP;

    if (link->state == LINK_BROKEN || link->state == LINK_STOPPED)
        return;
    if (was_up)
        link_note_life(link);
    link_name_problem(link, err, !was_up);
    link->state = LINK_BROKEN;
    link->pubsub.is_up = false;
    hli_dial_cancel(&link->dial);
    for (int i = 0; i < LINK_CONNS; i++) {
        struct hli_handshake *handshake = &link->handshake[i];
        if (was_up && handshake->now.id != 0) /* else the connection sent no script */
            handshake->past = handshake->now;
        hli_conn_close(&link->conn[i], err);
    }
    hli_timer_set(link->loop, &link->timer, hli_now());
}

static void link_fail(struct hli_link *link, int code, const char *text)
{
    hl_error err;

    hli_fail(&err, code, "%s", text);
    link_break(link, &err);
}

int hli_link_problem(struct hli_link *link, hl_error *ret_err)
{
    hli_mutex_lock(&link->mutex);
    int code = link->problem.code;
    if (code < 0)
        *ret_err = link->problem;
    hli_mutex_unlock(&link->mutex);
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
    if (hli_conn_send(&link->conn[LINK_COMMANDS], op, HLI_CONN_IF_READY))
        return;
    hli_mutex_lock(&link->mutex);
    hl_error problem = link->problem;
    bool has_failed = link->has_failed;
    hli_mutex_unlock(&link->mutex);
    if (problem.code == 0)
        hli_error_set(&problem, HL_ECONN, "not connected yet");
    const struct hli_answer unsent = {.verdict = hli_op_is_wanted(op) ? HLI_UNSENT : HLI_BOUNCED,
                                      .link_has_failed = has_failed,
                                      .code = problem.code,
                                      .text = problem.text};
    op->sent_at = hli_now();
    op->done(op, &unsent);
}

void hli_link_lead_begin(struct hli_link *link)
{
    hli_reader_lead_begin(&link->conn[LINK_COMMANDS].reader);
}

void hli_link_lead(struct hli_link *link, struct hli_gate *gate, hli_ns deadline)
{
    struct hli_conn *conn = &link->conn[LINK_COMMANDS];

    if (hli_reader_lead_end(&conn->reader))
        hli_conn_lead(conn, gate, deadline);
}

void hli_link_set_mailbox(struct hli_link *link, struct hli_channel *mailbox)
{
    link->pubsub.mailbox = mailbox;
}

void hli_link_listen(struct hli_link *link, struct hli_gate *gate, hli_ns deadline)
{
    hli_conn_listen(&link->conn[LINK_PUBSUB], gate, deadline);
}

static struct hli_link *link_of(struct hli_conn *conn)
{
    return conn->arg;
}

static bool link_is_mailbox(struct hli_conn *conn, const struct hli_reply *reply)
{
    return hli_pubsub_is_mailbox(&link_of(conn)->pubsub, reply);
}

static void link_on_message(struct hli_conn *conn, const struct hli_reply *reply)
{
    hli_pubsub_message(&link_of(conn)->pubsub, reply);
}

/* After an answer that its script cannot give, answers and requests are out of step: each later
 * answer would be given to the wrong request. */
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
    else if (hli_answer_is(answer, "READONLY"))
        link_fail(link, HL_ESERVER, "READONLY the server has become a replica");
    else
        hli_loader_answered(&link->loader, op, answer);
}

/* True if a leader may deliver this answer. Answers that cast doubt on the server are left to the
 * loop. */
static bool link_is_plain(const struct hli_op *op, const struct hli_reply *reply)
{
    return op->script >= 0 && hli_script_is_plain((hli_script_id)op->script, reply);
}

/* True if this server has never sent any answer: the port may expect TLS. */
static bool link_may_meet_tls(const struct hli_link *link, const struct hli_handshake *handshake)
{
    return link->url.kind == HLI_URL_TCP && !link->url.has_tls && link->up_since == 0 &&
           handshake->answers == 0;
}

static void link_on_closed(struct hli_conn *conn, const hl_error *err)
{
    struct hli_link *link = link_of(conn);
    const struct hli_handshake *handshake = &link->handshake[conn - link->conn];
    hl_error named = *err;

    /* "max number of clients reached" comes as the first answer, and then the server hangs up. */
    if (link->state == LINK_HANDSHAKE && handshake->err.code < 0)
        named = handshake->err;
    else if (link->state == LINK_HANDSHAKE && link_may_meet_tls(link, handshake))
        hli_fail(&named, err->code, "%s (if it speaks TLS: rediss://)", err->text);
    link_break(link, &named);
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

static void link_settle(struct hli_link *link)
{
    bool was_up = !link->has_failed;
    hl_error err = HL_ERROR_INIT;

    hli_pubsub_down(&link->pubsub);
    link->state = LINK_WAITING;
    hli_link_problem(link, &err);
    if (err.code == HL_EDENIED)
        link->attempts = 32; /* the longest pause: the server denied the login */
    hli_ns pause = hli_backoff_pause(link->settings->backoff_min_ms, link->settings->backoff_max_ms,
                                     link->attempts++, hli_random_u64());
    hli_timer_set(link->loop, &link->timer, hli_now() + pause);
    (was_up ? link->listener.down : link->listener.failed)(&err, link->listener.arg);
}

static void link_come_up(struct hli_link *link)
{
    link->state = LINK_UP;
    link->up_since = hli_now();
    hli_loader_reset(&link->loader);
    for (int i = 0; i < LINK_CONNS; i++)
        hli_handshake_deinit(&link->handshake[i]);
    link_set_problem(link, &(const hl_error)HL_ERROR_INIT, false);
    hli_conn_set_ready(&link->conn[LINK_COMMANDS]);
    hli_timer_set(link->loop, &link->timer, hli_after_ms(link->up_since, link->keepalive_ms));
    hli_pubsub_up(&link->pubsub);
    link->listener.up(link->listener.arg);
}

/* True if the two connections reached different servers, as behind a load balancer: messages
 * published at one server do not reach subscribers of the other. */
static bool link_is_split(const struct hli_link *link)
{
    const char *commands = link->handshake[LINK_COMMANDS].now.run_id;
    const char *pubsub = link->handshake[LINK_PUBSUB].now.run_id;

    return commands[0] && pubsub[0] && strcmp(commands, pubsub) != 0;
}

static void link_on_greeted(struct hli_handshake *handshake)
{
    struct hli_link *link = link_of(handshake->conn);

    if (handshake->err.code < 0)
        link_break(link, &handshake->err);
    else if (link->state != LINK_HANDSHAKE || ++link->ready < LINK_CONNS)
        return;
    else if (link_is_split(link))
        link_fail(link, HL_ECONN,
                  "the two connections lead to two servers (INFO tells two run ids)");
    else
        link_come_up(link);
}

static void link_greet(struct hli_link *link)
{
    link->state = LINK_HANDSHAKE;
    link->ready = 0;
    for (int i = 0; i < LINK_CONNS && link->state == LINK_HANDSHAKE; i++) {
        link->handshake[i].done = link_on_greeted;
        if (!hli_handshake_say(&link->handshake[i], &link->conn[i], &link->url,
                               link->settings->client_name))
            link_fail(link, HL_ENOMEM, "out of memory while greeting");
    }
}

static void link_on_dialled(int fd, struct hli_tls *tls, const hl_error *err, void *arg)
{
    struct hli_link *link = arg;

    link->dial = NULL;
    bool is_open = fd >= 0 && hli_conn_open(&link->conn[link->ready], fd, tls) == 0;
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
    const struct hli_dial_args said = {
        .url = &link->url,
        .files = link->files,
        .peer = &link->peer,
        .deadline = link->timer.node.at,
        .done = link_on_dialled,
        .arg = link,
        .shown = &link->dialled,
    };

    if (hli_dial_start(link->loop, &said, &link->dial) < 0)
        link_fail(link, HL_ENOMEM, "out of memory while connecting");
}

/* Certificates are renewed while a program runs, so each attempt reads them. Errors: HL_ECONN: one
 * may be there again at the next attempt. */
static int link_read_files(struct hli_link *link, hl_error *err)
{
    hl_error reason;

    if (!link->url.has_tls)
        return 0;
    hli_tls_free_files(link->files);
    link->files = NULL;
    if (hli_tls_read_files(link->settings, &link->files, &reason) == 0)
        return 0;
    return hli_fail(err, HL_ECONN, "%s", reason.text);
}

static void link_begin(struct hli_link *link)
{
    hl_error err;

    link->state = LINK_DIALLING;
    link->ready = 0;
    link->peer.length = 0;
    hli_timer_set(link->loop, &link->timer,
                  hli_after_ms(hli_now(), link->settings->connect_timeout_ms));
    if (link_read_files(link, &err) < 0)
        link_break(link, &err);
    else
        link_dial(link);
}

static void link_beat(struct hli_link *link)
{
    hli_timer_set(link->loop, &link->timer, hli_after_ms(hli_now(), link->keepalive_ms));
    hli_pubsub_up(&link->pubsub); /* retries refused subscriptions */
    hli_handshake_beat(&link->handshake[LINK_COMMANDS], link->handshake[LINK_COMMANDS].tells_role);
    hli_handshake_beat(&link->handshake[LINK_PUBSUB], false);
}

static void link_give_up(struct hli_link *link)
{
    hl_error err;

    hli_fail(&err, HL_ECONN, "no answer%s within %lld ms", hli_dial_awaits(link->dial),
             (long long)link->settings->connect_timeout_ms);
    hli_dial_cancel(&link->dial);
    link_break(link, &err);
}

static void link_on_timer(void *arg)
{
    struct hli_link *link = arg;

    switch (link->state) {
    case LINK_BROKEN:
        link_settle(link);
        break;
    case LINK_WAITING:
        link_begin(link);
        break;
    case LINK_DIALLING:
    case LINK_HANDSHAKE:
        link_give_up(link);
        break;
    case LINK_UP:
        link_beat(link);
        break;
    case LINK_STOPPED:
        break;
    }
}

void hli_link_start(struct hli_link *link)
{
    hli_timer_set(link->loop, &link->timer, hli_now());
}

void hli_link_stop(struct hli_link *link)
{
    link_fail(link, HL_ECLOSED, "the client is closed");
    hli_timer_clear(link->loop, &link->timer);
    link->state = LINK_STOPPED;
    hli_pubsub_down(&link->pubsub);
}

void hli_link_drop(struct hli_link *link, const char *reason)
{
    link_fail(link, HL_ESERVER, reason);
}

static void link_init_conns(struct hli_link *link, atomic_uint_fast64_t *commands)
{
    for (int i = 0; i < LINK_CONNS; i++) {
        hli_conn_init(&link->conn[i], link->loop, &link_conn_events[i], link);
        link->conn[i].request_timeout_ms = link->settings->request_timeout_ms;
        link->conn[i].commands = commands;
        link->conn[i].secret = link->url.password;
    }
    link->conn[LINK_COMMANDS].polling.ns = link->settings->busy_poll_us * 1000;
}

struct hli_link *hli_link_new(struct hli_loop *loop, const hl_client_options *settings,
                              const struct hli_url *url, const struct hli_link_listener *listener,
                              atomic_uint_fast64_t *commands)
{
    struct hli_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->loop = loop;
    link->state = LINK_WAITING;
    link->settings = settings;
    link->url = *url;
    link->listener = *listener;
    link->keepalive_ms = LINK_KEEPALIVE_MS;
    link->timer = (struct hli_timer){.run = link_on_timer, .arg = link};
    hli_mutex_init(&link->mutex);
    hli_url_where(&link->url, link->where, sizeof(link->where));
    atomic_init(&link->dialled, -1);
    link_init_conns(link, commands);
    hli_pubsub_init(&link->pubsub, &link->conn[LINK_PUBSUB]);
    hli_loader_init(&link->loader, &link->conn[LINK_COMMANDS]);
    return link;
}

void hli_link_free(struct hli_link *link)
{
    if (!link)
        return;
    for (int i = 0; i < LINK_CONNS; i++) {
        hli_handshake_deinit(&link->handshake[i]);
        hli_conn_deinit(&link->conn[i]);
    }
    hli_loader_deinit(&link->loader);
    hli_pubsub_deinit(&link->pubsub);
    hli_tls_free_files(link->files);
    hli_url_deinit(&link->url);
    hli_mutex_deinit(&link->mutex);
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
