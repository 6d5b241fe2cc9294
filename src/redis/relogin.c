/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Logging in again, in steps: ask for the login; AUTH on the commands' connection; AUTH on the
 * other. What fails is told to the operator and tried again: a refused AUTH leaves the connection
 * with the login that it has (redis.io, AUTH).
 */
#include "redis/relogin.h"

#include "base/check.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>

enum { RELOGIN_OVERDUE_MS = 5000 }; /* a callback that has not answered is worth a line */

static void relogin_warn(const struct hli_relogin *relogin, const char *reason)
{
    char text[256];
    int64_t left_ms = hli_ms_left(hli_now(), relogin->expires_at);

    snprintf(text, sizeof(text), "%s: the login ends in %lld s and is not renewed: %s",
             relogin->where, (long long)(left_ms / 1000), reason);
    relogin->log(HL_LOG_WARN, text, relogin->arg);
}

static void relogin_fail(struct hli_relogin *relogin, const char *reason)
{
    relogin_warn(relogin, reason);
    hli_login_drop(relogin->ask);
    hli_timer_set(relogin->loop, &relogin->timer,
                  hli_login_retry_at(relogin->expires_at, hli_now()));
}

/* True if the answer is one, and good; the bytes are wiped. */
static bool relogin_is_accepted(struct hli_relogin *relogin, const struct hli_answer *answer)
{
    hl_error err;

    hli_op_wipe(&relogin->auth);
    if (answer->verdict == HLI_UNKNOWN || answer->verdict == HLI_UNSENT)
        return false; /* the link is lost */
    if (hli_login_judge(answer, "the server refused the user or password", &err) == 0)
        return true;
    relogin_fail(relogin, err.text);
    return false;
}

static struct hli_relogin *relogin_of(struct hli_op *op)
{
    return HLI_PART_OF(op, struct hli_relogin, auth);
}

static void relogin_has_ended(struct hli_relogin *relogin)
{
    relogin->log(HL_LOG_DEBUG, "logged in again", relogin->arg);
    hli_relogin_begin(relogin);
}

static void relogin_pubsub_done(struct hli_op *op, const struct hli_answer *answer)
{
    if (relogin_is_accepted(relogin_of(op), answer))
        relogin_has_ended(relogin_of(op));
}

static void relogin_commands_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_relogin *relogin = relogin_of(op);

    if (!relogin_is_accepted(relogin, answer))
        return;
    if (!relogin->pubsub) {
        relogin_has_ended(relogin);
        return;
    }
    op->done = relogin_pubsub_done;
    if (hli_login_write(relogin->ask->login, op) < 0 ||
        !hli_pubsub_interrupt(relogin->pubsub, op)) {
        hli_op_wipe(op);
        relogin_fail(relogin, "out of memory");
    }
}

void hli_relogin_answered(struct hli_relogin *relogin, const hl_error *err)
{
    struct hli_op *op = &relogin->auth;

    HLI_PART_IS(op, struct hli_relogin, auth);
    relogin->is_asking = false;
    hli_timer_clear(relogin->loop, &relogin->timer);
    if (err) {
        relogin_fail(relogin, err->text);
    } else if (!relogin->ask->login->password) {
        relogin_fail(relogin, "the credentials callback gave no password");
    } else {
        op->done = relogin_commands_done;
        if (hli_login_write(relogin->ask->login, op) < 0 ||
            !hli_conn_send(relogin->commands, op, HLI_CONN_AT_ONCE)) {
            hli_op_wipe(op);
            relogin_fail(relogin, "out of memory");
        }
    }
}

static void relogin_on_timer(void *arg)
{
    struct hli_relogin *relogin = arg;

    if (relogin->is_asking) {
        relogin_warn(relogin, "the credentials callback has not answered yet");
        return;
    }
    relogin->is_asking = true;
    hli_timer_set(relogin->loop, &relogin->timer, hli_after_ms(hli_now(), RELOGIN_OVERDUE_MS));
    hli_login_fetch(relogin->ask, relogin->where);
}

void hli_relogin_init(struct hli_relogin *relogin)
{
    relogin->timer = (struct hli_timer){.run = relogin_on_timer, .arg = relogin};
    relogin->auth = (struct hli_op){.script = -1};
}

void hli_relogin_deinit(struct hli_relogin *relogin)
{
    hli_op_wipe(&relogin->auth);
}

void hli_relogin_begin(struct hli_relogin *relogin)
{
    const struct hli_login *login = relogin->ask->login;
    hli_ns renew_at = hli_login_renew_at(login, hli_random_u64());

    relogin->expires_at = login->expires_at;
    hli_login_drop(relogin->ask);
    if (renew_at != HLI_NEVER)
        hli_timer_set(relogin->loop, &relogin->timer, renew_at);
}

void hli_relogin_end(struct hli_relogin *relogin)
{
    relogin->is_asking = false;
    hli_timer_clear(relogin->loop, &relogin->timer);
    hli_login_drop(relogin->ask);
}
