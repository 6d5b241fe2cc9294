/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The connection while it is open: outbox, requests in flight; each reply goes to its request, and
 * each message to the connection's events. */
#include "redis/conn.h"

#include "base/check.h"
#include "base/error.h"

#include <event2/event.h>

static const char conn_asking[] = "*1\r\n$6\r\nASKING\r\n";

enum {
    CONN_CROWD = 16, /* so many requests in flight are many */
    CONN_CHUNK = 16, /* so many go out together then */
};

static void conn_flush(void *arg);

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
    bool has_fence = op->fence != 0;
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

    if (conn->commands)
        atomic_fetch_add_explicit(conn->commands, wait || has_fence ? 2 : 1, memory_order_relaxed);
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
    if (wait && conn->commands)
        atomic_fetch_add_explicit(conn->commands, 1, memory_order_relaxed);
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

void hli_conn_free_events(struct hli_conn *conn)
{
    if (conn->readable)
        event_free(conn->readable);
    if (conn->writable)
        event_free(conn->writable);
    conn->readable = conn->writable = NULL;
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
    hli_conn_free_events(conn);
    hli_mutex_lock(&conn->mutex);
    hli_reader_close(&conn->reader);
    hli_outbox_close(&conn->outbox);
    hli_mutex_unlock(&conn->mutex);
    conn->events->closed(conn, err);
    while ((op = TAILQ_FIRST(&orphans))) {
        TAILQ_REMOVE(&orphans, op, link);
        hli_reply_free(op->reply); /* its fence was not answered */
        op->reply = NULL;
        op->done(op, &unknown);
    }
}

void hli_conn_fail(struct hli_conn *conn, int code, const char *text)
{
    hl_error err;

    hli_fail(&err, code, "%s", text);
    hli_conn_close(conn, &err);
}

/* Is another reply to this request to come? An error ends it, but for that to ASKING. */
static bool conn_has_more(const struct hli_conn *conn, const struct hli_op *op, bool is_error)
{
    unsigned extra = op->is_asking ? 1 : 0;

    return conn->oldest_replies < extra ||
           (!is_error && conn->oldest_replies < extra + op->more_replies);
}

/* The reply to a command that has a fence behind it is kept until the fence is answered; unless it
 * is an answer to a fence itself: then the command has no reply, and this ends it. */
static bool conn_keeps_for_fence(const struct hli_conn *conn, struct hli_op *op,
                                 struct hli_reply *reply)
{
    if (op->reply || conn->oldest_replies < (op->is_asking ? 1 : 0))
        return false;
    op->reply = reply;
    return !hli_op_is_fence(reply);
}

enum conn_left { CONN_NO_REQUEST, CONN_MORE_TO_COME, CONN_KEPT };

/* The request that this reply ends; NULL: what it is else. */
static struct hli_op *conn_take_oldest(struct hli_conn *conn, struct hli_reply *reply,
                                       enum conn_left *ret_left)
{
    hli_mutex_lock(&conn->mutex);
    struct hli_op *op = TAILQ_FIRST(&conn->in_flight);
    bool keeps = op && op->fence != 0 && conn_keeps_for_fence(conn, op, reply);
    bool has_more = op && conn_has_more(conn, op, reply->kind == HLI_REPLY_ERROR);
    *ret_left = keeps ? CONN_KEPT : has_more ? CONN_MORE_TO_COME : CONN_NO_REQUEST;
    if (keeps || has_more) {
        conn->oldest_replies++;
        op = NULL;
    } else if (op) {
        hli_conn_unqueue(conn, op);
    }
    hli_mutex_unlock(&conn->mutex);
    return op;
}

static struct hli_answer conn_answer(const struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_answer answer = hli_answer_from(reply);

    hli_answer_hide(&answer, conn->secret);
    return answer;
}

/* A reply without a request. An error is a server's last word before it hangs up, such as "max
 * number of clients reached"; after any other reply the peer is not Redis. */
static void conn_refuse_surplus(struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_answer answer = conn_answer(conn, reply);

    if (answer.verdict == HLI_REPLIED)
        hli_conn_fail(conn, HL_EPROTO, "a reply that belongs to no request");
    else
        hli_conn_fail(conn, answer.code, answer.text);
}

/* Only the reader takes requests out, so it stays the oldest meanwhile. */
static bool conn_is_unasked(struct hli_conn *conn, const struct hli_reply *reply)
{
    if (!conn->events->unasked)
        return false;
    hli_mutex_lock(&conn->mutex);
    const struct hli_op *oldest = TAILQ_FIRST(&conn->in_flight);
    hli_mutex_unlock(&conn->mutex);
    return conn->events->unasked(conn, reply, oldest);
}

static bool conn_keep(struct hli_conn *conn, struct hli_op *op, struct hli_reply *reply)
{
    hli_mutex_lock(&conn->mutex);
    bool is_kept = conn->is_open && hli_confirm_keep(&conn->confirm, op, reply);
    bool is_plain = conn->events->is_plain && conn->events->is_plain(op, reply);
    if (is_kept && !is_plain)
        conn->confirm.keeps_for_loop = true;
    hli_mutex_unlock(&conn->mutex);
    return is_kept;
}

/* The replies are not those of the commands that were sent: each later one would be given to the
 * wrong request. The one at whose place that is seen is told so. */
static void conn_lose_step(struct hli_conn *conn, struct hli_op *op, const char *text)
{
    const struct hli_answer answer = {.verdict = HLI_FAILED, .code = HL_EPROTO, .text = text};
    struct hli_reply *reply = op->reply;

    op->reply = NULL;
    hli_reply_free(reply);
    hli_conn_fail(conn, HL_EPROTO, text);
    op->done(op, &answer);
}

/* True if the reply is kept with its request. */
static bool conn_answer_op(struct hli_conn *conn, struct hli_op *op, struct hli_reply *reply)
{
    struct hli_answer answer = conn_answer(conn, reply);

    op->bounces = answer.verdict == HLI_BOUNCED ? op->bounces + 1 : 0;
    if (op == &conn->confirm.wait) /* the WAIT for others (confirm.h) */
        hli_conn_confirm(conn, &answer);
    else if (conn->events->answered && conn->events->answered(conn, op, &answer))
        return false;
    else if (answer.verdict == HLI_REPLIED && op->replicas > 0 && conn_keep(conn, op, reply))
        return true;
    else
        op->done(op, &answer);
    return false;
}

/* True if the reply is that of the command, and taken over. */
static bool conn_answer_fence(struct hli_conn *conn, struct hli_op *op, struct hli_reply *fence)
{
    static const char text[] =
        "the server did not answer it by one reply: its connection is made anew";
    struct hli_reply *reply = op->reply;

    if (reply == fence || !hli_op_is_fence_of(op, fence)) {
        conn_lose_step(conn, op, text);
        return reply == fence;
    }
    op->reply = NULL;
    conn_answer_op(conn, op, reply);
    hli_reply_free(reply);
    return false;
}

/* True if the reply is kept. */
static bool conn_dispatch(struct hli_conn *conn, struct hli_reply *reply)
{
    enum conn_left left;

    if (conn->events->message && hli_reply_is_message(reply)) {
        conn->events->message(conn, reply);
        return false;
    }
    if (conn_is_unasked(conn, reply))
        return false;
    struct hli_op *op = conn_take_oldest(conn, reply, &left);
    if (op)
        return op->fence != 0 ? conn_answer_fence(conn, op, reply)
                              : conn_answer_op(conn, op, reply);
    if (left == CONN_NO_REQUEST)
        conn_refuse_surplus(conn, reply);
    return left == CONN_KEPT;
}

/* What came is no reply that the connection can carry. It was to be the one of the oldest request,
 * which need not be in doubt then if it has a fence. */
static void conn_refuse_bytes(struct hli_conn *conn)
{
    static const char text[] =
        "its reply is larger or deeper than may be, or not of RESP2: its connection is made anew";

    hli_mutex_lock(&conn->mutex);
    struct hli_op *op = TAILQ_FIRST(&conn->in_flight);
    bool is_own = op && op->fence != 0 && !op->reply;
    if (is_own)
        hli_conn_unqueue(conn, op);
    hli_mutex_unlock(&conn->mutex);
    if (is_own)
        conn_lose_step(conn, op, text);
    else
        hli_conn_fail(conn, HL_EPROTO, "the peer does not speak Redis");
}

static bool conn_tell_all(struct hli_conn *conn)
{
    struct hli_reply *reply = NULL;
    int rc;

    while ((rc = hli_reader_next(&conn->reader, &reply)) == 0 && reply) {
        if (!conn_dispatch(conn, reply))
            hli_reply_free(reply);
        if (!conn->readable)
            return false;
    }
    if (rc == 0)
        return true;
    if (rc == HL_ENOMEM)
        hli_conn_fail(conn, rc, "out of memory while reading");
    else
        conn_refuse_bytes(conn);
    return false;
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
    if (!conn_tell_all(conn))
        return false;
    switch (hli_reader_receive(&conn->reader, false)) {
    case HLI_RECEIVED:
        if (!conn_tell_all(conn))
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

bool hli_conn_read(struct hli_conn *conn)
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
    hli_conn_read(arg);
}

void hli_conn_on_readable(evutil_socket_t fd, short what, void *arg)
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

    hli_conn_read(conn);
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

void hli_conn_on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    conn_flush(arg);
}

void hli_conn_init_tasks(struct hli_conn *conn)
{
    conn->flush = (struct hli_task){.run = conn_flush, .arg = conn};
    conn->read_on = (struct hli_task){.run = conn_read_on, .arg = conn};
    conn->idle = (struct hli_timer){.run = conn_check_rest, .arg = conn};
}
