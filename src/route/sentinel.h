/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One sentinel, at the other end of an inquiry: what it is asked, and what it says. All requests go
 * out at once; the last one subscribes, and its answer is the moment to judge the others. Loop
 * thread.
 */
#ifndef HLI_ROUTE_SENTINEL_H
#define HLI_ROUTE_SENTINEL_H

#include "redis/link.h"
#include "route/inquiry.h"
#include "route/sentinel_list.h"

enum { HLI_SENTINEL_WORDS = 8 };

/* Where a sentinel says that the master is. */
struct hli_sentinel_word {
    struct hli_address master; /* owned; host NULL: nowhere */
    int64_t epoch;             /* the configuration's, which each failover raises; -1: unknown */
    char who[HLI_WHERE_SIZE];  /* the sentinel */
    struct hli_id run;         /* the server's that the sentinel met there */
    hli_ns met_at;             /* when it asked that one last; or a moment earlier */
};

void hli_sentinel_word_init(struct hli_sentinel_word *word);
void hli_sentinel_word_deinit(struct hli_sentinel_word *word); /* as after init */
/* `from` is as after init then. */
void hli_sentinel_word_move(struct hli_sentinel_word *to, struct hli_sentinel_word *from);

struct hli_sentinel;

struct hli_sentinel_request {
    struct hli_op op;
    struct hli_sentinel *sentinel;
};

struct hli_sentinel {
    struct hli_inquiry inquiry;
    struct hli_sentinel_list *list;               /* borrowed; learns from what is not stale */
    void (*told)(struct hli_sentinel *sentinel);  /* it has answered all: `said`, or `err` */
    void (*moved)(struct hli_sentinel *sentinel); /* its message says that the master changes */

    bool has_answered;                     /* anything, on this connection */
    hli_ns login_ends;                     /* when to greet anew, with another login */
    const struct hli_sentinel_word *known; /* what counted when it was asked; borrowed */
    struct hli_id id;
    bool is_unmet; /* neither it nor a peer of its was met before */
    struct hli_sentinel_word said;
    hli_ns asked_at;
    char described[HLI_WHERE_SIZE]; /* where the master is that it knows more about than that */
    hl_error err;                   /* why this is of no use */
    hl_error unmapped;              /* why an address of its last list is of none */
    struct hli_sentinel_request request[HLI_SENTINEL_WORDS];
};

/* Of the setup all but `arg`, which is the sentinel then. */
void hli_sentinel_init(struct hli_sentinel *sentinel, const struct hli_inquiry_setup *setup);
void hli_sentinel_deinit(struct hli_sentinel *sentinel); /* closed */

/* The current one of the list: finds the login for it. */
void hli_sentinel_begin(struct hli_sentinel *sentinel);
/* On a new connection, or on one that has answered all. `known` is what counts so far. False: out
 * of memory, or the connection was closed. */
bool hli_sentinel_greet(struct hli_sentinel *sentinel, const struct hli_sentinel_word *known);
bool hli_sentinel_ask_again(struct hli_sentinel *sentinel, const struct hli_sentinel_word *known);

/* What it says is of an earlier epoch than what is known. */
bool hli_sentinel_is_stale(const struct hli_sentinel *sentinel);
/* Did the one that said this meet another server at the master's address than this, which ran there
 * already? So the address leads the two of us to two servers. One that was started since is no
 * other: it may be the same one, started anew. */
bool hli_sentinel_met_another(const struct hli_sentinel_word *word,
                              const struct hli_link_met *server);

/* It names another master than the one that is known, and is a stranger: by the same name, it
 * watches over somebody else's servers. */
bool hli_sentinel_is_strange(const struct hli_sentinel *sentinel);

/* It is of no use for this reason, unless there was one before. */
void hli_sentinel_blame(struct hli_sentinel *sentinel, int code, const char *text);

/* Events of the inquiry: the answer to AUTH, and a message. */
void hli_sentinel_on_auth(struct hli_inquiry *inquiry, const struct hli_answer *answer);
void hli_sentinel_on_message(struct hli_conn *conn, const struct hli_reply *reply);

#endif
