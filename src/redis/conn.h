/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A connection: one socket to the server, the requests that are in flight on it in order, and the
 * reader of their replies. Any thread sends, and writes its bytes itself unless somebody is at it
 * (outbox.h); the loop writes what the socket did not take at once. The loop reads, or a caller
 * that waits for the only request in flight (reader.h, lead.h). Every reply completes the oldest
 * request in flight, but for pub/sub messages.
 *
 * A request without a reply for the request timeout drops the connection: libevent's and hiredis'
 * own timers restart with every send, and so never fire under load.
 */
#ifndef HLI_REDIS_CONN_H
#define HLI_REDIS_CONN_H

#include "redis/loop.h"
#include "redis/op.h"
#include "redis/outbox.h"
#include "redis/reader.h"

#include <pthread.h>
#include <stdatomic.h>

struct event;
struct hli_conn;

struct hli_conn_events { /* on the loop thread */
    void (*message)(struct hli_conn *conn, const struct hli_reply *reply);
    /* Before the request's own completion. May change the answer. */
    void (*answered)(struct hli_conn *conn, const struct hli_op *op, struct hli_answer *answer);
    /* After it was closed, before its requests in flight end as HLI_UNKNOWN. */
    void (*closed)(struct hli_conn *conn, const hl_error *err);
    /* May this answer be told at once in the thread of a caller that has read it, without
     * `answered`? Any thread, with the connection's mutex. Of one that may be led. */
    bool (*is_plain)(struct hli_conn *conn, const struct hli_op *op,
                     const struct hli_answer *answer);
    /* The same of a message; then it is led for messages, and not for answers. Any thread, without
     * the mutex. */
    bool (*is_plain_message)(struct hli_conn *conn, const struct hli_reply *reply);
};

struct hli_lead_polling { /* of whoever leads */
    int64_t ns;           /* how long, before it sleeps; 0: not at all. Immutable */
    unsigned in_vain;     /* such polls in a row */
    unsigned pause,
        left_out; /* how many times it is not tried then, and how many of them are left */
};

struct hli_conn {
    struct hli_loop *loop; /* immutable after init */
    const struct hli_conn_events *events;
    void *arg;
    int64_t request_timeout_ms;
    const char *secret;             /* stands in no text; borrowed, may be NULL */
    atomic_uint_fast64_t *commands; /* counts what is sent; may be NULL */

    struct event *readable, *writable; /* loop thread */
    struct hli_task flush, read_on;
    struct hli_timer patience, idle;
    struct hli_lead_polling polling;

    atomic_int fd;         /* changed under the mutex; read by a forked child */
    pthread_mutex_t mutex; /* guards the rest */
    bool is_open;
    bool is_ready;   /* greeted: others than the link itself may use it */
    bool is_watched; /* patience is set */
    bool is_resting; /* so is idle: the reader is to be armed when nobody leads any more */
    struct hli_reader reader;
    struct hli_outbox outbox;
    struct hli_ops in_flight;
    unsigned in_flight_count;
    unsigned oldest_replies; /* how many of its replies the oldest one in flight has had */
};

/* May be led when the events say which answers are plain. */
void hli_conn_init(struct hli_conn *conn, struct hli_loop *loop,
                   const struct hli_conn_events *events, void *arg);
/* Closed by now. */
void hli_conn_deinit(struct hli_conn *conn);

/* Takes over a connected socket. Loop thread. Errors: HL_ENOMEM, the socket is the caller's still,
 * and errno says what ran out. */
int hli_conn_open(struct hli_conn *conn, int fd);

/* Closes it, reports `closed`, and ends what is in flight. Loop thread. A closed one stays closed,
 * without a report. */
void hli_conn_close(struct hli_conn *conn, const hl_error *err);

/* Any thread. False when it is not open: nothing was sent, and done will not run. */
bool hli_conn_send(struct hli_conn *conn, struct hli_op *op);

/* The same, but false too as long as it is not ready: before AUTH and SELECT nothing may go out. */
bool hli_conn_send_if_ready(struct hli_conn *conn, struct hli_op *op);
/* Written by the loop a moment later, in one piece with what is sent in between: the server then
 * runs them back to back. */
bool hli_conn_send_with_next(struct hli_conn *conn, struct hli_op *op);
void hli_conn_set_ready(struct hli_conn *conn); /* until it is closed */

/* In a forked child: closes the socket, without a word to anybody. */
void hli_conn_abandon(struct hli_conn *conn);

#endif
