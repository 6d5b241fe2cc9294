/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A scout: a short connection that asks one server for the map of its cluster. It is no link: any
 * node may be asked, a replica too, and no request of a name goes there. Loop thread.
 */
#ifndef HLI_ROUTE_SCOUT_H
#define HLI_ROUTE_SCOUT_H

#include "route/inquiry.h"

struct hli_scout_report { /* borrowed */
    const struct hli_reply *slots;
    int64_t epoch;   /* -1: unknown */
    bool is_sharded; /* it has sharded pub/sub */
};

enum { HLI_SCOUT_WORDS = 3 };

struct hli_scout {
    /* The answer to hli_scout_send(); runs once. report NULL: err says why. Immutable, as the next.
     */
    void (*done)(struct hli_scout *scout, const struct hli_scout_report *report,
                 const hl_error *err);
    void *arg;

    struct hli_inquiry inquiry; /* loop thread, as all below */
    bool is_out;
    struct hli_scout_report report;
    hl_error err;
    bool has_login;    /* false: it is being asked for */
    hli_ns time;       /* that the node's answer has */
    hli_ns login_took; /* beside that */
    struct hli_scout_word {
        struct hli_op op;
        struct hli_scout *scout;
    } word[HLI_SCOUT_WORDS];
    struct hli_timer timer;
};

void hli_scout_init(struct hli_scout *scout, const struct hli_dialler *dialler,
                    const hl_client_options *settings, const struct hli_url *url,
                    struct hli_logins *logins);
void hli_scout_deinit(struct hli_scout *scout); /* recalled */

/* Asks the node at this address (borrowed until `done`), for so long. The login has a connect
 * timeout of its own before that. */
void hli_scout_send(struct hli_scout *scout, const struct hli_address *address, hli_ns time);
void hli_scout_recall(struct hli_scout *scout);  /* `done` does not run any more */
void hli_scout_abandon(struct hli_scout *scout); /* in a forked child */

#endif
