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

#include "base/error.h"

#include <string.h>

enum { LINK_FAST_KEEPALIVE_MS = 1000 }; /* the server may close idle connections soon (`timeout`) */

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

    if (lived_ms >= HLI_LINK_KEEPALIVE_MS || lived_ms >= link->settings->backoff_max_ms)
        link->attempts = 0;
    link->keepalive_ms =
        lived_ms < HLI_LINK_KEEPALIVE_MS ? LINK_FAST_KEEPALIVE_MS : HLI_LINK_KEEPALIVE_MS;
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

    if (link->ups)
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

void hli_link_hurry(struct hli_link *link)
{
    link->is_in_hurry = link->state == HLI_LINK_BROKEN;
    if (link->state == HLI_LINK_WAITING)
        hli_timer_set(link->loop, &link->timer, hli_now());
}
