/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Where logins come from. An ask moves between three states; the loop alone changes them:
 *
 *     IDLE --fetch--> ASKING --the callback returned--> ANSWERED --taken--> IDLE
 *
 * An ask that is dropped while the callback runs stays ASKING: user code cannot be stopped.
 */
#include "redis/logins.h"

#include "base/error.h"
#include "base/thread.h"
#include "redis/password_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hli_logins {
    struct hli_loop *loop; /* immutable, as the next two */
    const hl_client_options *settings;
    const struct hli_url *url;

    hli_mutex mutex; /* guards the rest */
    hli_cond cond;
    STAILQ_HEAD(, hli_login_ask) queue;
    bool has_thread, is_stopping;
    hli_thread thread;
};

static _Thread_local const struct hli_logins *logins_current;

bool hli_logins_are_asked_here(const struct hli_logins *logins)
{
    return logins && logins_current == logins;
}

struct hli_logins *hli_logins_new(struct hli_loop *loop, const hl_client_options *settings,
                                  const struct hli_url *url)
{
    struct hli_logins *logins = calloc(1, sizeof(*logins));

    if (!logins)
        return NULL;
    logins->loop = loop;
    logins->settings = settings;
    logins->url = url;
    hli_mutex_init(&logins->mutex);
    hli_cond_init(&logins->cond);
    STAILQ_INIT(&logins->queue);
    return logins;
}

void hli_logins_free(struct hli_logins *logins)
{
    if (!logins)
        return;
    hli_cond_deinit(&logins->cond);
    hli_mutex_deinit(&logins->mutex);
    free(logins);
}

/* Blocks for the next ask. NULL: it is stopping. */
static struct hli_login_ask *logins_next(struct hli_logins *logins)
{
    hli_mutex_lock(&logins->mutex);
    while (STAILQ_EMPTY(&logins->queue) && !logins->is_stopping)
        hli_cond_wait(&logins->cond, &logins->mutex);
    struct hli_login_ask *ask = logins->is_stopping ? NULL : STAILQ_FIRST(&logins->queue);
    if (ask)
        STAILQ_REMOVE_HEAD(&logins->queue, link);
    hli_mutex_unlock(&logins->mutex);
    return ask;
}

static void logins_call(const struct hli_logins *logins, struct hli_login_ask *ask)
{
    const hl_credentials_request request = {
        .size = sizeof(request), .purpose = ask->purpose, .address = ask->asked};
    const hl_client_options *settings = logins->settings;

    hli_error_set(&ask->answer.err, HL_ECONN, "the credentials callback gave no login");
    settings->credentials_cb(&request, &ask->answer, settings->credentials_arg);
}

static void *logins_thread(void *arg)
{
    struct hli_logins *logins = arg;
    struct hli_login_ask *ask;

    logins_current = logins;
    while ((ask = logins_next(logins))) {
        logins_call(logins, ask);
        hli_loop_post(logins->loop, &ask->task);
    }
    return NULL;
}

/* Errors: HL_ENOMEM. */
static int logins_queue(struct hli_logins *logins, struct hli_login_ask *ask)
{
    int rc = 0;

    hli_mutex_lock(&logins->mutex);
    if (!logins->has_thread) {
        rc = hli_thread_start(&logins->thread, "hirelock-login", logins_thread, logins);
        logins->has_thread = rc == 0;
    }
    if (rc == 0) {
        STAILQ_INSERT_TAIL(&logins->queue, ask, link);
        hli_cond_signal(&logins->cond);
    }
    hli_mutex_unlock(&logins->mutex);
    return rc;
}

void hli_logins_join(struct hli_logins *logins)
{
    hli_mutex_lock(&logins->mutex);
    logins->is_stopping = true;
    bool has_thread = logins->has_thread;
    logins->has_thread = false;
    hli_cond_signal(&logins->cond);
    hli_mutex_unlock(&logins->mutex);
    if (has_thread)
        hli_thread_join(logins->thread);
}

static void ask_end(struct hli_login_ask *ask, const struct hli_login *login, const hl_error *err)
{
    ask->is_wanted = false;
    ask->state = HLI_LOGIN_IDLE;
    ask->login = login;
    ask->done(ask, err);
}

static void ask_forget(struct hli_login_ask *ask)
{
    hli_login_deinit(&ask->answer.login);
    ask->answer.err = (hl_error)HL_ERROR_INIT;
}

static void ask_begin(struct hli_login_ask *ask)
{
    hl_error err;

    ask->login = NULL;
    ask_forget(ask);
    memcpy(ask->asked, ask->where, sizeof(ask->asked));
    ask->state = HLI_LOGIN_ASKING;
    if (logins_queue(ask->logins, ask) == 0)
        return;
    hli_error_set(&err, HL_ENOMEM, "no thread for the credentials callback: out of memory");
    ask_end(ask, NULL, &err);
}

/* A late answer may be for a server of an earlier attempt, may have expired, or may say what was
 * wrong then. */
static bool ask_is_of_use(const struct hli_login_ask *ask)
{
    const struct hl_credentials *answer = &ask->answer;

    return strcmp(ask->asked, ask->where) == 0 && answer->err.code == 0 &&
           (answer->login.expires_at == 0 || answer->login.expires_at > hli_now());
}

static void ask_on_answer(void *arg)
{
    struct hli_login_ask *ask = arg;
    hl_error err = ask->answer.err;

    ask->state = HLI_LOGIN_ANSWERED;
    if (!ask->is_wanted)
        return;
    if (strcmp(ask->asked, ask->where) != 0)
        ask_begin(ask);
    else if (err.code < 0)
        ask_end(ask, NULL, &err);
    else
        ask_end(ask, &ask->answer.login, NULL);
}

static const char *ask_file(const struct hli_login_ask *ask)
{
    const hl_client_options *settings = ask->logins->settings;

    return ask->purpose == HL_CREDENTIALS_SENTINEL ? settings->sentinel_password_file
                                                   : settings->password_file;
}

static const struct hli_login *ask_fixed(const struct hli_login_ask *ask)
{
    const struct hli_url *url = ask->logins->url;

    return ask->purpose == HL_CREDENTIALS_SENTINEL ? &url->sentinel_login : &url->login;
}

static void ask_read_file(struct hli_login_ask *ask)
{
    bool is_sentinel = ask->purpose == HL_CREDENTIALS_SENTINEL;
    const struct hli_password_file file = {.option = is_sentinel ? "sentinel_password_file"
                                                                 : "password_file",
                                           .path = ask_file(ask),
                                           .code = HL_ECONN};
    struct hli_login *login = &ask->answer.login;
    hl_error err;

    ask_forget(ask);
    int rc = hli_password_file_read(&file, &login->password, &err);
    if (rc == 0 && hli_login_set(login, ask_fixed(ask)->username, NULL) < 0)
        rc = hli_no_memory(&err);
    ask_end(ask, login, rc < 0 ? &err : NULL);
}

void hli_login_fetch(struct hli_login_ask *ask, const char *where)
{
    snprintf(ask->where, sizeof(ask->where), "%s", where);
    if (ask_file(ask)) {
        ask_read_file(ask);
    } else if (ask_fixed(ask)->password || !ask->logins->settings->credentials_cb) {
        ask_end(ask, ask_fixed(ask), NULL);
    } else {
        ask->is_wanted = true;
        if (ask->state == HLI_LOGIN_ANSWERED && ask_is_of_use(ask))
            ask_end(ask, &ask->answer.login, NULL);
        else if (ask->state != HLI_LOGIN_ASKING)
            ask_begin(ask);
    }
}

/* An answer that nobody has taken is kept for the next attempt. */
void hli_login_drop(struct hli_login_ask *ask)
{
    ask->is_wanted = false;
    ask->login = NULL;
    if (ask->state == HLI_LOGIN_IDLE)
        ask_forget(ask);
}

void hli_login_ask_init(struct hli_login_ask *ask, struct hli_logins *logins,
                        hl_credentials_purpose purpose)
{
    *ask = (struct hli_login_ask){.logins = logins, .purpose = purpose};
    ask->task = (struct hli_task){.run = ask_on_answer, .arg = ask};
}

void hli_login_ask_deinit(struct hli_login_ask *ask)
{
    hli_login_deinit(&ask->answer.login);
}
