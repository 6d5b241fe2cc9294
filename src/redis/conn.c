/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The connection: socket, outbox, requests in flight. */
#include "redis/conn.h"

#include "base/check.h"
#include "base/error.h"
#include "redis/inbox.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONN_CROWD = 16, /* so many requests in flight are many */
    CONN_CHUNK = 16, /* so many go out together then */
};

static void conn_flush(void *arg);
static void conn_lose_patience(void *arg);

void hli_conn_init(struct hli_conn *conn, struct hli_loop *loop,
                   const struct hli_conn_events *events, void *arg)
{
    *conn = (struct hli_conn){.loop = loop, .events = events, .arg = arg};
    conn->flush = (struct hli_task){.run = conn_flush, .arg = conn};
    conn->read_on = (struct hli_task){.run = hli_inbox_read_on, .arg = conn};
    conn->patience = (struct hli_timer){.run = conn_lose_patience, .arg = conn};
    conn->idle = (struct hli_timer){.run = hli_inbox_look_at_rest, .arg = conn};
    atomic_init(&conn->fd, -1);
    pthread_mutex_init(&conn->mutex, NULL);
    hli_outbox_init(&conn->outbox);
    hli_reader_init(&conn->reader, events->is_plain || events->is_plain_message);
    TAILQ_INIT(&conn->in_flight);
}

void hli_conn_deinit(struct hli_conn *conn)
{
    HLI_CHECK(!conn->is_open && TAILQ_EMPTY(&conn->in_flight));
    hli_outbox_deinit(&conn->outbox);
    hli_reader_deinit(&conn->reader);
    pthread_mutex_destroy(&conn->mutex);
}

enum conn_when { CONN_AT_ONCE, CONN_IF_READY, CONN_WITH_NEXT };

/* Is the request the first to be waited for? Then patience is to be set, for one timer watches the
 * oldest only. */
static bool conn_watch(struct hli_conn *conn)
{
    bool fresh = !conn->is_watched;

    conn->is_watched = true;
    return fresh;
}

/*
 * When many requests are in flight, their senders are awake at about the same time: the first of
 * them leave their bytes to the one who fills the chunk, or to the loop if none does. One write for
 * many halves the CPU time of both sides; more than a chunk at once would let the server idle while
 * we work, and us while it does.
 */
static bool conn_leaves_it(const struct hli_conn *conn, enum conn_when when)
{
    return when == CONN_WITH_NEXT ||
           (conn->in_flight_count >= CONN_CROWD && conn->outbox.waiting_count + 1 < CONN_CHUNK);
}

static bool conn_send(struct hli_conn *conn, struct hli_op *op, enum conn_when when)
{
    op->sent_at = hli_now();
    hli_ns patience = hli_after_ms(op->sent_at, conn->request_timeout_ms);
    pthread_mutex_lock(&conn->mutex);
    if (!conn->is_open || (when == CONN_IF_READY && !conn->is_ready)) {
        pthread_mutex_unlock(&conn->mutex);
        return false;
    }
    bool leaves_it = conn_leaves_it(conn, when);
    hli_reader_expect(&conn->reader, conn->in_flight_count);
    conn->in_flight_count++;
    TAILQ_INSERT_TAIL(&conn->in_flight, op, link);
    hli_outbox_put(&conn->outbox, op->bytes, op->length);
    bool fresh = conn_watch(conn);
    if (!leaves_it)
        hli_outbox_write(&conn->outbox, &conn->mutex); /* from here on op may be gone */
    bool needs_loop = hli_outbox_needs_loop(&conn->outbox);
    pthread_mutex_unlock(&conn->mutex);

    if (conn->commands)
        atomic_fetch_add_explicit(conn->commands, 1, memory_order_relaxed);
    if (needs_loop)
        hli_loop_post(conn->loop, &conn->flush);
    if (fresh)
        hli_timer_set(conn->loop, &conn->patience, patience);
    return true;
}

bool hli_conn_send(struct hli_conn *conn, struct hli_op *op)
{
    return conn_send(conn, op, CONN_AT_ONCE);
}

bool hli_conn_send_if_ready(struct hli_conn *conn, struct hli_op *op)
{
    return conn_send(conn, op, CONN_IF_READY);
}

bool hli_conn_send_with_next(struct hli_conn *conn, struct hli_op *op)
{
    return conn_send(conn, op, CONN_WITH_NEXT);
}

void hli_conn_set_ready(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    conn->is_ready = true;
    pthread_mutex_unlock(&conn->mutex);
}

/* What the server said before it hung up tells more than a failed write; reading it may close the
 * connection. */
static void conn_break_while_writing(struct hli_conn *conn)
{
    bool lacks_memory = conn->outbox.lacks_memory; /* nobody else changes it once it is broken */
    hl_error err;

    hli_inbox_read(conn);
    if (lacks_memory)
        hli_fail(&err, HL_ENOMEM, "out of memory while writing");
    else
        hli_fail(&err, HL_ECONN, "the connection broke while writing");
    hli_conn_close(conn, &err);
}

/* The loop's part of writing: the rest of what callers began. */
static void conn_flush(void *arg)
{
    struct hli_conn *conn = arg;

    pthread_mutex_lock(&conn->mutex);
    hli_outbox_unblock(&conn->outbox);
    if (conn->is_open)
        hli_outbox_write(&conn->outbox, &conn->mutex);
    bool is_open = conn->is_open, is_broken = conn->outbox.is_broken;
    bool is_blocked = conn->outbox.is_blocked, needs_loop = hli_outbox_needs_loop(&conn->outbox);
    pthread_mutex_unlock(&conn->mutex);

    if (is_open && is_broken)
        conn_break_while_writing(conn);
    else if (is_open && is_blocked)
        event_add(conn->writable, NULL);
    else if (needs_loop)
        hli_loop_post(conn->loop, &conn->flush);
}

static void conn_on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    conn_flush(arg);
}

/* When the oldest request in flight will have waited too long. */
static hli_ns conn_overdue_at(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    struct hli_op *oldest = TAILQ_FIRST(&conn->in_flight);
    hli_ns due = oldest ? hli_after_ms(oldest->sent_at, conn->request_timeout_ms) : HLI_NEVER;
    conn->is_watched = oldest != NULL;
    pthread_mutex_unlock(&conn->mutex);
    return due;
}

/* The oldest request has waited too long, or the timer was set for one that is answered by now. If
 * the process stood still, answers may lie in the socket: they are read before it is given up. */
static void conn_lose_patience(void *arg)
{
    struct hli_conn *conn = arg;
    hli_ns due = conn_overdue_at(conn);
    hl_error err;

    while (due <= hli_now() && hli_inbox_read(conn))
        due = conn_overdue_at(conn);
    if (!conn->readable)
        return; /* what was read closed it */
    if (due > hli_now()) {
        if (due != HLI_NEVER)
            hli_timer_set(conn->loop, &conn->patience, due);
        return;
    }
    hli_fail(&err, HL_ECONN, "no reply within %lld ms", (long long)conn->request_timeout_ms);
    hli_conn_close(conn, &err);
}

static void conn_free_events(struct hli_conn *conn)
{
    if (conn->readable)
        event_free(conn->readable);
    if (conn->writable)
        event_free(conn->writable);
    conn->readable = conn->writable = NULL;
}

static bool conn_open_events(struct hli_conn *conn, int fd)
{
    struct event_base *base = hli_loop_base(conn->loop);
    int watched = hli_reader_watched(&conn->reader);
    conn->readable = event_new(base, watched, EV_READ | EV_PERSIST, hli_inbox_on_readable, conn);
    conn->writable = event_new(base, fd, EV_WRITE, conn_on_writable, conn);
    return conn->readable && conn->writable && event_add(conn->readable, NULL) == 0;
}

int hli_conn_open(struct hli_conn *conn, int fd)
{
    atomic_store(&conn->fd, fd);
    pthread_mutex_lock(&conn->mutex);
    bool is_open = hli_reader_open(&conn->reader, fd) == 0 && conn_open_events(conn, fd) &&
                   hli_outbox_open(&conn->outbox, fd) == 0;
    conn->is_open = is_open;
    int reason = errno;
    if (!is_open) {
        atomic_store(&conn->fd, -1);
        conn_free_events(conn);
        hli_reader_close(&conn->reader);
    }
    pthread_mutex_unlock(&conn->mutex);
    errno = reason;
    return is_open ? 0 : HL_ENOMEM;
}

void hli_conn_close(struct hli_conn *conn, const hl_error *err)
{
    struct hli_ops orphans = TAILQ_HEAD_INITIALIZER(orphans);
    struct hli_answer unknown = {.verdict = HLI_UNKNOWN, .code = err->code, .text = err->text};
    struct hli_op *op;

    pthread_mutex_lock(&conn->mutex);
    bool was_open = conn->is_open;
    conn->is_open = conn->is_ready = false;
    conn->is_watched = conn->is_resting = false;
    if (was_open)
        hli_reader_take(&conn->reader, &conn->mutex); /* it may let go of the mutex */
    conn->in_flight_count = conn->oldest_replies = 0;
    while ((op = TAILQ_FIRST(&conn->in_flight))) {
        TAILQ_REMOVE(&conn->in_flight, op, link);
        TAILQ_INSERT_TAIL(&orphans, op, link);
    }
    atomic_store(&conn->fd, -1);
    pthread_mutex_unlock(&conn->mutex);
    if (!was_open)
        return;

    hli_timer_clear(conn->loop, &conn->patience);
    hli_timer_clear(conn->loop, &conn->idle);
    conn_free_events(conn);
    pthread_mutex_lock(&conn->mutex);
    hli_reader_close(&conn->reader);
    hli_outbox_close(&conn->outbox);
    pthread_mutex_unlock(&conn->mutex);
    conn->events->closed(conn, err);
    while ((op = TAILQ_FIRST(&orphans))) {
        TAILQ_REMOVE(&orphans, op, link);
        op->done(op, &unknown);
    }
}

void hli_conn_abandon(struct hli_conn *conn)
{
    int fd = atomic_exchange(&conn->fd, -1);

    hli_reader_abandon(&conn->reader);
    if (fd >= 0)
        close(fd);
}
