/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A login: what AUTH says, and how long the server accepts it. Pure: no I/O. */
#ifndef HLI_REDIS_LOGIN_H
#define HLI_REDIS_LOGIN_H

#include "base/clock.h"
#include "redis/op.h"

/* A server takes no longer word before the login: "unauthenticated bulk length" (Redis 6.2.6). */
enum { HLI_LOGIN_LIMIT = 16384 };

struct hli_login {
    char *username, *password;   /* owned secrets; NULL: none */
    hli_ns given_at, expires_at; /* expires_at 0: it lasts for ever */
};

/* Puts copies in place of both that are not NULL. Errors: HL_ENOMEM. */
int hli_login_set(struct hli_login *login, const char *username, const char *password);
void hli_login_deinit(struct hli_login *login); /* wipes them */

/* Writes AUTH into the op, and nowhere else; hli_op_wipe() ends it. The login has a password.
 * Errors: HL_ENOMEM. */
int hli_login_write(const struct hli_login *login, struct hli_op *op);

/* Reads the answer to AUTH. Returns 0: accepted; HL_EDENIED only by the words that mean it;
 * HL_ESERVER: any other error, which passes: the server is loading, or a proxy has lost it. `what`
 * begins the error of a denial: "the server refused the user or password". Of the answer only the
 * code word is shown, as an old server or a proxy may repeat the password behind it. */
int hli_login_judge(const struct hli_answer *answer, const char *what, hl_error *err);

/* When to ask for the next one: after 70 to 80 % of its life, and no sooner than after a second;
 * HLI_NEVER for a login without end. */
hli_ns hli_login_renew_at(const struct hli_login *login, uint64_t random);

/* When to try that again: after a quarter of the time that is left, and from 1 s to 60 s. */
hli_ns hli_login_retry_at(hli_ns expires_at, hli_ns now);

#endif
