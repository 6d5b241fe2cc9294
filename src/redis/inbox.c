/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The inbox: replies to their requests, messages to whom they concern. */
#include "redis/inbox.h"

#include "base/error.h"

#include <string.h>

enum {
    INBOX_REST_MS = 10
}; /* a connection that is led now and then is not armed each time in
      between */

/* The request that this reply ends. NULL with *ret_more: its last reply is still to come. */
static struct hli_op *inbox_take_oldest(struct hli_conn *conn, bool is_error, bool *ret_more)
{
    pthread_mutex_lock(&conn->mutex);
    struct hli_op *op = TAILQ_FIRST(&conn->in_flight);
    *ret_more = op && !is_error && conn->oldest_replies < op->more_replies;
    if (*ret_more) {
        conn->oldest_replies++;
        op = NULL;
    } else if (op) {
        TAILQ_REMOVE(&conn->in_flight, op, link);
        conn->in_flight_count--;
        conn->oldest_replies = 0;
    }
    pthread_mutex_unlock(&conn->mutex);
    return op;
}

static bool inbox_is_message(const struct hli_reply *reply)
{
    const struct hli_reply *kind = hli_reply_text_at(reply, 0);

    return kind && strcmp(kind->text, "message") == 0;
}

static struct hli_answer inbox_answer(const struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_answer answer = hli_answer_from(reply);

    hli_answer_hide(&answer, conn->secret);
    return answer;
}

/* A reply that nobody asked for. An error is what a server says before it hangs up, such as "max
 * number of clients reached"; anything else is not Redis. */
static void inbox_refuse_surplus(struct hli_conn *conn, const struct hli_reply *reply)
{
    struct hli_answer answer = inbox_answer(conn, reply);
    hl_error err;

    if (answer.verdict == HLI_REPLIED)
        hli_fail(&err, HL_EPROTO, "a reply that belongs to no request");
    else
        hli_fail(&err, answer.code, "%s", answer.text);
    hli_conn_close(conn, &err);
}

static void inbox_dispatch(struct hli_conn *conn, const struct hli_reply *reply)
{
    bool has_more;

    if (conn->events->message && inbox_is_message(reply)) {
        conn->events->message(conn, reply);
        return;
    }
    struct hli_op *op = inbox_take_oldest(conn, reply->kind == HLI_REPLY_ERROR, &has_more);
    if (op) {
        struct hli_answer answer = inbox_answer(conn, reply);
        conn->events->answered(conn, op, &answer);
        op->done(op, &answer);
    } else if (!has_more) {
        inbox_refuse_surplus(conn, reply);
    }
}

/* Tells what has been received. False when it is closed: a completion may do that. */
static bool inbox_tell_all(struct hli_conn *conn)
{
    struct hli_reply *reply = NULL;
    hl_error err;
    int rc;

    while ((rc = hli_reader_next(&conn->reader, &reply)) == 0 && reply) {
        inbox_dispatch(conn, reply);
        hli_reply_free(reply);
        if (!conn->readable)
            return false;
    }
    if (rc == 0)
        return true;
    hli_fail(&err, rc,
             rc == HL_ENOMEM ? "out of memory while reading" : "the peer does not speak Redis");
    hli_conn_close(conn, &err);
    return false;
}

static void inbox_close_failed(struct hli_conn *conn)
{
    hl_error err;

    if (conn->reader.failure == 0)
        hli_fail(&err, HL_ECONN, "the server closed the connection");
    else
        hli_fail(&err, HL_ECONN, "%s", strerrordesc_np(conn->reader.failure));
    hli_conn_close(conn, &err);
}

/* With the role: first what a leader left. True when there was something, and there may be more;
 * false when it is closed, too. */
static bool inbox_read_more(struct hli_conn *conn)
{
    if (!inbox_tell_all(conn))
        return false;
    switch (hli_reader_receive(&conn->reader)) {
    case HLI_RECEIVED:
        return inbox_tell_all(conn);
    case HLI_RECEIVED_FAILURE:
        inbox_close_failed(conn);
        break;
    default:
        break;
    }
    return false;
}

/* The loop has read what there was: from now on who comes first may. */
static void inbox_end_reading(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    if (conn->is_open) {
        hli_reader_leave(&conn->reader, HLI_READER_NOBODY);
        hli_reader_arm(&conn->reader);
    }
    pthread_mutex_unlock(&conn->mutex);
}

/* The loop reads now, whoever led. */
bool hli_inbox_read(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool is_open = conn->is_open;
    if (is_open)
        hli_reader_take(&conn->reader, &conn->mutex);
    pthread_mutex_unlock(&conn->mutex);
    if (!is_open)
        return false;
    bool has_more = inbox_read_more(conn);
    inbox_end_reading(conn);
    return has_more;
}

/* A leader has left something to the loop, and the role with it. */
void hli_inbox_read_on(void *arg)
{
    hli_inbox_read(arg);
}

void hli_inbox_on_readable(int fd, short what, void *arg)
{
    struct hli_conn *conn = arg;

    (void)fd, (void)what;
    pthread_mutex_lock(&conn->mutex);
    bool reads = hli_reader_try_take(&conn->reader);
    pthread_mutex_unlock(&conn->mutex);
    if (!reads)
        return;
    inbox_read_more(conn);
    inbox_end_reading(conn);
}

bool hli_inbox_is_led_for_messages(const struct hli_conn *conn)
{
    return conn->events->is_plain_message != NULL;
}

bool hli_inbox_try_lead(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool leads = conn->is_open && hli_reader_try_lead(&conn->reader);
    pthread_mutex_unlock(&conn->mutex);
    return leads;
}

static bool inbox_tell_plain_message(struct hli_conn *conn, const struct hli_reply *reply)
{
    bool is_plain = inbox_is_message(reply) && conn->events->is_plain_message(conn, reply);

    if (is_plain)
        conn->events->message(conn, reply);
    return is_plain;
}

/* Only the reader takes requests out, so the oldest one stays the oldest meanwhile. */
bool hli_inbox_tell_plain(struct hli_conn *conn, const struct hli_reply *reply)
{
    if (hli_inbox_is_led_for_messages(conn))
        return inbox_tell_plain_message(conn, reply);
    struct hli_answer answer = hli_answer_from(reply);

    pthread_mutex_lock(&conn->mutex);
    struct hli_op *op = TAILQ_FIRST(&conn->in_flight);
    bool is_plain = op && op->more_replies == 0 && answer.verdict == HLI_REPLIED &&
                    conn->events->is_plain(conn, op, &answer);
    if (is_plain) {
        TAILQ_REMOVE(&conn->in_flight, op, link);
        conn->in_flight_count--;
    }
    pthread_mutex_unlock(&conn->mutex);
    if (is_plain)
        op->done(op, &answer);
    return is_plain;
}

bool hli_inbox_is_idle(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool is_idle = conn->in_flight_count == 0;
    pthread_mutex_unlock(&conn->mutex);
    return is_idle;
}

/* Armed at once if somebody waits for an answer, or a message may come; if nobody does, a moment
 * later and only if it is not led again until then. */
void hli_inbox_leave(struct hli_conn *conn, bool to_loop)
{
    pthread_mutex_lock(&conn->mutex);
    hli_reader_leave(&conn->reader, to_loop ? HLI_READER_LOOP : HLI_READER_NOBODY);
    bool listens = hli_inbox_is_led_for_messages(conn);
    if (!to_loop && (conn->in_flight_count > 0 || listens))
        hli_reader_arm(&conn->reader);
    bool rests = conn->is_open && !conn->is_resting && !listens;
    conn->is_resting = conn->is_resting || rests;
    pthread_mutex_unlock(&conn->mutex);
    if (to_loop)
        hli_loop_post(conn->loop, &conn->read_on);
    if (rests)
        hli_timer_set(conn->loop, &conn->idle, hli_after_ms(hli_now(), INBOX_REST_MS));
}

void hli_inbox_look_at_rest(void *arg)
{
    struct hli_conn *conn = arg;

    pthread_mutex_lock(&conn->mutex);
    bool rests_on = conn->is_open && conn->reader.was_led;
    conn->reader.was_led = false;
    conn->is_resting = rests_on;
    if (conn->is_open && !rests_on && conn->reader.role == HLI_READER_NOBODY)
        hli_reader_arm(&conn->reader);
    pthread_mutex_unlock(&conn->mutex);
    if (rests_on)
        hli_timer_set(conn->loop, &conn->idle, hli_after_ms(hli_now(), INBOX_REST_MS));
}
