/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An inquiry: one connection to a server that is asked a few words, and gets no request of a name.
 * First the login is found, then the server is dialled, then AUTH is said. The owner has the
 * deadlines, and says the rest. Loop thread.
 */
#ifndef HLI_ROUTE_INQUIRY_H
#define HLI_ROUTE_INQUIRY_H

#include "redis/conn.h"
#include "redis/dial.h"
#include "redis/logins.h"

#include <hirelock/client.h>

struct hli_inquiry;

struct hli_inquiry_events {
    /* The login is found, and it is time for hli_inquiry_dial(); or err says why there is none. May
     * run inside hli_inquiry_begin(). */
    void (*fetched)(struct hli_inquiry *inquiry, const hl_error *err);
    /* The connection is open, and AUTH is on its way if it is needed; or err says why not. */
    void (*opened)(struct hli_inquiry *inquiry, const hl_error *err);
    void (*authed)(struct hli_inquiry *inquiry, const struct hli_answer *answer);
    struct hli_conn_events conn; /* its arg is the inquiry's */
};

struct hli_inquiry {
    const struct hli_dialler *dialler; /* immutable, as the next seven */
    struct hli_loop *loop;
    const hl_client_options *settings;
    const struct hli_url *url;
    const char *tls_name; /* that the certificate must have; NULL: the host */
    const char *secret;   /* that of the URL or the options; borrowed, may be NULL */
    const struct hli_inquiry_events *events;
    void *arg;

    const struct hli_address *address; /* borrowed; loop thread, as all below */
    char where[HLI_WHERE_SIZE];
    struct hli_login_ask login;
    struct hli_dial *dial;
    struct hli_dial_peer peer;
    atomic_int dialled; /* its socket; read by a forked child */
    struct hli_conn conn;
    struct hli_op auth;
};

struct hli_inquiry_setup { /* all borrowed */
    const struct hli_dialler *dialler;
    const hl_client_options *settings;
    const struct hli_url *url;
    struct hli_logins *logins;
    hl_credentials_purpose purpose;
    const struct hli_inquiry_events *events;
    void *arg;
};

void hli_inquiry_init(struct hli_inquiry *inquiry, const struct hli_inquiry_setup *setup);
void hli_inquiry_deinit(struct hli_inquiry *inquiry); /* closed */

/* Finds the login for the server at this address, which is borrowed until the connection is open.
 * The inquiry is closed. */
void hli_inquiry_begin(struct hli_inquiry *inquiry, const struct hli_address *address);
/* False: out of memory. `opened` does not run inside. */
bool hli_inquiry_dial(struct hli_inquiry *inquiry, hli_ns deadline);
bool hli_inquiry_say(struct hli_inquiry *inquiry, struct hli_op *op, const char *const *words);

/* The time for one address, of the time that a round has left, with so many addresses behind it.
 * The first one of a round, which mostly is the only one that is asked, has half of it. */
hli_ns hli_inquiry_share(hli_ns time, size_t left, bool is_first);

/* For so long no server that is known has answered, but strangers at the addresses of the URL: may
 * all have been set up anew? Servers that are only out of reach, or start, are back earlier. */
bool hli_inquiry_believes_strangers(hli_ns lost);

/* The login has been said, or is not needed any more. */
void hli_inquiry_forget_login(struct hli_inquiry *inquiry);

/* Of the events only conn.closed may still run, inside. */
void hli_inquiry_close(struct hli_inquiry *inquiry);
void hli_inquiry_abandon(struct hli_inquiry *inquiry); /* in a forked child */

#endif
