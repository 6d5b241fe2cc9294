/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Leading: poll, receive, tell. */
#include "redis/lead.h"

#include "redis/inbox.h"

#include <poll.h>
#include <time.h>

enum {
    LEAD_VAIN_POLLS = 3, /* in a row, then it pauses */
    LEAD_MIN_PAUSE = 16, /* so many times, doubled as long as it is in vain */
    LEAD_MAX_PAUSE = 1024,
    LEAD_GAP_NS = 20 * 1000, /* one look at the socket takes less, unless the core is given away */
};

enum lead_next { LEAD_ON, LEAD_RUNG, LEAD_ENOUGH, LEAD_TO_LOOP };

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

/* Slowly back, for beside others some polls are worth it by chance. */
void hli_lead_has_polled(struct hli_lead_polling *polling, bool was_worth_it)
{
    polling->in_vain = was_worth_it ? 0 : polling->in_vain + 1;
    if (was_worth_it)
        polling->pause = polling->pause / 2 < LEAD_MIN_PAUSE ? 0 : polling->pause / 2;
    else if (polling->pause > 0 || polling->in_vain >= LEAD_VAIN_POLLS)
        polling->pause = lead_longer_pause(polling->pause);
    polling->left_out = polling->pause;
}

static enum lead_next lead_tell(struct hli_conn *conn)
{
    struct hli_reply *reply;
    int rc;

    while ((rc = hli_reader_next(&conn->reader, &reply)) == 0 && reply) {
        if (!hli_inbox_tell_plain(conn, reply)) {
            hli_reader_put_back(&conn->reader, reply);
            return LEAD_TO_LOOP;
        }
        hli_reply_free(reply);
    }
    if (rc < 0)
        return LEAD_TO_LOOP;
    /* All is answered, and not what it waits for: no answer will be that. A message may. */
    return hli_inbox_is_led_for_messages(conn) || !hli_inbox_is_idle(conn) ? LEAD_ON : LEAD_ENOUGH;
}

static enum lead_next lead_read(struct hli_conn *conn)
{
    enum hli_received received = hli_reader_receive(&conn->reader);

    if (received == HLI_RECEIVED)
        return lead_tell(conn);
    return received == HLI_RECEIVED_NOTHING ? LEAD_ON : LEAD_TO_LOOP;
}

static void lead_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* With others' requests in flight there is other work for this core. */
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

/* It was worth it if the answer came while it looked, and nobody else had this core meanwhile: one
 * who sleeps would have been woken before those who only compute. */
static enum lead_next lead_poll_busily(struct hli_conn *conn, const struct hli_gate *gate)
{
    hli_ns now = hli_now(), end = now + conn->polling.ns, before = now;
    enum lead_next next = lead_read(conn);

    if (lead_is_over(next, gate))
        return next; /* here it was without any polling */
    while (now < end && now - before < LEAD_GAP_NS && lead_is_alone(&conn->reader) &&
           !lead_is_recalled(&conn->reader) && !lead_is_over(next, gate)) {
        lead_relax();
        next = lead_read(conn);
        before = now;
        now = hli_now();
    }
    bool is_over = lead_is_over(next, gate);
    if (is_over || lead_is_alone(&conn->reader))
        hli_lead_has_polled(&conn->polling, is_over && now - before < LEAD_GAP_NS);
    return next;
}

/* Until there is something to read, the bell rings, or the deadline comes. What is polled may be
 * closed meanwhile, if the loop takes over: nothing is read here. */
static enum lead_next lead_sleep(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline)
{
    struct pollfd polled[] = {{.fd = atomic_load(&conn->fd), .events = POLLIN},
                              {.fd = atomic_load(&conn->reader.bell.fd), .events = POLLIN}};
    hli_ns left = deadline == HLI_NEVER ? 0 : hli_later(deadline - hli_now(), 0);
    struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};

    if (!hli_gate_hang(gate, &conn->reader.bell))
        return LEAD_ENOUGH;
    int ready = ppoll(polled, 2, deadline == HLI_NEVER ? NULL : &timeout, NULL);
    hli_gate_take_down(gate);
    return ready == 0 ? LEAD_ENOUGH : polled[1].revents ? LEAD_RUNG : LEAD_ON;
}

static bool lead_resume(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool leads = hli_reader_resume(&conn->reader);
    pthread_mutex_unlock(&conn->mutex);
    return leads;
}

/* Unless the loop waits for it to leave. */
static enum lead_next lead_pause(struct hli_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool is_recalled = lead_is_recalled(&conn->reader);
    if (!is_recalled)
        hli_reader_pause(&conn->reader);
    pthread_mutex_unlock(&conn->mutex);
    return is_recalled ? LEAD_ENOUGH : LEAD_ON;
}

/* A bell may be late, of one who led before. */
static enum lead_next lead_wake(struct hli_conn *conn, enum lead_next woken)
{
    if (woken == LEAD_RUNG)
        hli_buzzer_hush(&conn->reader.bell);
    return lead_read(conn);
}

void hli_conn_lead(struct hli_conn *conn, struct hli_gate *gate, hli_ns deadline)
{
    bool polls = lead_is_alone(&conn->reader) && hli_lead_polls(&conn->polling);
    enum lead_next next = LEAD_ON;

    while (next == LEAD_ON) {
        enum lead_next woken = polls ? LEAD_ON : lead_sleep(conn, gate, deadline);
        if (!lead_resume(conn))
            return;
        next = polls ? lead_poll_busily(conn, gate) : lead_wake(conn, woken);
        if (next == LEAD_ON && (woken == LEAD_ENOUGH || !hli_gate_is_shut(gate)))
            next = LEAD_ENOUGH;
        if (next == LEAD_ON)
            next = lead_pause(conn);
        polls = false;
    }
    hli_inbox_leave(conn, next == LEAD_TO_LOOP);
}
