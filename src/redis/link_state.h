/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A link from the inside, for the files that implement it: link.c has its states, link_connect.c an
 * attempt to connect, link_server.c what it knows of its server, link_life.c its timer; above them,
 * link_answers.c has its requests and what its connections tell, and lanes.c, on top, the links to
 * one server together. */
#ifndef HLI_REDIS_LINK_STATE_H
#define HLI_REDIS_LINK_STATE_H

#include "redis/dial.h"
#include "redis/handshake.h"
#include "redis/link.h"
#include "redis/loader.h"
#include "redis/relogin.h"

enum { HLI_LINK_COMMANDS, HLI_LINK_PUBSUB, HLI_LINK_CONNS };
enum { HLI_LINK_KEEPALIVE_MS = 5000 };
enum hli_link_state {
    HLI_LINK_STOPPED,
    HLI_LINK_WAITING,
    HLI_LINK_LOCATING,
    HLI_LINK_LOGIN,
    HLI_LINK_DIALLING,
    HLI_LINK_HANDSHAKE,
    HLI_LINK_UP,
    HLI_LINK_BROKEN
};

struct hli_lanes;

struct hli_link_events { /* what a link tells its lanes, on the loop thread */
    /* Before each attempt to connect: finds the address, and ends in hli_link_located(). */
    void (*locate)(struct hli_link *link);
    void (*up)(struct hli_link *link);
    /* The link was up and is lost, or an attempt has failed. Its requests have ended. */
    void (*settled)(struct hli_link *link, bool was_up, const hl_error *err);
    /* The server must not be used, for this reason: closes this link, and the others to it. */
    void (*unusable)(struct hli_link *link, const hl_error *err);
    const struct hli_conn_events *conn; /* of each of the link's connections */
};

struct hli_link {
    struct hli_loop *loop; /* immutable after new, as the next */
    const struct hli_dialler *dialler;
    const hl_client_options *settings;
    const struct hli_url *url;
    struct hli_link_listener listener;
    atomic_uint_fast64_t *ups, *first_ups; /* NULL: it is not counted */
    struct hli_link *first;                /* the one with the subscriptions; may be itself */
    struct hli_lanes *lanes;               /* lanes_state.h */
    const struct hli_link_events *events;
    atomic_bool is_up; /* for threads that choose a lane; the loop thread sets it, as the next */
    atomic_uint_fast64_t server; /* a number of the run id that was told last; 0: none was */
    _Atomic(hli_ns) server_began, data_began;
    atomic_int keeps; /* hli_link_keeps; UNKNOWN again with each connect, or without an answer */
    struct hli_task ask_keeps;
    struct hli_op keeps_op; /* in flight while it is ASKED, after the task has run */
    struct hli_term term;

    hli_mutex mutex;            /* guards the next four, which the loop thread sets */
    char where[HLI_WHERE_SIZE]; /* the address in words */
    hl_error problem;           /* the reason why the link is not up; code 0 when it is up */
    bool has_failed;            /* the last attempt to connect, for that reason */
    bool is_retired;            /* what is sent here goes to the first link */

    enum hli_link_state state;  /* loop thread, as all below */
    struct hli_address address; /* owned; host NULL: not located yet */
    hli_ns up_since;            /* the last time; 0: never */
    int64_t keepalive_ms;
    struct hli_conn conn[HLI_LINK_CONNS];
    struct hli_handshake handshake[HLI_LINK_CONNS];
    unsigned ready; /* connections dialled, then handshaken */
    struct hli_dial *dial;
    struct hli_dial_peer peer; /* of this attempt to connect */
    atomic_int dialled;        /* its socket; read by a forked child */
    struct hli_pubsub pubsub;
    struct hli_op kill; /* of its past connection, by the first one; has bytes while in flight */
    struct hli_loader loader;
    struct hli_login_ask login;
    struct hli_relogin relogin;
    unsigned attempts; /* to connect, since the last success */
    bool is_in_hurry;  /* the next attempt comes without a pause */
    /* BROKEN: settle; WAITING: dial; LOGIN, DIALLING, HANDSHAKE: give up; UP: keepalive. */
    struct hli_timer timer;
};

/* Events of each of its connections; of a foreign lane's. */
extern const struct hli_conn_events hli_link_conn_events[HLI_LINK_CONNS];
extern const struct hli_conn_events hli_link_foreign_events[HLI_LINK_CONNS];

/* A link to the server of this first one; first NULL: the link is the first. NULL when memory is
 * out. */
struct hli_link *hli_link_new(const struct hli_link_setup *setup, struct hli_link *first,
                              struct hli_lanes *lanes, const struct hli_link_events *events);
void hli_link_free(struct hli_link *link);    /* stopped; NULL is fine */
void hli_link_abandon(struct hli_link *link); /* in a forked child */

static inline struct hli_term_options hli_link_graceful(const struct hli_link *link)
{
    const hl_client_options *settings = link->settings;

    return (struct hli_term_options){settings->failover_grace_ms, settings->old_master_ms};
}

static inline bool hli_link_is_first(const struct hli_link *link)
{
    return link->first == link;
}

/* Closes its connections for this reason; does nothing when that has happened. Loop thread, as all
 * below. */
void hli_link_break(struct hli_link *link, const hl_error *err);
void hli_link_fail(struct hli_link *link, int code, const char *text);

void hli_link_set_problem(struct hli_link *link, const hl_error *err, bool has_failed);

/* What no text of an error may repeat; borrowed, NULL: nothing. */
void hli_link_hide(struct hli_link *link, const char *secret);

/* Begins an attempt to connect, which ends in hli_link_come_up() or hli_link_break(). */
void hli_link_connect(struct hli_link *link);
void hli_link_come_up(struct hli_link *link);
void hli_link_on_login(struct hli_login_ask *ask, const hl_error *err);

/* Errors: HL_ENOMEM: the address stays. */
int hli_link_set_address(struct hli_link *link, const struct hli_address *address);

/* Is the server that the handshake met the one that the listener means? Else err says why not. */
bool hli_link_is_meant(struct hli_link *link, hl_error *ret_err);
/* Takes over what the server said of itself in the handshake; before the link is up. */
void hli_link_meet_server(struct hli_link *link);
/* Passes on what it said of its replicas. */
void hli_link_tell_offsets(struct hli_link *link, const struct hli_handshake *said);

/* Ends LOCATING: the link logs in and dials this address (borrowed), or the attempt has failed. */
void hli_link_located(struct hli_link *link, const struct hli_address *address,
                      const hl_error *err);
void hli_link_stop(struct hli_link *link, int code, const char *reason);

/* Stops a link that has no request in flight; a thread that has it in hand sends by the first one
 * from now on. False: it goes on. */
bool hli_link_retire(struct hli_link *link);

void hli_link_init_keeps(struct hli_link *link);

/* True if this link and the first one, or the two connections of the first one, reached different
 * servers, as behind a load balancer; told by their run ids, and by the ids of a cluster's nodes.
 */
bool hli_link_is_split(const struct hli_link *link);

#endif
