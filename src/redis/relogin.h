/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Logging in again: before the login of a live link ends, both of its connections say AUTH with the
 * next one. A server that ends connections whose token has expired (ElastiCache, Azure) then keeps
 * them. Loop thread.
 */
#ifndef HLI_REDIS_RELOGIN_H
#define HLI_REDIS_RELOGIN_H

#include "redis/logins.h"
#include "redis/pubsub.h"

struct hli_relogin {
    struct hli_loop *loop; /* immutable, as the next six */
    struct hli_login_ask *ask;
    struct hli_conn *commands;
    struct hli_pubsub *pubsub; /* NULL: the link has the one connection */
    const char *where;         /* the server's address in words */
    void (*log)(hl_log_level level, const char *text, void *arg);
    void *arg;

    hli_ns expires_at; /* of the login in use; 0: never */
    bool is_asking;
    struct hli_op auth; /* on one connection, then on the other */
    struct hli_timer timer;
};

/* `timer` and `auth` are set here; the rest is the caller's. */
void hli_relogin_init(struct hli_relogin *relogin);
void hli_relogin_deinit(struct hli_relogin *relogin);

/* The login of the ask is in use on both connections. Wipes it. */
void hli_relogin_begin(struct hli_relogin *relogin);
void hli_relogin_end(struct hli_relogin *relogin); /* the link is lost */

/* The ask's answer. */
void hli_relogin_answered(struct hli_relogin *relogin, const hl_error *err);

#endif
