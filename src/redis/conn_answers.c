/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a connection receives: each reply goes to its request, and each message to the connection's
 * events. */
#include "base/error.h"
#include "redis/conn.h"

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

/* The request that this reply ends. NULL with *ret_more: its last reply is still to come. */
static struct hli_op *conn_take_oldest(struct hli_conn *conn, bool is_error, bool *ret_more)
{
    hli_mutex_lock(&conn->mutex);
    struct hli_op *op = TAILQ_FIRST(&conn->in_flight);
    *ret_more = op && conn_has_more(conn, op, is_error);
    if (*ret_more) {
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

/* True if the reply is kept. */
static bool conn_dispatch(struct hli_conn *conn, struct hli_reply *reply)
{
    bool has_more;

    if (conn->events->message && hli_reply_is_message(reply)) {
        conn->events->message(conn, reply);
        return false;
    }
    if (conn_is_unasked(conn, reply))
        return false;
    struct hli_op *op = conn_take_oldest(conn, reply->kind == HLI_REPLY_ERROR, &has_more);
    if (op)
        return conn_answer_op(conn, op, reply);
    if (!has_more)
        conn_refuse_surplus(conn, reply);
    return false;
}

bool hli_conn_tell_all(struct hli_conn *conn)
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
    hli_conn_fail(conn, rc,
                  rc == HL_ENOMEM ? "out of memory while reading"
                                  : "the peer does not speak Redis");
    return false;
}
