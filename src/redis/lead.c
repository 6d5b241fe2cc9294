/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Leading: poll, receive, tell. */
#include "redis/lead.h"

#include "base/check.h"

#include <poll.h>
#include <time.h>

enum {
    LEAD_VAIN_POLLS = 3, /* polls in vain, in a row, before a pause */
    LEAD_MIN_PAUSE = 16, /* polls skipped in a pause; doubled while polls are in vain */
    LEAD_MAX_PAUSE = 1024,
    LEAD_GAP_NS = 20 * 1000, /* a read takes less, unless another thread gets the core */
};

enum lead_next { LEAD_ON, LEAD_WOKEN, LEAD_ENOUGH, LEAD_TO_LOOP };

bool hli_lead_polls(struct hli_lead_polling *polling)
{
    if (polling->ns == 0)
        return false;
    if (polling->left_out == 0)
        return true;
    polling->left_out--;
    return false;
}

static unsigned lead_longer_pause(unsigned pause)
{
    if (pause == 0)
        return LEAD_MIN_PAUSE;
    return pause >= LEAD_MAX_PAUSE / 2 ? LEAD_MAX_PAUSE : pause * 2;
}

/* Shortens the pause slowly: on a shared core some polls succeed by chance. */
void hli_lead_has_polled(struct hli_lead_polling *polling, bool was_worth_it)
{
    polling->in_vain = was_worth_it ? 0 : polling->in_vain + 1;
    if (was_worth_it)
        polling->pause = polling->pause / 2 < LEAD_MIN_PAUSE ? 0 : polling->pause / 2;
    else if (polling->pause > 0 || polling->in_vain >= LEAD_VAIN_POLLS)
        polling->pause = lead_longer_pause(polling->pause);
    polling->left_out = polling->pause;
}

static bool lead_tell_message(struct hli_conn *conn, const struct hli_reply *reply)
{
    bool is_plain = hli_reply_is_message(reply) && conn->events->is_plain_message(conn, reply);

    if (is_plain)
        conn->events->message(conn, reply);
    return is_plain;
}

/* Delivers a reply if it is plain, and takes it over; sets *ret_is_idle if no request is in flight
 * any more. Only the reader takes requests out, so the oldest one stays the oldest meanwhile. */
static bool lead_tell_answer(struct hli_conn *conn, struct hli_reply *reply, bool *ret_is_idle)
{
    hli_mutex_lock(&conn->mutex);
    struct hli_op *op = TAILQ_FIRST(&conn->in_flight);
    bool is_wait = op == &conn->confirm.wait, is_kept = false;
    bool is_plain = is_wait ? reply->kind == HLI_REPLY_INTEGER && !conn->confirm.keeps_for_loop
                            : op && op->more_replies == 0 && !op->is_asking && !reply->is_beyond &&
                                  conn->events->is_plain(op, reply);
    if (is_plain) {
        *ret_is_idle = hli_conn_unqueue(conn, op) == 0;
        is_kept = op->replicas > 0 && hli_confirm_keep(&conn->confirm, op, reply);
    }
    hli_mutex_unlock(&conn->mutex);
    const struct hli_answer answer = {.verdict = HLI_REPLIED, .reply = reply};
    if (is_plain && is_wait) {
        hli_conn_confirm(conn, &answer);
        *ret_is_idle = hli_conn_in_flight(conn) == 0; /* another WAIT may have gone out */
    } else if (is_plain && !is_kept) {
        op->bounces = 0;
        op->done(op, &answer);
    }
    if (is_plain && !is_kept)
        hli_reply_free(reply);
    return is_plain;
}

static bool lead_tell_plain(struct hli_conn *conn, struct hli_reply *reply, bool *ret_is_idle)
{
    if (!conn->events->is_plain_message)
        return lead_tell_answer(conn, reply, ret_is_idle);
    bool is_plain = lead_tell_message(conn, reply);
    if (is_plain)
        hli_reply_free(reply);
    return is_plain;
}

static enum lead_next lead_tell(struct hli_conn *conn)
{
    struct hli_reply *reply;
    bool is_idle = false;
    int rc;

    while ((rc = hli_reader_next(&conn->reader, &reply)) == 0 && reply) {
        if (!lead_tell_plain(conn, reply, &is_idle)) {
            hli_reader_put_back(&conn->reader, reply);
            return LEAD_TO_LOOP;
        }
    }
    if (rc < 0)
        return LEAD_TO_LOOP;
    /* No request is in flight, and the gate is shut: no answer will open it. A message may. */
    return is_idle ? LEAD_ENOUGH : LEAD_ON;
}

static enum lead_next lead_read(struct hli_conn *conn, bool waits)
{
    enum hli_received received = hli_reader_receive(&conn->reader, waits);

    if (received == HLI_RECEIVED) {
        enum lead_next next = lead_tell(conn);
        return conn->reader.has_failed ? LEAD_TO_LOOP : next;
    }
    return received == HLI_RECEIVED_NOTHING ? LEAD_ON : LEAD_TO_LOOP;
}

static void lead_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* While other threads have requests in flight there is other work for this core. */
static bool lead_is_alone(const struct hli_reader *reader)
{
    return !atomic_load_explicit(&reader->has_company, memory_order_relaxed);
}

static bool lead_is_recalled(const struct hli_reader *reader)
{
    return atomic_load_explicit(&reader->is_recalled, memory_order_relaxed);
}

static bool lead_is_over(enum lead_next next, const struct hli_gate *gate)
{
    return next != LEAD_ON || !hli_gate_is_shut(gate);
}

/* A poll was worth it if the answer came during the poll, and no other thread had this core
 * meanwhile: the scheduler would have woken a sleeper ahead of threads that only compute. */
static enum lead_next lead_poll_busily(struct hli_conn *conn, const struct hli_gate *gate)
{
    hli_ns now = hli_now(), end = now + conn->polling.ns, before = now;
    enum lead_next next = lead_read(conn, false);

    if (lead_is_over(next, gate))
        return next; /* the first read was enough */
    while (now < end && now - before < LEAD_GAP_NS && lead_is_alone(&conn->reader) &&
           !lead_is_recalled(&conn->reader) && !lead_is_over(next, gate)) {
        lead_relax();
        next = lead_read(conn, false);
        before = now;
        now = hli_now();
    }
    bool is_over = lead_is_over(next, gate);
    if (is_over || lead_is_alone(&conn->reader))
        hli_lead_has_polled(&conn->polling, is_over && now - before < LEAD_GAP_NS);
    return next;
}

/* What a sleeping leader polls of a connection: its socket, and the wakefd. */
enum { LEAD_SOCKET, LEAD_WAKEFD, LEAD_POLLED };

/* Sleeps until a socket is readable, a wakefd is written, or the deadline comes; the gate's openers
 * write to the first connection's. The loop may take a role and close the socket meanwhile, so this
 * function does not read it. */
static enum lead_next lead_sleep(struct hli_conn *const *conns, unsigned count,
                                 struct pollfd polled[][LEAD_POLLED], struct hli_gate *gate,
                                 hli_ns deadline)
{
    hli_ns left = deadline == HLI_NEVER ? 0 : hli_nap(deadline);
    struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};

    for (unsigned i = 0; i < count; i++) {
        const struct hli_conn *conn = conns[i];
        polled[i][LEAD_SOCKET] = (struct pollfd){.fd = atomic_load(&conn->fd), .events = POLLIN};
        polled[i][LEAD_WAKEFD] =
            (struct pollfd){.fd = atomic_load(&conn->reader.wakefd.fd), .events = POLLIN};
    }
    if (!hli_gate_attach(gate, &conns[0]->reader.wakefd))
        return LEAD_ENOUGH;
    int ready = ppoll(polled[0], (nfds_t)count * LEAD_POLLED,
                      deadline == HLI_NEVER ? NULL : &timeout, NULL);
    hli_gate_detach(gate);
    return ready == 0 && hli_now() >= deadline ? LEAD_ENOUGH : LEAD_ON;
}

static enum lead_next lead_sleep_here(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline)
{
    struct pollfd polled[1][LEAD_POLLED];
    enum lead_next next = lead_sleep(&conn, 1, polled, gate, deadline);

    return next == LEAD_ON && polled[0][LEAD_WAKEFD].revents ? LEAD_WOKEN : next;
}

static bool lead_resume(struct hli_conn *conn)
{
    hli_mutex_lock(&conn->mutex);
    bool leads = hli_reader_resume(&conn->reader);
    hli_mutex_unlock(&conn->mutex);
    return leads;
}

/* Gives the role up to be LED again, unless the loop waits for it. */
static enum lead_next lead_pause(struct hli_conn *conn)
{
    hli_mutex_lock(&conn->mutex);
    bool is_recalled = lead_is_recalled(&conn->reader);
    if (!is_recalled)
        hli_reader_pause(&conn->reader);
    hli_mutex_unlock(&conn->mutex);
    return is_recalled ? LEAD_ENOUGH : LEAD_ON;
}

/* Gives the role to the loop, which reads on, or to no thread. Then the reader is armed at once if
 * a request is in flight, or a message may come. Else a timer arms it a moment later, if no caller
 * has led again by then. */
static void lead_leave(struct hli_conn *conn, bool to_loop)
{
    hli_mutex_lock(&conn->mutex);
    hli_reader_leave(&conn->reader, to_loop ? HLI_READER_LOOP : HLI_READER_NOBODY);
    bool listens = conn->events->is_plain_message;
    if (!to_loop && (conn->in_flight_count > 0 || listens))
        hli_reader_arm(&conn->reader);
    bool rests = conn->is_open && !conn->is_resting && !listens;
    conn->is_resting = conn->is_resting || rests;
    hli_mutex_unlock(&conn->mutex);
    if (to_loop)
        hli_loop_post(conn->loop, &conn->read_on);
    if (rests)
        hli_timer_set(conn->loop, &conn->idle, hli_after_ms(hli_now(), HLI_CONN_REST_MS));
}

/* An answer mostly comes soon. A leader that waits for it in the receive itself saves a ppoll() for
 * each request, and does as a program with a connection of its own does. Messages come any time. */
static bool lead_waits(const struct hli_conn *conn, hli_ns deadline)
{
    return !conn->events->is_plain_message &&
           (deadline == HLI_NEVER || hli_nap(deadline) > HLI_MS(2 * HLI_READER_WAIT_MS));
}

void hli_conn_lead(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline)
{
    bool polls = lead_is_alone(&conn->reader) && hli_lead_polls(&conn->polling);
    bool waits = !polls && lead_waits(conn, deadline);
    enum lead_next next = LEAD_ON;

    while (next == LEAD_ON) {
        enum lead_next woken = polls || waits ? LEAD_ON : lead_sleep_here(conn, gate, deadline);
        if (!lead_resume(conn))
            return;
        if (woken == LEAD_WOKEN) /* by its gate, or late, for an earlier leader */
            hli_wakefd_clear(&conn->reader.wakefd);
        next = polls ? lead_poll_busily(conn, gate) : lead_read(conn, waits);
        if (next == LEAD_ON && (woken == LEAD_ENOUGH || !hli_gate_is_shut(gate)))
            next = LEAD_ENOUGH;
        if (next == LEAD_ON)
            next = lead_pause(conn);
        polls = waits = false;
    }
    lead_leave(conn, next == LEAD_TO_LOOP);
}

struct lead_all {
    unsigned count;
    struct hli_conn *conn[HLI_READERS_MAX];
    struct pollfd polled[HLI_READERS_MAX][LEAD_POLLED];
};

/* Those whose role this thread was given, and the loop has not taken since. */
static void lead_gather(struct lead_all *all, const struct hli_readers *readers)
{
    all->count = 0;
    for (unsigned i = 0; i < readers->count; i++) {
        struct hli_conn *conn = HLI_OF(readers->reader[i], struct hli_conn, reader);
        hli_mutex_lock(&conn->mutex);
        bool leads = hli_reader_resume(&conn->reader);
        if (leads)
            hli_reader_pause(&conn->reader);
        hli_mutex_unlock(&conn->mutex);
        if (leads)
            all->conn[all->count++] = conn;
    }
}

/* Reads a connection that woke this thread. True if the thread still leads it. */
static bool lead_step(struct hli_conn *conn, const struct pollfd polled[LEAD_POLLED])
{
    enum lead_next next = LEAD_ON;

    if (!polled[LEAD_SOCKET].revents && !polled[LEAD_WAKEFD].revents)
        return true;
    if (!lead_resume(conn))
        return false;
    if (polled[LEAD_WAKEFD].revents)
        hli_wakefd_clear(&conn->reader.wakefd);
    if (polled[LEAD_SOCKET].revents)
        next = lead_read(conn, false);
    if (next == LEAD_ON)
        next = lead_pause(conn);
    if (next != LEAD_ON)
        lead_leave(conn, next == LEAD_TO_LOOP);
    return next == LEAD_ON;
}

/* It also reads what came together with the answer that opens the gate: else a loop would wake for
 * that. */
void hli_conns_lead(const struct hli_readers *readers, struct hli_gate *gate, hli_ns deadline)
{
    struct lead_all all;

    lead_gather(&all, readers);
    while (all.count > 0 &&
           lead_sleep(all.conn, all.count, all.polled, gate, deadline) == LEAD_ON) {
        unsigned still = 0;
        for (unsigned i = 0; i < all.count; i++)
            if (lead_step(all.conn[i], all.polled[i]))
                all.conn[still++] = all.conn[i];
        all.count = still;
    }
    for (unsigned i = 0; i < all.count; i++)
        if (lead_resume(all.conn[i]))
            lead_leave(all.conn[i], false);
}

void hli_conn_listen(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline)
{
    hli_mutex_lock(&conn->mutex);
    bool leads = conn->is_open && hli_reader_try_lead(&conn->reader);
    hli_mutex_unlock(&conn->mutex);
    if (leads)
        hli_conn_lead(conn, gate, deadline);
}
