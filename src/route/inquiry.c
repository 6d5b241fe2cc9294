/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Inquiring: find the login, dial, log in, hang up. */
#include "route/inquiry.h"

#include "base/check.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { INQUIRY_LOST_MS = 60 * 1000 };

void hli_inquiry_forget_login(struct hli_inquiry *inquiry)
{
    inquiry->conn.secret = inquiry->secret;
    hli_op_wipe(&inquiry->auth);
    hli_login_drop(&inquiry->login);
}

bool hli_inquiry_believes_strangers(hli_ns lost)
{
    return lost >= HLI_MS(INQUIRY_LOST_MS);
}

hli_ns hli_inquiry_share(hli_ns time, size_t left, bool is_first)
{
    return is_first && left > 0 ? time / 2 : time / (hli_ns)(left + 1);
}

void hli_inquiry_close(struct hli_inquiry *inquiry)
{
    static const hl_error over = {.code = HL_ECLOSED, .text = "no longer needed"};

    hli_dial_cancel(&inquiry->dial);
    hli_conn_close(&inquiry->conn, &over);
    hli_inquiry_forget_login(inquiry);
}

bool hli_inquiry_say(struct hli_inquiry *inquiry, struct hli_op *op, const char *const *words)
{
    return hli_op_texts(op, words) == 0 && hli_conn_send(&inquiry->conn, op, HLI_CONN_AT_ONCE);
}

static bool inquiry_say_auth(struct hli_inquiry *inquiry)
{
    const struct hli_login *login = inquiry->login.login;

    inquiry->conn.secret = login->password;
    return !login->password || (hli_login_write(login, &inquiry->auth) == 0 &&
                                hli_conn_send(&inquiry->conn, &inquiry->auth, HLI_CONN_AT_ONCE));
}

static void inquiry_auth_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_inquiry *inquiry = HLI_PART_OF(op, struct hli_inquiry, auth);

    hli_op_wipe(op);
    if (answer->verdict != HLI_UNKNOWN)
        inquiry->events->authed(inquiry, answer);
}

static void inquiry_fail(struct hli_inquiry *inquiry, const char *text)
{
    hl_error err;

    hli_fail(&err, HL_ENOMEM, "%s", text);
    inquiry->events->opened(inquiry, &err);
}

static void inquiry_on_dialled(int fd, struct hli_tls *tls, const hl_error *err, void *arg)
{
    struct hli_inquiry *inquiry = arg;

    inquiry->dial = NULL;
    bool is_open = fd >= 0 && hli_conn_open(&inquiry->conn, fd, tls) == 0;
    int reason = errno;
    atomic_store(&inquiry->dialled, -1);
    if (fd >= 0 && !is_open)
        close(fd);
    if (fd < 0)
        inquiry->events->opened(inquiry, err);
    else if (!is_open)
        inquiry_fail(inquiry, strerrordesc_np(reason));
    else if (!inquiry_say_auth(inquiry))
        inquiry_fail(inquiry, "out of memory");
    else
        inquiry->events->opened(inquiry, NULL);
}

bool hli_inquiry_dial(struct hli_inquiry *inquiry, hli_ns deadline)
{
    const struct hli_dial_args said = {
        .address = inquiry->address,
        .tls_name = inquiry->tls_name,
        .peer = &inquiry->peer,
        .deadline = deadline,
        .done = inquiry_on_dialled,
        .arg = inquiry,
        .shown = &inquiry->dialled,
    };

    return hli_dial_start(inquiry->dialler, &said, &inquiry->dial) == 0;
}

static void inquiry_on_login(struct hli_login_ask *ask, const hl_error *err)
{
    struct hli_inquiry *inquiry = HLI_OF(ask, struct hli_inquiry, login);

    inquiry->events->fetched(inquiry, err);
}

void hli_inquiry_begin(struct hli_inquiry *inquiry, const struct hli_address *address)
{
    inquiry->address = address;
    inquiry->peer.length = 0;
    hli_address_where(address, inquiry->where);
    hli_login_fetch(&inquiry->login, inquiry->where);
}

void hli_inquiry_init(struct hli_inquiry *inquiry, const struct hli_inquiry_setup *setup)
{
    const struct hli_url *url = setup->url;

    inquiry->dialler = setup->dialler;
    inquiry->loop = setup->dialler->loop;
    inquiry->settings = setup->settings;
    inquiry->url = url;
    bool is_sentinel = setup->purpose == HL_CREDENTIALS_SENTINEL;
    inquiry->secret = is_sentinel ? url->sentinel_login.password : url->login.password;
    inquiry->tls_name =
        is_sentinel ? setup->settings->sentinel_tls_server_name : setup->settings->tls_server_name;
    inquiry->events = setup->events;
    inquiry->arg = setup->arg;
    hli_login_ask_init(&inquiry->login, setup->logins, setup->purpose);
    inquiry->login.done = inquiry_on_login;
    atomic_init(&inquiry->dialled, -1);
    hli_conn_init(&inquiry->conn, inquiry->loop, &setup->events->conn, setup->arg);
    inquiry->conn.request_timeout_ms = setup->settings->request_timeout_ms;
    inquiry->conn.secret = inquiry->secret;
    HLI_PART_IS(&inquiry->auth, struct hli_inquiry, auth);
    inquiry->auth.done = inquiry_auth_done;
}

void hli_inquiry_deinit(struct hli_inquiry *inquiry)
{
    hli_op_wipe(&inquiry->auth);
    hli_login_ask_deinit(&inquiry->login);
    hli_conn_deinit(&inquiry->conn);
}

void hli_inquiry_abandon(struct hli_inquiry *inquiry)
{
    int dialled = atomic_exchange(&inquiry->dialled, -1);

    hli_conn_abandon(&inquiry->conn);
    if (dialled >= 0)
        close(dialled);
}
