/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A connection: one socket to the server, the requests that are in flight on it in order, and the
 * reader of their replies. Any thread sends, and writes its bytes itself unless another thread is
 * writing (outbox.h); the loop writes the bytes that the socket did not accept at once. The loop
 * reads, or a caller that blocks for its own request (reader.h, lead.h). Every reply but a pub/sub
 * message completes the oldest request in flight.
 *
 * A request without a reply for the request timeout closes the connection. The timers of libevent
 * and hiredis restart with every send, and so never fire under load.
 */
#ifndef HLI_REDIS_CONN_H
#define HLI_REDIS_CONN_H

#include "base/thread.h"
#include "redis/confirm.h"
#include "redis/loop.h"
#include "redis/op.h"
#include "redis/outbox.h"
#include "redis/reader.h"

#include <stdatomic.h>

struct event;
struct hli_conn;

struct hli_conn_events { /* on the loop thread */
    void (*message)(struct hli_conn *conn, const struct hli_reply *reply);
    /* Takes a reply that is no answer to the oldest request in flight (NULL: there is none), though
     * it looks like one. NULL: all are answers. */
    bool (*unasked)(struct hli_conn *conn, const struct hli_reply *reply,
                    const struct hli_op *oldest);
    /* Runs before the request's own completion. May change the answer. True: the request was sent
     * to another connection, and has not ended. NULL: nothing to do. */
    bool (*answered)(struct hli_conn *conn, struct hli_op *op, struct hli_answer *answer);
    /* Runs after the close, before the requests in flight end as HLI_UNKNOWN. */
    void (*closed)(struct hli_conn *conn, const hl_error *err);
    /* True if a caller that has read this answer may deliver it on its own thread, without
     * `answered`. Any thread, with the connection's mutex. NULL: callers may not lead. */
    bool (*is_plain)(const struct hli_op *op, const struct hli_reply *reply);
    /* The same for a message. When it is set, callers lead for messages, not for answers. Any
     * thread, without the mutex. */
    bool (*is_plain_message)(struct hli_conn *conn, const struct hli_reply *reply);
};

struct hli_lead_polling { /* used by the leader only */
    int64_t ns;           /* duration of a busy poll; 0: none. Immutable */
    unsigned in_vain;     /* polls in vain, in a row */
    unsigned pause,
        left_out; /* how many times a leader skips the poll, and how many of these are left */
};

/* A connection that is led now and then is not armed each time in between. */
enum { HLI_CONN_REST_MS = 10 };

struct hli_conn {
    struct hli_loop *loop; /* immutable after init */
    const struct hli_conn_events *events;
    void *arg;
    int64_t request_timeout_ms;
    const char *secret;             /* hidden in every text; borrowed, may be NULL */
    atomic_uint_fast64_t *commands; /* counter of sent requests; may be NULL */

    struct event *readable, *writable; /* loop thread */
    struct hli_task flush, read_on;
    struct hli_timer timeout, idle;
    struct hli_lead_polling polling;

    atomic_int fd;   /* changed under the mutex; read by a forked child */
    hli_mutex mutex; /* guards the rest */
    bool is_open;
    bool is_ready;   /* handshaken: any object may send, not the link only */
    bool is_watched; /* `timeout` is set */
    bool is_resting; /* `idle` is set: it arms the reader when no caller leads any more */
    struct hli_reader reader;
    struct hli_outbox outbox;
    struct hli_ops in_flight;
    struct hli_confirm confirm;
    unsigned term; /* of its server (term.h); 0: without */
    hli_ns grace_until;
    atomic_uint in_flight_count; /* changed under the mutex */
    unsigned oldest_replies;     /* replies to the oldest request in flight so far */
};

/* Callers may lead it if `events` has is_plain or is_plain_message. */
void hli_conn_init(struct hli_conn *conn, struct hli_loop *loop,
                   const struct hli_conn_events *events, void *arg);
/* The connection must be closed. */
void hli_conn_deinit(struct hli_conn *conn);

/* Takes over a connected socket, and a reference of its own on the TLS, which may be NULL. Loop
 * thread. Errors: HL_ENOMEM: the socket still belongs to the caller, and errno has the reason. */
int hli_conn_open(struct hli_conn *conn, int fd, struct hli_tls *tls);

/* Closes the connection, calls `closed`, and ends the requests in flight. Does nothing when it is
 * closed already. Loop thread. */
void hli_conn_close(struct hli_conn *conn, const hl_error *err);

enum hli_conn_when {
    HLI_CONN_AT_ONCE,
    HLI_CONN_IF_READY,  /* only after the handshake: AUTH and SELECT go first */
    HLI_CONN_ASKING,    /* if ready, and behind ASKING, in one piece; its answer is skipped */
    HLI_CONN_WITH_NEXT, /* the loop writes it a moment later, in one piece with the requests that
                           follow: the server then runs them back to back */
};

/* Any thread. False when the connection is not open or not ready, or the request is not wanted any
 * more, or was decided for another term: then nothing was sent, and done will not run. */
bool hli_conn_send(struct hli_conn *conn, struct hli_op *op, enum hli_conn_when when);
void hli_conn_set_ready(struct hli_conn *conn); /* until it is closed */
/* The opposite, if no request is in flight. Returns if that is so. */
bool hli_conn_retire(struct hli_conn *conn);

/* So many of the master's replicas are a majority; 0: it does not tell. Any thread. */
void hli_conn_set_majority(struct hli_conn *conn, unsigned majority);

/* The term of its server, and until when its grace lasts. Before the connection is ready. */
void hli_conn_set_term(struct hli_conn *conn, unsigned term, hli_ns grace_until);

/* How many requests are in flight now. Any thread. */
unsigned hli_conn_in_flight(const struct hli_conn *conn);

/* With the mutex and the role: the oldest request in flight has its answer. Returns how many are
 * left. */
unsigned hli_conn_unqueue(struct hli_conn *conn, struct hli_op *oldest);

/* hli_conn_close() for this reason. */
void hli_conn_fail(struct hli_conn *conn, int code, const char *text);

/* With the role: the WAIT was answered. Ends the requests that it confirms. */
void hli_conn_confirm(struct hli_conn *conn, const struct hli_answer *waited);

/* In a forked child: closes the socket and sends nothing. */
void hli_conn_abandon(struct hli_conn *conn);

/* For conn_life.c, as all below. Takes the role and reads: true when something was read, and there
 * may be more. Loop thread. */
bool hli_conn_read(struct hli_conn *conn);
void hli_conn_on_readable(int fd, short what, void *conn);
void hli_conn_on_writable(int fd, short what, void *conn);
void hli_conn_init_tasks(struct hli_conn *conn);
void hli_conn_free_events(struct hli_conn *conn);

#endif
