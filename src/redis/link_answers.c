/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What goes through a link: requests of any thread, their answers, and messages. */
#include "base/error.h"
#include "redis/lead.h"
#include "redis/link_state.h"

void hli_link_send(struct hli_link *link, struct hli_op *op)
{
    if (hli_conn_send(&link->conn[HLI_LINK_COMMANDS], op, HLI_CONN_IF_READY))
        return;
    hli_mutex_lock(&link->mutex);
    hl_error problem = link->problem;
    bool has_failed = link->has_failed, is_retired = link->is_retired;
    hli_mutex_unlock(&link->mutex);
    if (is_retired) {
        hli_link_send(link->first, op);
        return;
    }
    if (problem.code == 0)
        hli_error_set(&problem, HL_ECONN, "not connected yet");
    bool is_of_term = op->term == 0 || op->term == atomic_load(&link->term.number);
    const struct hli_answer unsent = {.verdict = hli_op_is_wanted(op) && is_of_term ? HLI_UNSENT
                                                                                    : HLI_BOUNCED,
                                      .link_has_failed = has_failed,
                                      .code = problem.code,
                                      .text = problem.text};
    op->sent_at = hli_now();
    op->done(op, &unsent);
}

void hli_link_lead_begin(struct hli_link *link)
{
    hli_reader_lead_begin(&link->conn[HLI_LINK_COMMANDS].reader);
}

void hli_link_lead(struct hli_link *link, struct hli_gate *gate, hli_ns deadline)
{
    struct hli_conn *conn = &link->conn[HLI_LINK_COMMANDS];

    if (hli_reader_lead_end(&conn->reader))
        hli_conn_lead(conn, gate, deadline);
}

void hli_link_add_reader(struct hli_link *link, struct hli_readers *readers)
{
    readers->reader[readers->count++] = &link->conn[HLI_LINK_COMMANDS].reader;
}

void hli_links_lead_begin(const struct hli_readers *readers)
{
    hli_readers_lead_begin(readers);
}

void hli_links_lead(const struct hli_readers *readers, struct hli_gate *gate, hli_ns deadline)
{
    hli_readers_lead_end();
    hli_conns_lead(readers, gate, deadline);
}

const struct hli_term *hli_link_term(const struct hli_link *link)
{
    return &link->term;
}

int64_t hli_link_take_grace_ms(struct hli_link *first)
{
    hli_ns until = atomic_load(&first->term.grace_until), now = hli_now();
    bool was_told = first->term.is_told;

    first->term.is_told = true;
    return was_told || until <= now ? 0 : hli_ms_left(now, until);
}

struct hli_pubsub *hli_link_pubsub(struct hli_link *link)
{
    return &link->first->pubsub;
}

void hli_link_set_mailbox(struct hli_link *link, struct hli_channel *mailbox)
{
    link->pubsub.mailbox = mailbox;
}

void hli_link_listen(struct hli_link *link, struct hli_gate *gate, hli_ns deadline)
{
    hli_conn_listen(&link->first->conn[HLI_LINK_PUBSUB], gate, deadline);
}

static struct hli_link *link_of(struct hli_conn *conn)
{
    return conn->arg;
}

static bool link_is_mailbox(struct hli_conn *conn, const struct hli_reply *reply)
{
    return hli_pubsub_is_mailbox(&link_of(conn)->pubsub, reply);
}

static void link_on_message(struct hli_conn *conn, const struct hli_reply *reply)
{
    hli_pubsub_message(&link_of(conn)->pubsub, reply);
}

/* A slot of a cluster has moved away, with its sharded channels. */
static bool link_on_unasked(struct hli_conn *conn, const struct hli_reply *reply,
                            const struct hli_op *oldest)
{
    struct hli_pubsub *pubsub = &link_of(conn)->pubsub;

    if (!hli_pubsub_is_moved(pubsub, reply, oldest))
        return false;
    hli_pubsub_moved(pubsub, reply);
    return true;
}

/* After an answer that its script cannot give, answers and requests are out of step: each later
 * answer would be given to the wrong request. */
static void link_lose_step(struct hli_link *link, struct hli_answer *answer)
{
    static const char text[] = "an answer that the script does not give";

    hli_link_fail(link, HL_EPROTO, text);
    *answer = (struct hli_answer){.verdict = HLI_UNKNOWN, .code = HL_EPROTO, .text = text};
}

bool hli_link_send_asking(struct hli_link *link, struct hli_op *op)
{
    return link->state == HLI_LINK_UP &&
           hli_conn_send(&link->conn[HLI_LINK_COMMANDS], op, HLI_CONN_ASKING);
}

static bool link_is_elsewhere(const struct hli_answer *answer)
{
    return answer->verdict == HLI_BOUNCED &&
           (hli_answer_is(answer, "MOVED") || hli_answer_is(answer, "ASK"));
}

/* Subscriptions are told by the server when their slot moves. */
static bool link_redirects(struct hli_link *link, struct hli_conn *conn, struct hli_op *op,
                           struct hli_answer *answer)
{
    return link->listener.redirected && conn == &link->conn[HLI_LINK_COMMANDS] &&
           link->state == HLI_LINK_UP &&
           (link_is_elsewhere(answer) || hli_answer_is(answer, "CLUSTERDOWN")) &&
           link->listener.redirected(link, op, answer, link->listener.arg);
}

/* The script of a request that moved is not loaded here, but where the request goes. */
static void link_check_answer(struct hli_link *link, const struct hli_op *op,
                              struct hli_answer *answer)
{
    static const char says_cluster[] =
        "the server is a node of a cluster: redis-cluster:// connects to it";

    if (!link->listener.redirected && link_is_elsewhere(answer))
        *answer =
            (struct hli_answer){.verdict = HLI_FAILED, .code = HL_ESERVER, .text = says_cluster};
    if (!link_is_elsewhere(answer))
        hli_loader_answered(&link->loader, op, answer);
}

static void link_meet_replica(struct hli_link *link)
{
    hl_error err;

    hli_fail(&err, HL_ESERVER, "READONLY the server has become a replica");
    link->events->unusable(link, &err);
}

/* The request did not run. The next connection logs in again. */
static void link_lose_login(struct hli_link *link, struct hli_answer *answer)
{
    hli_link_fail(link, HL_ESERVER, hli_handshake_forgotten);
    *answer = (struct hli_answer){
        .verdict = HLI_UNSENT, .code = HL_ESERVER, .text = hli_handshake_forgotten};
}

static bool link_on_answered(struct hli_conn *conn, struct hli_op *op, struct hli_answer *answer)
{
    struct hli_link *link = link_of(conn);

    if (answer->code < 0 && link_redirects(link, conn, op, answer))
        return true;
    if (answer->verdict == HLI_REPLIED && op->script >= 0 &&
        !hli_script_may_answer((hli_script_id)op->script, answer->reply))
        link_lose_step(link, answer);
    else if (hli_answer_is(answer, "READONLY"))
        link_meet_replica(link);
    else if (link->state == HLI_LINK_UP && hli_answer_is(answer, "NOAUTH") &&
             link->handshake[HLI_LINK_COMMANDS].has_login)
        link_lose_login(link, answer);
    else
        link_check_answer(link, op, answer);
    return false;
}

/* An error of a program's own command may be any text, also of its own script: it says nothing of
 * the server. Only a cluster's redirection is followed. */
static bool link_on_foreign_answered(struct hli_conn *conn, struct hli_op *op,
                                     struct hli_answer *answer)
{
    return op->fence != 0 && answer->code < 0 && !op->stays &&
           link_redirects(link_of(conn), conn, op, answer);
}

/* True if a leader may deliver this answer. Answers that cast doubt on the server are left to the
 * loop. */
static bool link_is_plain(const struct hli_op *op, const struct hli_reply *reply)
{
    return op->script >= 0 && hli_script_is_plain((hli_script_id)op->script, reply);
}

/* True if this server has never sent any answer: the port may expect TLS. */
static bool link_may_meet_tls(const struct hli_link *link, const struct hli_handshake *handshake)
{
    return link->address.port != 0 && !link->url->has_tls && link->up_since == 0 &&
           handshake->answers == 0;
}

static void link_on_closed(struct hli_conn *conn, const hl_error *err)
{
    struct hli_link *link = link_of(conn);
    const struct hli_handshake *handshake = &link->handshake[conn - link->conn];
    hl_error named = *err;

    /* "max number of clients reached" comes as the first answer, and then the server hangs up. */
    if (link->state == HLI_LINK_HANDSHAKE && handshake->err.code < 0)
        named = handshake->err;
    else if (link->state == HLI_LINK_HANDSHAKE && link_may_meet_tls(link, handshake))
        hli_fail(&named, err->code, "%s (if it speaks TLS: %s)", err->text,
                 link->url->kind == HLI_URL_SENTINEL ? "rediss-sentinel://" : "rediss://");
    hli_link_break(link, &named);
}

const struct hli_conn_events hli_link_conn_events[HLI_LINK_CONNS] = {
    [HLI_LINK_COMMANDS] = {.answered = link_on_answered,
                           .closed = link_on_closed,
                           .is_plain = link_is_plain},
    [HLI_LINK_PUBSUB] = {.message = link_on_message,
                         .unasked = link_on_unasked,
                         .is_plain_message = link_is_mailbox,
                         .answered = link_on_answered,
                         .closed = link_on_closed},
};

const struct hli_conn_events hli_link_foreign_events[HLI_LINK_CONNS] = {
    [HLI_LINK_COMMANDS] = {.answered = link_on_foreign_answered, .closed = link_on_closed},
};
