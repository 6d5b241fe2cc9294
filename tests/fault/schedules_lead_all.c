/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Connections that one thread leads together, without links: the test is their server, and says
 * when each byte comes and which answers are plain (integers are).
 */
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "base/check.h"
#include "redis/lead.h"
#include "support/test.h"

enum { REQUEST_MS = 60000, SOON_MS = 5000, CONNS = 3 };

static struct hli_loop *loop;
static struct hli_gate gate;
static struct hli_readers readers;
static atomic_int told, wanted; /* with so many answers the gate opens */
static sem_t ran;

static struct line {
    struct hli_conn conn;
    struct hli_op op;
    int peer;
    atomic_bool is_told;
    enum hli_verdict verdict;
    bool was_on_loop;
} lines[CONNS];

static void on_closed(struct hli_conn *conn, const hl_error *err)
{
    (void)conn, (void)err;
}

static bool integers_are_plain(const struct hli_op *op, const struct hli_reply *reply)
{
    (void)op;
    return reply->kind == HLI_REPLY_INTEGER;
}

static const struct hli_conn_events events = {.closed = on_closed, .is_plain = integers_are_plain};

static void on_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct line *line = HLI_OF(op, struct line, op);
    line->verdict = answer->verdict;
    line->was_on_loop = hli_loop_is_current(loop);
    atomic_store(&line->is_told, true);
    if (atomic_fetch_add(&told, 1) + 1 == wanted)
        hli_gate_open(&gate);
}

static void on_bell(void *arg)
{
    (void)arg;
}

static void on_loop(void (*run)(void *arg), struct line *line)
{
    struct hli_task task = {.run = run, .arg = line};
    hli_loop_post(loop, &task);
    while (sem_wait(&ran) != 0)
        ;
}

static void task_open(void *arg)
{
    struct line *line = arg;
    int pair[2];
    check_int(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    line->peer = pair[1];
    check_int(hli_conn_open(&line->conn, pair[0], NULL), 0);
    sem_post(&ran);
}

static void task_close(void *arg)
{
    hl_error err = {.code = HL_ECONN, .text = "the test is over"};
    hli_conn_close(&((struct line *)arg)->conn, &err);
    sem_post(&ran);
}

static void task_open_gate(void *arg)
{
    (void)arg;
    hli_gate_open(&gate);
    sem_post(&ran);
}

static void begin(void)
{
    const struct hli_bytes word = hli_bytes_of("PING");
    sem_init(&ran, 0, 0);
    wanted = CONNS;
    check_int(hli_loop_start(&loop, on_bell, NULL), 0);
    for (int i = 0; i < CONNS; i++) {
        struct line *line = &lines[i];
        hli_conn_init(&line->conn, loop, &events, NULL);
        line->conn.request_timeout_ms = REQUEST_MS;
        line->op.done = on_done;
        check_int(hli_op_command(&line->op, &word, 1), 0);
        on_loop(task_open, line);
        readers.reader[readers.count++] = &line->conn.reader;
    }
}

static void end(void)
{
    for (int i = 0; i < CONNS; i++)
        on_loop(task_close, &lines[i]);
    hli_loop_stop(loop);
    for (int i = 0; i < CONNS; i++) {
        hli_conn_deinit(&lines[i].conn);
        hli_op_deinit(&lines[i].op);
        close(lines[i].peer);
    }
    hli_loop_free(loop);
}

#define LeadAllLaw(name) Test(schedules_lead_all, name, .init = begin, .fini = end)

static void peer_says(int i, const char *text)
{
    check_int(send(lines[i].peer, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

static void send_to(int count)
{
    hli_readers_lead_begin(&readers);
    for (int i = 0; i < count; i++)
        check(hli_conn_send(&lines[i].conn, &lines[i].op, HLI_CONN_AT_ONCE));
    hli_readers_lead_end();
}

static void *lead_run(void *arg)
{
    (void)arg;
    send_to(CONNS);
    hli_conns_lead(&readers, &gate, HLI_NEVER);
    check_int(hli_gate_wait(&gate, hli_after_ms(hli_now(), slow_ms(SOON_MS))), HLI_GATE_OPEN);
    return NULL;
}

static pthread_t lead_start(void)
{
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, lead_run, NULL), 0);
    for (int i = 0; i < CONNS; i++) {
        struct pollfd polled = {.fd = lines[i].peer, .events = POLLIN};
        check_int(poll(&polled, 1, (int)slow_ms(SOON_MS)), 1);
    }
    return thread;
}

static bool line_is_told(void *arg)
{
    return atomic_load(&((struct line *)arg)->is_told);
}

static void await(struct line *line)
{
    check(wait_until(line_is_told, line, SOON_MS));
}

/* Is the loop told of an answer that comes now? */
static bool is_armed(struct line *line)
{
    pthread_mutex_lock(&line->conn.mutex);
    bool is_armed = line->conn.reader.is_armed;
    pthread_mutex_unlock(&line->conn.mutex);
    return is_armed;
}

static bool has_role(struct line *line)
{
    pthread_mutex_lock(&line->conn.mutex);
    bool is_led = line->conn.reader.leader != NULL;
    pthread_mutex_unlock(&line->conn.mutex);
    return is_led;
}

LeadAllLaw(tells_the_answers_of_all_in_its_own_thread)
{
    send_to(CONNS);
    for (int i = 0; i < CONNS; i++)
        peer_says(i, ":1\r\n");
    hli_conns_lead(&readers, &gate, HLI_NEVER);
    check(hli_gate_is_open(&gate));
    for (int i = 0; i < CONNS; i++) {
        check(lines[i].verdict == HLI_REPLIED && !lines[i].was_on_loop);
        check(!has_role(&lines[i]));
    }
}

/* A connection on which this thread sent nothing stays the loop's. */
LeadAllLaw(leads_only_where_it_has_sent)
{
    send_to(1);
    check(has_role(&lines[0]) && !has_role(&lines[1]));
    peer_says(0, ":1\r\n");
    hli_conns_lead(&readers, &gate, HLI_NEVER);
    check(!lines[0].was_on_loop);
    check(hli_conn_send(&lines[1].conn, &lines[1].op, HLI_CONN_AT_ONCE));
    peer_says(1, ":1\r\n");
    await(&lines[1]);
    check(lines[1].was_on_loop);
}

LeadAllLaw(leaves_the_late_answers_to_the_loop)
{
    wanted = 2;
    send_to(CONNS);
    peer_says(2, ":1\r\n");
    peer_says(0, ":1\r\n");
    hli_conns_lead(&readers, &gate, HLI_NEVER);
    check(hli_gate_is_open(&gate));
    check(!lines[0].was_on_loop && !lines[2].was_on_loop);
    check(is_armed(&lines[1]));
    peer_says(1, ":1\r\n");
    await(&lines[1]);
    check(lines[1].was_on_loop);
}

LeadAllLaw(leaves_an_answer_that_is_not_plain_to_the_loop_and_goes_on)
{
    pthread_t thread = lead_start();
    peer_says(1, "-ERR no\r\n");
    await(&lines[1]);
    check(lines[1].verdict == HLI_REFUSED && lines[1].was_on_loop);
    peer_says(0, ":1\r\n");
    peer_says(2, ":1\r\n");
    pthread_join(thread, NULL);
    check(!lines[0].was_on_loop && !lines[2].was_on_loop);
}

static bool gate_is_polled(void *arg)
{
    (void)arg;
    return atomic_load(&gate.state) >= HLI_GATE_POLLED_AT;
}

static bool gate_has_left(void *state)
{
    return atomic_load(&gate.state) != *(int *)state;
}

/* The loop takes the role of one; the others are still this thread's. Their answers come when the
 * thread has seen the close: else it would read them with the same look. */
LeadAllLaw(goes_on_when_one_is_closed)
{
    pthread_t thread = lead_start();
    check(wait_until(gate_is_polled, NULL, SOON_MS));
    int polled_at = atomic_load(&gate.state);
    on_loop(task_close, &lines[0]);
    check(lines[0].verdict == HLI_UNKNOWN && lines[0].was_on_loop);
    check(wait_until(gate_has_left, &polled_at, SOON_MS));
    peer_says(1, ":1\r\n");
    peer_says(2, ":1\r\n");
    pthread_join(thread, NULL);
    check(!lines[1].was_on_loop && !lines[2].was_on_loop);
}

LeadAllLaw(goes_when_all_are_closed)
{
    pthread_t thread = lead_start();
    for (int i = 0; i < CONNS; i++)
        on_loop(task_close, &lines[i]);
    pthread_join(thread, NULL);
}

/* Also by a thread that opens the gate when the first connection is not led any more. */
LeadAllLaw(goes_when_its_gate_is_opened)
{
    pthread_t thread = lead_start();
    peer_says(0, ":1\r\n");
    await(&lines[0]);
    on_loop(task_open_gate, NULL);
    pthread_join(thread, NULL);
    for (int i = 1; i < CONNS; i++) {
        check(is_armed(&lines[i]));
        peer_says(i, ":1\r\n");
        await(&lines[i]);
        check(lines[i].was_on_loop);
    }
}

LeadAllLaw(goes_when_its_deadline_comes)
{
    send_to(CONNS);
    hli_conns_lead(&readers, &gate, hli_after_ms(hli_now(), 10));
    check(hli_gate_is_shut(&gate));
    for (int i = 0; i < CONNS; i++) {
        check(is_armed(&lines[i]) && !has_role(&lines[i]));
        peer_says(i, ":1\r\n");
        await(&lines[i]);
        check(lines[i].was_on_loop);
    }
}

LeadAllLaw(goes_when_no_answer_is_to_come)
{
    wanted = CONNS + 1; /* another event opens the gate */
    send_to(CONNS);
    for (int i = 0; i < CONNS; i++)
        peer_says(i, ":1\r\n");
    hli_conns_lead(&readers, &gate, HLI_NEVER);
    check(hli_gate_is_shut(&gate));
    for (int i = 0; i < CONNS; i++)
        check(!lines[i].was_on_loop && !has_role(&lines[i]));
}
