/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The connection: socket, output buffer, requests in flight. */
#include "redis/conn.h"

#include "base/check.h"
#include "base/error.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONN_READ_BYTES = 16 * 1024 };

static void conn_flush(void *arg);
static bool conn_read(struct hli_conn *conn);
static void conn_lose_patience(void *arg);

void hli_conn_init(struct hli_conn *conn, struct hli_loop *loop,
                   const struct hli_conn_events *events, void *arg)
{
    *conn = (struct hli_conn){.loop = loop, .events = events, .arg = arg};
    conn->flush = (struct hli_task){.run = conn_flush, .arg = conn};
    conn->patience = (struct hli_timer){.run = conn_lose_patience, .arg = conn};
    atomic_init(&conn->fd, -1);
    pthread_mutex_init(&conn->mutex, NULL);
    TAILQ_INIT(&conn->in_flight);
}

void hli_conn_deinit(struct hli_conn *conn)
{
    HLI_CHECK(!conn->is_open && TAILQ_EMPTY(&conn->in_flight));
    hli_buffer_deinit(&conn->out);
    pthread_mutex_destroy(&conn->mutex);
}

enum conn_when { CONN_AT_ONCE, CONN_IF_READY, CONN_WITH_NEXT };

/* Runs with the mutex. What the kernel does not take at once, or is to wait for the next, stays in
 * the buffer; a broken connection is left to the loop. */
static void conn_write(struct hli_conn *conn, const char *bytes, size_t length, enum conn_when when)
{
    ssize_t sent = 0;

    if (conn->is_broken)
        return;
    if (hli_buffer_length(&conn->out) == 0 && when != CONN_WITH_NEXT) {
        do {
            sent = send(conn->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        } while (sent < 0 && errno == EINTR);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            conn->is_broken = true;
        sent = sent < 0 ? 0 : sent;
    }
    if (!conn->is_broken && (size_t)sent < length &&
        hli_buffer_append(&conn->out, bytes + sent, length - (size_t)sent) < 0)
        conn->is_broken = true; /* half a command is out: nothing more may follow it */
}

/* Is the request the first to be waited for? Then patience is to be set, for one timer watches the
 * oldest only. */
static bool conn_watch(struct hli_conn *conn)
{
    bool fresh = !conn->is_watched;

    conn->is_watched = true;
    return fresh;
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
    TAILQ_INSERT_TAIL(&conn->in_flight, op, link);
    conn_write(conn, op->bytes, op->length, when);
    bool needs_loop = conn->is_broken || hli_buffer_length(&conn->out) > 0;
    bool fresh = conn_watch(conn);
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
    hl_error err;

    conn_read(conn);
    hli_fail(&err, HL_ECONN, "the connection broke while writing");
    hli_conn_close(conn, &err);
}

/* The loop's part of writing: the rest of what callers began. */
static void conn_flush(void *arg)
{
    struct hli_conn *conn = arg;

    pthread_mutex_lock(&conn->mutex);
    size_t left = hli_buffer_length(&conn->out);
    if (conn->is_open && !conn->is_broken && left > 0) {
        ssize_t sent =
            send(conn->fd, hli_buffer_front(&conn->out), left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            hli_buffer_consume(&conn->out, (size_t)sent);
        else if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            conn->is_broken = true;
    }
    bool is_open = conn->is_open, broken = conn->is_broken;
    left = hli_buffer_length(&conn->out);
    pthread_mutex_unlock(&conn->mutex);

    if (is_open && broken) {
        conn_break_while_writing(conn);
    } else if (is_open && left > 0) {
        event_add(conn->writable, NULL);
    }
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

    while (due <= hli_now() && conn_read(conn))
        due = conn_overdue_at(conn);
    if (!conn->parser)
        return; /* what was read closed it */
    if (due > hli_now()) {
        if (due != HLI_NEVER)
            hli_timer_set(conn->loop, &conn->patience, due);
        return;
    }
    hli_fail(&err, HL_ECONN, "no reply within %lld ms", (long long)conn->request_timeout_ms);
    hli_conn_close(conn, &err);
}

static struct hli_op *conn_take_oldest(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    struct hli_op *op = TAILQ_FIRST(&conn->in_flight);
    if (op)
        TAILQ_REMOVE(&conn->in_flight, op, link);
    pthread_mutex_unlock(&conn->mutex);
    return op;
}

static bool conn_is_message(const struct hli_reply *reply)
{
    const struct hli_reply *kind = hli_reply_text_at(reply, 0);

    return kind && strcmp(kind->text, "message") == 0;
}

static struct hli_answer conn_answer(const struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_answer answer = hli_answer_from(reply);

    hli_answer_hide(&answer, conn->secret);
    return answer;
}

/* A reply that nobody asked for. An error is what a server says before it hangs up, such as "max
 * number of clients reached"; anything else is not Redis. */
static void conn_refuse_surplus(struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_answer answer = conn_answer(conn, reply);
    hl_error err;

    if (answer.verdict == HLI_REPLIED)
        hli_fail(&err, HL_EPROTO, "a reply that belongs to no request");
    else
        hli_fail(&err, answer.code, "%s", answer.text);
    hli_conn_close(conn, &err);
}

static void conn_dispatch(struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_op *op;

    if (conn->events->message && conn_is_message(reply)) {
        conn->events->message(conn, reply);
    } else if ((op = conn_take_oldest(conn))) {
        struct hli_answer answer = conn_answer(conn, reply);
        conn->events->answered(conn, op, &answer);
        op->done(op, &answer);
    } else {
        conn_refuse_surplus(conn, reply);
    }
}

static void conn_parse(struct hli_conn *conn, const char *bytes, size_t length)
{
    struct hli_reply *reply = NULL;
    int rc = hli_parser_feed(conn->parser, bytes, length);
    hl_error err;

    /* A completion may close the connection, and the parser with it. */
    while (rc == 0 && (rc = hli_parser_next(conn->parser, &reply)) == 0 && reply) {
        conn_dispatch(conn, reply);
        hli_reply_free(reply);
        if (!conn->parser)
            return;
    }
    if (rc < 0) {
        hli_fail(&err, rc,
                 rc == HL_ENOMEM ? "out of memory while reading" : "the peer does not speak Redis");
        hli_conn_close(conn, &err);
    }
}

/* True when there was something, and there may be more; false when it is closed, too. */
static bool conn_read(struct hli_conn *conn)
{
    char bytes[CONN_READ_BYTES];
    hl_error err;

    ssize_t got = recv(conn->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) {
        conn_parse(conn, bytes, (size_t)got);
        return conn->parser != NULL;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return false;
    if (got == 0)
        hli_fail(&err, HL_ECONN, "the server closed the connection");
    else
        hli_fail(&err, HL_ECONN, "%s", strerrordesc_np(errno));
    hli_conn_close(conn, &err);
    return false;
}

static void conn_on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    conn_read(arg);
}

static void conn_free_events(struct hli_conn *conn)
{
    if (conn->readable)
        event_free(conn->readable);
    if (conn->writable)
        event_free(conn->writable);
    conn->readable = conn->writable = NULL;
    hli_parser_free(conn->parser);
    conn->parser = NULL;
}

int hli_conn_open(struct hli_conn *conn, int fd)
{
    struct event_base *base = hli_loop_base(conn->loop);

    conn->parser = hli_parser_new();
    conn->readable = event_new(base, fd, EV_READ | EV_PERSIST, conn_on_readable, conn);
    conn->writable = event_new(base, fd, EV_WRITE, conn_on_writable, conn);
    if (!conn->parser || !conn->readable || !conn->writable ||
        event_add(conn->readable, NULL) < 0) {
        conn_free_events(conn);
        close(fd);
        return HL_ENOMEM;
    }
    pthread_mutex_lock(&conn->mutex);
    atomic_store(&conn->fd, fd);
    hli_buffer_clear(&conn->out);
    conn->is_broken = false;
    conn->is_open = true;
    pthread_mutex_unlock(&conn->mutex);
    return 0;
}

/* SO_LINGER 0: the kernel shall not go on sending what was written to a link that we have given up.
 */
static void conn_close_socket(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

void hli_conn_close(struct hli_conn *conn, const hl_error *err)
{
    struct hli_ops orphans = TAILQ_HEAD_INITIALIZER(orphans);
    struct hli_answer unknown = {.verdict = HLI_UNKNOWN, .code = err->code, .text = err->text};
    struct hli_op *op;

    pthread_mutex_lock(&conn->mutex);
    bool was_open = conn->is_open;
    conn->is_open = conn->is_ready = false;
    conn->is_watched = false;
    while ((op = TAILQ_FIRST(&conn->in_flight))) {
        TAILQ_REMOVE(&conn->in_flight, op, link);
        TAILQ_INSERT_TAIL(&orphans, op, link);
    }
    int fd = atomic_exchange(&conn->fd, -1);
    pthread_mutex_unlock(&conn->mutex);
    if (!was_open)
        return;

    hli_timer_clear(conn->loop, &conn->patience);
    conn_free_events(conn);
    conn_close_socket(fd);
    conn->events->closed(conn, err);
    while ((op = TAILQ_FIRST(&orphans))) {
        TAILQ_REMOVE(&orphans, op, link);
        op->done(op, &unknown);
    }
}

void hli_conn_abandon(struct hli_conn *conn)
{
    int fd = atomic_exchange(&conn->fd, -1);

    if (fd >= 0)
        close(fd);
}
