/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Logins: where a client's logins come from. They stand in the URL or the options, or in a file
 * that is read for each greeting, or the program's callback gives them. The callback may block, so
 * it runs on a thread of its own, hirelock-login, one call at a time.
 */
#ifndef HLI_REDIS_LOGINS_H
#define HLI_REDIS_LOGINS_H

#include "redis/login.h"
#include "redis/loop.h"
#include "redis/url.h"

#include <hirelock/client.h>

/* What one call of the callback gives: a login, or why there is none. On the stack or in an ask;
 * for the callback's thread while it runs. */
struct hl_credentials {
    struct hli_login login;
    hl_error err; /* code 0: the login is given */
};

struct hli_logins;

/* One who needs logins, embedded in the object that greets. */
struct hli_login_ask {
    struct hli_logins *logins; /* immutable, as the next two */
    hl_credentials_purpose purpose;
    /* err NULL: `login` is what to say. Loop thread, also inside the fetch. */
    void (*done)(struct hli_login_ask *ask, const hl_error *err);

    const struct hli_login *login; /* loop thread, as the next four; password NULL: no AUTH */
    bool is_wanted;
    enum { HLI_LOGIN_IDLE, HLI_LOGIN_ASKING, HLI_LOGIN_ANSWERED } state;
    char where[HLI_WHERE_SIZE]; /* the server that is to be greeted */
    struct hli_task task;       /* the answer's way to the loop */

    STAILQ_ENTRY(hli_login_ask) link; /* logins mutex */
    char asked[HLI_WHERE_SIZE]; /* ASKING: the callback's thread, as the next; else the loop */
    struct hl_credentials answer;
};

/* Borrows the settings and the URL. NULL when memory is out. */
struct hli_logins *hli_logins_new(struct hli_loop *loop, const hl_client_options *settings,
                                  const struct hli_url *url);
/* Joins the thread, and so waits for a callback that is under way. Every ask is cancelled. Not on
 * the loop thread, which must still run. */
void hli_logins_join(struct hli_logins *logins);
void hli_logins_free(struct hli_logins *logins); /* NULL is fine */

/* Is the calling thread inside the callback of this client? */
bool hli_logins_are_asked_here(const struct hli_logins *logins);

void hli_login_ask_init(struct hli_login_ask *ask, struct hli_logins *logins,
                        hl_credentials_purpose purpose);
void hli_login_ask_deinit(struct hli_login_ask *ask); /* the thread is joined */

/* Finds the login for the server at this address; `done` runs once, unless the ask is cancelled
 * before. The caller has the deadline. An answer that came too late for one fetch is the next
 * one's. Loop thread. */
void hli_login_fetch(struct hli_login_ask *ask, const char *where);

/* `done` will not run, and `login` is wiped if it is the ask's own. Loop thread. */
void hli_login_drop(struct hli_login_ask *ask);

#endif
