/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The connection: socket, outbox, requests in flight; the loop's part of reading. */
#include "redis/conn.h"

#include "base/check.h"
#include "base/error.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char conn_asking[] = "*1\r\n$6\r\nASKING\r\n";

enum {
    CONN_CROWD = 16, /* so many requests in flight are many */
    CONN_CHUNK = 16, /* so many go out together then */
};

static void conn_flush(void *arg);
static void conn_read_on(void *arg);
static void conn_time_out(void *arg);
static void conn_check_rest(void *arg);

void hli_conn_init(struct hli_conn *conn, struct hli_loop *loop,
                   const struct hli_conn_events *events, void *arg)
{
    *conn = (struct hli_conn){.loop = loop, .events = events, .arg = arg};
    conn->flush = (struct hli_task){.run = conn_flush, .arg = conn};
    conn->read_on = (struct hli_task){.run = conn_read_on, .arg = conn};
    conn->timeout = (struct hli_timer){.run = conn_time_out, .arg = conn};
    conn->idle = (struct hli_timer){.run = conn_check_rest, .arg = conn};
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

unsigned hli_conn_in_flight(const struct hli_conn *conn)
{
    return atomic_load_explicit(&conn->in_flight_count, memory_order_relaxed);
}

static void conn_queue(struct hli_conn *conn, struct hli_op *op, hli_ns now)
{
    op->sent_at = now;
    atomic_store_explicit(&conn->in_flight_count,
                          atomic_load_explicit(&conn->in_flight_count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    TAILQ_INSERT_TAIL(&conn->in_flight, op, link);
    hli_outbox_put(&conn->outbox, op->bytes, op->length);
    if (conn->commands)
        atomic_fetch_add_explicit(conn->commands, 1, memory_order_relaxed);
}

unsigned hli_conn_unqueue(struct hli_conn *conn, struct hli_op *oldest)
{
    unsigned left = hli_conn_in_flight(conn) - 1;

    TAILQ_REMOVE(&conn->in_flight, oldest, link);
    atomic_store_explicit(&conn->in_flight_count, left, memory_order_relaxed);
    conn->oldest_replies = 0;
    return left;
}

/* A node that imports a slot has a term of its own: in its grace it gets no request for another. */
static bool conn_is_of_term(const struct hli_conn *conn, const struct hli_op *op,
                            enum hli_conn_when when, hli_ns now)
{
    return op->term == 0 || op->term == conn->term ||
           (when == HLI_CONN_ASKING && now >= conn->grace_until);
}

/*
 * When many requests are in flight, their senders are awake at about the same time. The first of
 * them leave their bytes to the sender that fills the chunk, or to the loop if none does. One write
 * for many requests halves the CPU time of both sides. With more than a chunk in one write, client
 * and server would take turns and idle.
 */
bool hli_conn_send(struct hli_conn *conn, struct hli_op *op, enum hli_conn_when when)
{
    hli_ns now = hli_now();

    op->sent_at = now;
    hli_mutex_lock(&conn->mutex);
    bool needs_ready = when == HLI_CONN_IF_READY || when == HLI_CONN_ASKING;
    if (!conn->is_open || (needs_ready && !conn->is_ready) || !hli_op_is_wanted(op) ||
        (op->term != conn->term && !conn_is_of_term(conn, op, when, now))) {
        hli_mutex_unlock(&conn->mutex);
        return false;
    }
    bool leaves_it = when == HLI_CONN_WITH_NEXT || (conn->in_flight_count >= CONN_CROWD &&
                                                    conn->outbox.waiting_count + 1 < CONN_CHUNK);
    hli_reader_expect(&conn->reader, conn->in_flight_count);
    op->is_asking = when == HLI_CONN_ASKING;
    if (op->is_asking)
        hli_outbox_put_before(&conn->outbox, conn_asking, sizeof(conn_asking) - 1);
    conn_queue(conn, op, now);
    struct hli_op *wait = op->replicas > 0 ? hli_confirm_sent(&conn->confirm, op) : NULL;
    if (wait)
        conn_queue(conn, wait, now);
    bool is_first = !conn->is_watched; /* one timer watches the oldest only */
    conn->is_watched = true;
    if (!leaves_it)
        hli_outbox_write(&conn->outbox, &conn->mutex); /* op may be freed from here on */
    bool needs_loop = hli_outbox_needs_loop(&conn->outbox);
    hli_mutex_unlock(&conn->mutex);

    if (needs_loop)
        hli_loop_post(conn->loop, &conn->flush);
    if (is_first)
        hli_timer_set(conn->loop, &conn->timeout, hli_after_ms(now, conn->request_timeout_ms));
    return true;
}

void hli_conn_set_majority(struct hli_conn *conn, unsigned majority)
{
    hli_mutex_lock(&conn->mutex);
    conn->confirm.majority = majority;
    hli_mutex_unlock(&conn->mutex);
}

void hli_conn_set_term(struct hli_conn *conn, unsigned term, hli_ns grace_until)
{
    hli_mutex_lock(&conn->mutex);
    conn->term = term;
    conn->grace_until = grace_until;
    hli_mutex_unlock(&conn->mutex);
}

void hli_conn_confirm(struct hli_conn *conn, const struct hli_answer *waited)
{
    struct hli_ops confirmed = TAILQ_HEAD_INITIALIZER(confirmed);

    hli_mutex_lock(&conn->mutex);
    struct hli_op *wait = hli_confirm_answered(&conn->confirm, &confirmed);
    if (wait) {
        conn_queue(conn, wait, hli_now());
        hli_outbox_write(&conn->outbox, &conn->mutex);
    }
    bool needs_loop = hli_outbox_needs_loop(&conn->outbox);
    hli_mutex_unlock(&conn->mutex);
    if (needs_loop)
        hli_loop_post(conn->loop, &conn->flush);
    hli_confirm_tell(&confirmed, waited);
}

void hli_conn_set_ready(struct hli_conn *conn)
{
    hli_mutex_lock(&conn->mutex);
    conn->is_ready = true;
    hli_mutex_unlock(&conn->mutex);
}

bool hli_conn_retire(struct hli_conn *conn)
{
    hli_mutex_lock(&conn->mutex);
    bool is_idle = TAILQ_EMPTY(&conn->in_flight);
    if (is_idle)
        conn->is_ready = false;
    hli_mutex_unlock(&conn->mutex);
    return is_idle;
}

static void conn_close_failed(struct hli_conn *conn)
{
    char reason[96];
    hl_error err;

    if (conn->reader.tls && hli_tls_problem(conn->reader.tls, &err))
        hli_conn_close(conn, &err);
    else if (conn->reader.failure == 0)
        hli_conn_fail(conn, HL_ECONN, "the server closed the connection");
    else
        hli_conn_fail(conn, HL_ECONN,
                      hli_error_reason(reason, sizeof(reason), conn->reader.failure));
}

/* With the role: delivers first the replies that a leader left. True when something was received,
 * and there may be more; false also when the connection is closed. */
static bool conn_read_more(struct hli_conn *conn)
{
    if (!hli_conn_tell_all(conn))
        return false;
    switch (hli_reader_receive(&conn->reader, false)) {
    case HLI_RECEIVED:
        if (!hli_conn_tell_all(conn))
            return false;
        if (!conn->reader.has_failed)
            return true;
        conn_close_failed(conn); /* TLS failed behind these replies, and no more will come */
        return false;
    case HLI_RECEIVED_FAILURE:
        conn_close_failed(conn);
        return false;
    default:
        return false;
    }
}

/* The loop has read everything: from now on the first thread takes the role. */
static void conn_end_reading(struct hli_conn *conn)
{
    hli_mutex_lock(&conn->mutex);
    if (conn->is_open) {
        hli_reader_leave(&conn->reader, HLI_READER_NOBODY);
        hli_reader_arm(&conn->reader);
    }
    hli_mutex_unlock(&conn->mutex);
}

/* The loop takes the role and reads. True when it read something, and there may be more. */
static bool conn_read(struct hli_conn *conn)
{
    hli_mutex_lock(&conn->mutex);
    bool is_open = conn->is_open;
    if (is_open)
        hli_reader_take(&conn->reader, &conn->mutex);
    hli_mutex_unlock(&conn->mutex);
    if (!is_open)
        return false;
    bool has_more = conn_read_more(conn);
    conn_end_reading(conn);
    return has_more;
}

static void conn_read_on(void *arg)
{
    conn_read(arg);
}

static void conn_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct hli_conn *conn = arg;

    (void)fd, (void)what;
    hli_mutex_lock(&conn->mutex);
    bool reads = hli_reader_try_take(&conn->reader);
    hli_mutex_unlock(&conn->mutex);
    if (!reads)
        return;
    conn_read_more(conn);
    conn_end_reading(conn);
}

/* Arms the reader if no caller has led since the last look. */
static void conn_check_rest(void *arg)
{
    struct hli_conn *conn = arg;

    hli_mutex_lock(&conn->mutex);
    bool rests_on = conn->is_open && conn->reader.was_led;
    conn->reader.was_led = false;
    conn->is_resting = rests_on;
    if (conn->is_open && !rests_on && conn->reader.role == HLI_READER_NOBODY)
        hli_reader_arm(&conn->reader);
    hli_mutex_unlock(&conn->mutex);
    if (rests_on)
        hli_timer_set(conn->loop, &conn->idle, hli_after_ms(hli_now(), HLI_CONN_REST_MS));
}

/* The server's last words before it hung up tell more than a failed write, so they are read first;
 * that may close the connection. */
static void conn_break_while_writing(struct hli_conn *conn)
{
    bool lacks_memory = conn->outbox.lacks_memory; /* no thread changes it once it is broken */
    hl_error err;

    conn_read(conn);
    if (conn->outbox.tls && hli_tls_problem(conn->outbox.tls, &err))
        hli_conn_close(conn, &err);
    else if (lacks_memory)
        hli_conn_fail(conn, HL_ENOMEM, "out of memory while writing");
    else
        hli_conn_fail(conn, HL_ECONN, "the connection broke while writing");
}

/* The loop's part of writing: the rest of writes that callers began. */
static void conn_flush(void *arg)
{
    struct hli_conn *conn = arg;

    hli_mutex_lock(&conn->mutex);
    conn->outbox.is_blocked = false;
    if (conn->is_open)
        hli_outbox_write(&conn->outbox, &conn->mutex);
    bool is_open = conn->is_open, is_broken = conn->outbox.is_broken;
    bool is_blocked = conn->outbox.is_blocked, needs_loop = hli_outbox_needs_loop(&conn->outbox);
    hli_mutex_unlock(&conn->mutex);

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

    while (due <= hli_now() && conn_read(conn))
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
    conn->readable = event_new(base, watched, EV_READ | EV_PERSIST, conn_on_readable, conn);
    conn->writable = event_new(base, fd, EV_WRITE, conn_on_writable, conn);
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
