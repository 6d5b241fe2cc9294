/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A connection's life: it is opened, its requests are overdue, it is left in a forked child. */
#include "redis/conn.h"

#include "base/check.h"
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
static void conn_time_out(void *arg)
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

void hli_conn_init(struct hli_conn *conn, struct hli_loop *loop,
                   const struct hli_conn_events *events, void *arg)
{
    *conn = (struct hli_conn){.loop = loop, .events = events, .arg = arg};
    hli_conn_init_tasks(conn);
    conn->timeout = (struct hli_timer){.run = conn_time_out, .arg = conn};
    atomic_init(&conn->fd, -1);
    hli_mutex_init(&conn->mutex);
    hli_outbox_init(&conn->outbox);
    hli_reader_init(&conn->reader, events->is_plain || events->is_plain_message);
    TAILQ_INIT(&conn->in_flight);
    hli_confirm_init(&conn->confirm);
}

void hli_conn_deinit(struct hli_conn *conn)
{
    HLI_CHECK(!conn->is_open && TAILQ_EMPTY(&conn->in_flight));
    hli_outbox_deinit(&conn->outbox);
    hli_reader_deinit(&conn->reader);
    hli_mutex_deinit(&conn->mutex);
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
        hli_conn_free_events(conn);
        hli_reader_close(&conn->reader);
    }
    hli_mutex_unlock(&conn->mutex);
    errno = reason;
    return is_open ? 0 : HL_ENOMEM;
}

void hli_conn_abandon(struct hli_conn *conn)
{
    int fd = atomic_exchange(&conn->fd, -1);

    hli_reader_abandon(&conn->reader);
    if (fd >= 0)
        close(fd);
}
