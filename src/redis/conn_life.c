/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A connection's life: it is opened, its requests are overdue, it is closed. */
#include "redis/conn.h"

#include "base/error.h"

#include <errno.h>
#include <event2/event.h>
#include <unistd.h>

/*
 * The time at which the oldest request in flight is overdue: the request timeout after it was sent,
 * or after the socket last accepted bytes of a backlog, because a large value may need longer than
 * that. If the server does not read, the socket accepts no more than the kernel's buffers. If no
 * request in flight is sent yet, the loop was held up (the process was stopped), and is to send
 * them now.
 */
static hli_ns conn_overdue_at(struct hli_conn *conn)
{
    hli_mutex_lock(&conn->mutex);
    struct hli_op *oldest = TAILQ_FIRST(&conn->in_flight);
    const struct hli_outbox *outbox = &conn->outbox;
    bool is_unsent = !outbox->rest.data && outbox->waiting_count >= conn->in_flight_count;
    hli_ns since = !oldest     ? 0
                   : is_unsent ? hli_now()
                               : hli_later(oldest->sent_at, outbox->progressed_at);
    hli_ns due = oldest ? hli_after_ms(since, conn->request_timeout_ms) : HLI_NEVER;
    conn->is_watched = oldest != NULL;
    hli_mutex_unlock(&conn->mutex);
    return due;
}

/* The oldest request is overdue, or the timer was set for a request that is answered by now. If the
 * process was stopped, answers may be in the socket: they are read before the connection closes. */
void hli_conn_time_out(void *arg)
{
    struct hli_conn *conn = arg;
    hli_ns due = conn_overdue_at(conn);
    hl_error err;

    while (due <= hli_now() && hli_conn_read(conn))
        due = conn_overdue_at(conn);
    if (!conn->readable)
        return; /* the read closed it */
    if (due > hli_now()) {
        if (due != HLI_NEVER)
            hli_timer_set(conn->loop, &conn->timeout, due);
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
    conn->readable = event_new(base, watched, EV_READ | EV_PERSIST, hli_conn_on_readable, conn);
    conn->writable = event_new(base, fd, EV_WRITE, hli_conn_on_writable, conn);
    return conn->readable && conn->writable && event_add(conn->readable, NULL) == 0;
}

int hli_conn_open(struct hli_conn *conn, int fd, struct hli_tls *tls)
{
    atomic_store(&conn->fd, fd);
    hli_mutex_lock(&conn->mutex);
    bool is_open = hli_reader_open(&conn->reader, fd, tls) == 0 && conn_open_events(conn, fd) &&
                   hli_outbox_open(&conn->outbox, fd, tls) == 0;
    conn->is_open = is_open;
    int reason = errno;
    if (!is_open) {
        atomic_store(&conn->fd, -1);
        conn_free_events(conn);
        hli_reader_close(&conn->reader);
    }
    hli_mutex_unlock(&conn->mutex);
    errno = reason;
    return is_open ? 0 : HL_ENOMEM;
}

void hli_conn_close(struct hli_conn *conn, const hl_error *err)
{
    struct hli_ops orphans = TAILQ_HEAD_INITIALIZER(orphans);
    struct hli_answer unknown = {.verdict = HLI_UNKNOWN, .code = err->code, .text = err->text};
    struct hli_op *op;

    hli_mutex_lock(&conn->mutex);
    bool was_open = conn->is_open;
    conn->is_open = conn->is_ready = false;
    conn->is_watched = conn->is_resting = false;
    if (was_open)
        hli_reader_take(&conn->reader, &conn->mutex); /* it may unlock the mutex */
    atomic_store(&conn->in_flight_count, 0);
    conn->oldest_replies = 0;
    hli_confirm_drop(&conn->confirm, &orphans);
    hli_ops_append(&orphans, &conn->in_flight);
    atomic_store(&conn->fd, -1);
    hli_mutex_unlock(&conn->mutex);
    if (!was_open)
        return;

    hli_timer_clear(conn->loop, &conn->timeout);
    hli_timer_clear(conn->loop, &conn->idle);
    conn_free_events(conn);
    hli_mutex_lock(&conn->mutex);
    hli_reader_close(&conn->reader);
    hli_outbox_close(&conn->outbox);
    hli_mutex_unlock(&conn->mutex);
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

void hli_conn_fail(struct hli_conn *conn, int code, const char *text)
{
    hl_error err;

    hli_fail(&err, code, "%s", text);
    hli_conn_close(conn, &err);
}
