/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A link's life: its timer, which takes it from state to state (link.c); its making and its end. */
#include "base/error.h"
#include "base/random.h"
#include "redis/backoff.h"
#include "redis/link_state.h"

#include <stdlib.h>
#include <unistd.h>

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

bool hli_link_was_up(const struct hli_link *link)
{
    return link->up_since > 0;
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
    link->loop = setup->dialler->loop;
    link->dialler = setup->dialler;
    link->state = HLI_LINK_WAITING;
    link->settings = setup->settings;
    link->url = setup->url;
    link->listener = setup->listener;
    link->ups = setup->ups;
    link->first_ups = setup->first_ups;
    link->first = first ? first : link;
    link->lanes = lanes;
    link->events = events;
    link->keepalive_ms = HLI_LINK_KEEPALIVE_MS;
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
