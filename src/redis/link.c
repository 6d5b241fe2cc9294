/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The link's states:
 *
 *     WAITING --timer--> LOCATING --> LOGIN --> DIALLING --both connected--> HANDSHAKE --> UP
 *        ^                  |           |           |                            |          |
 *        +-- link_settle ---+-----------+-----------+----------------------------+----------+
 *                                             any problem
 *
 * Every problem ends in hli_link_break(), which closes both connections, and then in link_settle(),
 * which the timer runs: when that tells the lanes, every request that was in flight has ended.
 */
#include "redis/link_state.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "redis/backoff.h"

#include <string.h>
#include <unistd.h>

enum {
    LINK_KEEPALIVE_MS = 5000,
    LINK_FAST_KEEPALIVE_MS = 1000, /* the server may close idle connections soon (`timeout`) */
};

int hli_link_problem(struct hli_link *link, hl_error *ret_err)
{
    hli_mutex_lock(&link->mutex);
    int code = link->problem.code;
    if (code < 0)
        *ret_err = link->problem;
    hli_mutex_unlock(&link->mutex);
    return code;
}

bool hli_link_has_failed(struct hli_link *link, hl_error *ret_err)
{
    hli_mutex_lock(&link->mutex);
    bool has_failed = link->has_failed;
    if (has_failed)
        *ret_err = link->problem;
    hli_mutex_unlock(&link->mutex);
    return has_failed;
}

void hli_link_where(struct hli_link *link, char text[HLI_WHERE_SIZE])
{
    hli_mutex_lock(&link->mutex);
    memcpy(text, link->where, HLI_WHERE_SIZE);
    hli_mutex_unlock(&link->mutex);
}

void hli_link_set_problem(struct hli_link *link, const hl_error *err, bool has_failed)
{
    hli_mutex_lock(&link->mutex);
    link->problem = *err;
    link->has_failed = has_failed;
    hli_mutex_unlock(&link->mutex);
}

/* Puts the server's address in front of the reason: "connect 127.0.0.1:6379: connection refused",
 * "127.0.0.1:6379: LOADING Redis is loading the dataset in memory". A server that was not located
 * has no address. */
static void link_name_problem(struct hli_link *link, const hl_error *err, bool has_failed)
{
    bool has_dialled_in_vain = link->state == HLI_LINK_DIALLING && !link->dial;
    hl_error named;

    if (link->state == HLI_LINK_LOCATING) {
        hli_link_set_problem(link, err, has_failed);
        return;
    }
    hli_fail(&named, err->code, "%s%s: %s", has_dialled_in_vain ? "connect " : "", link->where,
             err->text);
    hli_link_set_problem(link, &named, has_failed);
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

void hli_link_hide(struct hli_link *link, const char *secret)
{
    for (int i = 0; i < HLI_LINK_CONNS; i++)
        link->conn[i].secret = secret;
}

/* The first link is the server's. */
static void link_count_up(struct hli_link *link, bool is_up)
{
    uint64_t more = is_up ? 1 : UINT64_MAX;

    atomic_fetch_add(link->ups, more);
    if (hli_link_is_first(link))
        atomic_fetch_add(link->first_ups, more);
}

void hli_link_break(struct hli_link *link, const hl_error *err)
{
    bool was_up = link->state == HLI_LINK_UP;

    if (link->state == HLI_LINK_BROKEN || link->state == HLI_LINK_STOPPED)
        return;
    if (was_up) {
        atomic_store(&link->is_up, false);
        link_count_up(link, false);
        link_note_life(link);
    }
    link_name_problem(link, err, !was_up);
    link->state = HLI_LINK_BROKEN;
    link->pubsub.is_up = false;
    hli_dial_cancel(&link->dial);
    for (int i = 0; i < HLI_LINK_CONNS; i++) {
        struct hli_handshake *handshake = &link->handshake[i];
        if (was_up && handshake->now.id != 0) /* else the connection sent no script */
            handshake->past = handshake->now;
        hli_conn_close(&link->conn[i], err);
    }
    hli_link_hide(link, link->url->login.password);
    hli_relogin_end(&link->relogin);
    hli_timer_set(link->loop, &link->timer, hli_now());
}

void hli_link_fail(struct hli_link *link, int code, const char *text)
{
    hl_error err;

    hli_fail(&err, code, "%s", text);
    hli_link_break(link, &err);
}

struct hli_link *hli_link_first(struct hli_link *link)
{
    return link->first;
}

static void link_settle(struct hli_link *link)
{
    bool was_up = !link->has_failed;
    hl_error err = HL_ERROR_INIT;

    for (int i = 0; i < HLI_LINK_CONNS; i++)
        hli_handshake_deinit(&link->handshake[i]); /* AUTH */

    hli_pubsub_down(&link->pubsub);
    link->state = HLI_LINK_WAITING;
    hli_link_problem(link, &err);
    if (err.code == HL_EDENIED)
        link->attempts = 32; /* the longest pause: the server denied the login */
    hli_ns pause = hli_backoff_pause(link->settings->backoff_min_ms, link->settings->backoff_max_ms,
                                     link->attempts++, hli_random_u64());
    hli_timer_set(link->loop, &link->timer, hli_now() + (link->is_in_hurry ? 0 : pause));
    link->is_in_hurry = false;
    link->events->settled(link, was_up, &err);
}

bool hli_link_is_up(const struct hli_link *link)
{
    return atomic_load(&link->is_up);
}

void hli_link_come_up(struct hli_link *link)
{
    link->state = HLI_LINK_UP;
    link->up_since = hli_now();
    hli_link_meet_server(link); /* before a request asks */
    link_count_up(link, true);
    hli_loader_reset(&link->loader);
    for (int i = 0; i < HLI_LINK_CONNS; i++)
        hli_handshake_deinit(&link->handshake[i]);
    hli_link_hide(link, link->url->login.password);
    hli_relogin_begin(&link->relogin);
    hli_link_set_problem(link, &(const hl_error)HL_ERROR_INIT, false);
    hli_conn_set_ready(&link->conn[HLI_LINK_COMMANDS]);
    hli_timer_set(link->loop, &link->timer, hli_after_ms(link->up_since, link->keepalive_ms));
    hli_pubsub_up(&link->pubsub);
    atomic_store(&link->is_up, true);
    link->events->up(link);
    hli_link_tell_offsets(link, &link->handshake[HLI_LINK_COMMANDS]);
}

static void link_set_retired(struct hli_link *link, bool is_retired)
{
    hli_mutex_lock(&link->mutex);
    link->is_retired = is_retired;
    hli_mutex_unlock(&link->mutex);
}

int hli_link_move(struct hli_link *link, const struct hli_address *address)
{
    int rc = address ? hli_link_set_address(link, address) : 0;

    if (rc < 0)
        return rc;
    hli_link_set_problem(link, &(const hl_error)HL_ERROR_INIT, false);
    link_set_retired(link, false);
    link->state = HLI_LINK_WAITING;
    link->attempts = 0;
    link->up_since = 0;
    for (int i = 0; i < HLI_LINK_CONNS; i++)
        link->handshake[i].past = (struct hli_handshake_past){0};
    return 0;
}

void hli_link_hurry(struct hli_link *link)
{
    link->is_in_hurry = link->state == HLI_LINK_BROKEN;
    if (link->state == HLI_LINK_WAITING)
        hli_timer_set(link->loop, &link->timer, hli_now());
}

static void link_beat(struct hli_link *link)
{
    hli_timer_set(link->loop, &link->timer, hli_after_ms(hli_now(), link->keepalive_ms));
    hli_pubsub_up(&link->pubsub); /* retries refused subscriptions */
    hli_handshake_beat(&link->handshake[HLI_LINK_COMMANDS],
                       link->handshake[HLI_LINK_COMMANDS].tells_role);
    if (hli_link_is_first(link))
        hli_handshake_beat(&link->handshake[HLI_LINK_PUBSUB], false);
}

static void link_give_up(struct hli_link *link)
{
    hl_error err;

    bool is_login = link->state == HLI_LINK_LOGIN;
    hli_fail(&err, HL_ECONN, "no answer%s within %lld ms",
             is_login ? " of the credentials callback" : hli_dial_awaits(link->dial),
             (long long)link->settings->connect_timeout_ms);
    hli_dial_cancel(&link->dial);
    hli_link_break(link, &err);
}

static void link_on_timer(void *arg)
{
    struct hli_link *link = arg;

    switch (link->state) {
    case HLI_LINK_BROKEN:
        link_settle(link);
        break;
    case HLI_LINK_WAITING:
        hli_link_connect(link);
        break;
    case HLI_LINK_LOGIN:
    case HLI_LINK_DIALLING:
    case HLI_LINK_HANDSHAKE:
        link_give_up(link);
        break;
    case HLI_LINK_UP:
        link_beat(link);
        break;
    case HLI_LINK_LOCATING:
    case HLI_LINK_STOPPED:
        break;
    }
}

void hli_link_start(struct hli_link *link)
{
    hli_timer_set(link->loop, &link->timer, hli_now());
}

void hli_link_stop(struct hli_link *link, int code, const char *reason)
{
    hli_link_fail(link, code, reason);
    hli_timer_clear(link->loop, &link->timer);
    for (int i = 0; i < HLI_LINK_CONNS; i++)
        hli_handshake_deinit(&link->handshake[i]); /* AUTH */
    link->state = HLI_LINK_STOPPED;
    hli_pubsub_down(&link->pubsub);
}

bool hli_link_retire(struct hli_link *link)
{
    link_set_retired(link, true); /* before a request can be refused */
    if (link->state != HLI_LINK_UP || hli_conn_retire(&link->conn[HLI_LINK_COMMANDS])) {
        hli_link_stop(link, HL_ECONN, "the connection is not needed any more");
        return true;
    }
    link_set_retired(link, false);
    return false;
}

static void link_init_conns(struct hli_link *link, atomic_uint_fast64_t *commands)
{
    for (int i = 0; i < HLI_LINK_CONNS; i++) {
        hli_conn_init(&link->conn[i], link->loop, &link->events->conn[i], link);
        link->conn[i].request_timeout_ms = link->settings->request_timeout_ms;
        link->conn[i].commands = commands;
    }
    hli_link_hide(link, link->url->login.password);
    link->conn[HLI_LINK_COMMANDS].confirm.timeout_ms = link->settings->replicas_timeout_ms;
    link->conn[HLI_LINK_COMMANDS].polling.ns = link->settings->busy_poll_us * 1000;
}

static void link_init_login(struct hli_link *link, const struct hli_link_setup *setup)
{
    hli_login_ask_init(&link->login, setup->logins, HL_CREDENTIALS_SERVER);
    link->login.done = hli_link_on_login;
    link->relogin = (struct hli_relogin){.loop = link->loop,
                                         .ask = &link->login,
                                         .commands = &link->conn[HLI_LINK_COMMANDS],
                                         .pubsub = hli_link_is_first(link) ? &link->pubsub : NULL,
                                         .where = link->where,
                                         .log = setup->log,
                                         .arg = setup->log_arg};
    hli_relogin_init(&link->relogin);
}

struct hli_link *hli_link_new(const struct hli_link_setup *setup, struct hli_link *first,
                              struct hli_lanes *lanes, const struct hli_link_events *events)
{
    struct hli_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->loop = setup->loop;
    link->state = HLI_LINK_WAITING;
    link->settings = setup->settings;
    link->url = setup->url;
    link->listener = setup->listener;
    link->ups = setup->ups;
    link->first_ups = setup->first_ups;
    link->first = first ? first : link;
    link->lanes = lanes;
    link->events = events;
    link->keepalive_ms = LINK_KEEPALIVE_MS;
    link->timer = (struct hli_timer){.run = link_on_timer, .arg = link};
    hli_link_init_keeps(link);
    hli_mutex_init(&link->mutex);
    atomic_init(&link->dialled, -1);
    hli_term_init(&link->term, link->settings->failover_grace_ms);
    link_init_conns(link, setup->commands);
    link_init_login(link, setup);
    hli_pubsub_init(&link->pubsub, &link->conn[HLI_LINK_PUBSUB]);
    hli_loader_init(&link->loader, &link->conn[HLI_LINK_COMMANDS]);
    if (setup->address && hli_link_set_address(link, setup->address) < 0) {
        hli_link_free(link);
        return NULL;
    }
    return link;
}

void hli_link_free(struct hli_link *link)
{
    if (!link)
        return;
    for (int i = 0; i < HLI_LINK_CONNS; i++) {
        hli_handshake_deinit(&link->handshake[i]);
        hli_conn_deinit(&link->conn[i]);
    }
    hli_op_deinit(&link->kill);
    hli_op_deinit(&link->keeps_op);
    hli_loader_deinit(&link->loader);
    hli_pubsub_deinit(&link->pubsub);
    hli_relogin_deinit(&link->relogin);
    hli_login_ask_deinit(&link->login);
    hli_address_deinit(&link->address);
    hli_mutex_deinit(&link->mutex);
    free(link);
}

void hli_link_abandon(struct hli_link *link)
{
    int dialled = atomic_exchange(&link->dialled, -1);

    for (int i = 0; i < HLI_LINK_CONNS; i++)
        hli_conn_abandon(&link->conn[i]);
    if (dialled >= 0)
        close(dialled);
}
