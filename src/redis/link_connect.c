/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* An attempt to connect: LOCATING, LOGIN, DIALLING, HANDSHAKE (link.c). */
#include "base/check.h"
#include "base/error.h"
#include "redis/link_state.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void link_dial(struct hli_link *link);

/* Further links have no subscriptions. */
static unsigned link_conns(const struct hli_link *link)
{
    return hli_link_is_first(link) ? HLI_LINK_CONNS : 1;
}

/* Of two ids that servers tell, or do not. */
static bool link_differs(const char *own, const char *other)
{
    return own[0] && other[0] && strcmp(own, other) != 0;
}

/* Messages published at one server do not reach subscribers of the other. */
bool hli_link_is_split(const struct hli_link *link)
{
    bool is_first = hli_link_is_first(link);
    const struct hli_handshake_past *own = &link->handshake[HLI_LINK_COMMANDS].now;
    const struct hli_handshake_past *other = is_first
                                                 ? &link->handshake[HLI_LINK_PUBSUB].now
                                                 : &link->first->handshake[HLI_LINK_COMMANDS].now;
    bool is_known = is_first || link->first->state == HLI_LINK_UP;

    return is_known && (link_differs(own->run_id, other->run_id) ||
                        link_differs(own->node.text, other->node.text));
}

static void link_on_greeted(struct hli_handshake *handshake)
{
    struct hli_link *link = handshake->conn->arg;
    hl_error err = HL_ERROR_INIT;

    if (handshake->err.code < 0 && link->state == HLI_LINK_UP)
        link->events->unusable(link, &handshake->err);
    else if (handshake->err.code < 0)
        hli_link_break(link, &handshake->err);
    else if (link->state == HLI_LINK_UP)
        hli_link_tell_offsets(link, handshake);
    else if (link->state != HLI_LINK_HANDSHAKE || ++link->ready < link_conns(link))
        return;
    else if (hli_link_is_split(link))
        hli_link_fail(link, HL_ECONN,
                      "the two connections lead to two servers (they tell two ids)");
    else if (!hli_link_is_meant(link, &err))
        hli_link_break(link, &err);
    else
        hli_link_come_up(link);
}

static void link_greet(struct hli_link *link)
{
    link->state = HLI_LINK_HANDSHAKE;
    link->ready = 0;
    hli_link_hide(link, link->login.login->password);
    for (unsigned i = 0; i < link_conns(link) && link->state == HLI_LINK_HANDSHAKE; i++) {
        link->handshake[i].done = link_on_greeted;
        link->handshake[i].may_be_cluster = link->url->kind == HLI_URL_CLUSTER;
        if (i == HLI_LINK_COMMANDS)
            link->handshake[i].graceful = hli_link_graceful(link);
        link->handshake[i].asks_bounds = link->handshake[i].graceful.grace_ms > 0 &&
                                         hli_link_is_first(link) &&
                                         link->url->kind == HLI_URL_SENTINEL;
        if (!hli_handshake_say(&link->handshake[i], &link->conn[i], link->login.login,
                               link->url->database, link->settings->client_name))
            hli_link_fail(link, HL_ENOMEM, "out of memory while greeting");
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
        hli_link_break(link, err);
    else if (!is_open)
        hli_link_fail(link, HL_ENOMEM, strerrordesc_np(reason));
    else if (++link->ready < link_conns(link))
        link_dial(link);
    else
        link_greet(link);
}

static void link_dial(struct hli_link *link)
{
    const struct hli_dial_args said = {
        .address = &link->address,
        .tls_name = link->settings->tls_server_name,
        .peer = &link->peer,
        .deadline = link->timer.node.at,
        .done = link_on_dialled,
        .arg = link,
        .shown = &link->dialled,
    };

    if (hli_dial_start(link->dialler, &said, &link->dial) < 0)
        hli_link_fail(link, HL_ENOMEM, "out of memory while connecting");
}

static void link_begin_dialling(struct hli_link *link)
{
    link->state = HLI_LINK_DIALLING;
    link->ready = 0;
    if (hli_link_is_first(link))
        link->peer.length = 0;
    else
        link->peer = link->first->peer;
    hli_timer_set(link->loop, &link->timer,
                  hli_after_ms(hli_now(), link->settings->connect_timeout_ms));
    link_dial(link);
}

void hli_link_on_login(struct hli_login_ask *ask, const hl_error *err)
{
    struct hli_link *link = HLI_OF(ask, struct hli_link, login);

    if (link->state == HLI_LINK_UP)
        hli_relogin_answered(&link->relogin, err);
    else if (link->state == HLI_LINK_LOGIN && err)
        hli_link_break(link, err);
    else if (link->state == HLI_LINK_LOGIN)
        link_begin_dialling(link);
}

/* Before the dial: a server does not wait long for a client that says nothing. */
static void link_begin_login(struct hli_link *link)
{
    link->state = HLI_LINK_LOGIN;
    hli_timer_set(link->loop, &link->timer,
                  hli_after_ms(hli_now(), link->settings->connect_timeout_ms));
    hli_login_fetch(&link->login, link->where);
}

int hli_link_set_address(struct hli_link *link, const struct hli_address *address)
{
    struct hli_address moved;

    if (hli_address_is(&link->address, address->host, address->port))
        return 0;
    int rc = hli_address_init(&moved, address->host, address->port);
    if (rc < 0)
        return rc;
    hli_address_deinit(&link->address);
    link->address = moved;
    hli_mutex_lock(&link->mutex);
    hli_address_where(&moved, link->where);
    hli_mutex_unlock(&link->mutex);
    return 0;
}

void hli_link_located(struct hli_link *link, const struct hli_address *address, const hl_error *err)
{
    if (link->state != HLI_LINK_LOCATING)
        return;
    if (err)
        hli_link_break(link, err);
    else if (hli_link_set_address(link, address) < 0)
        hli_link_fail(link, HL_ENOMEM, "out of memory while connecting");
    else
        link_begin_login(link);
}

/* LOCATING has no timer: those who know the address have deadlines of their own. */
void hli_link_connect(struct hli_link *link)
{
    link->state = HLI_LINK_LOCATING;
    link->events->locate(link);
}
