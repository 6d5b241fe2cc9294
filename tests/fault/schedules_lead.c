/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * One connection that is led, without a link: the test is its server, and says when each byte comes
 * and which answers are plain (integers are).
 */
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "redis/lead.h"
#include "support/test.h"

enum { REQUEST_MS = 60000, SOON_MS = 5000, OPS = 4 };

static struct hli_loop *loop;
static struct hli_conn conn;
static int peer;
static struct hli_task task;
static sem_t ran;

static struct asked {
    struct hli_op op;
    struct hli_gate gate;
    enum hli_verdict verdict;
    bool was_on_loop;
    int turn; /* in which it was told: 1, 2, ... */
} asked[OPS];
static atomic_int turns, closed_turn, closed_code;
static sem_t in_done, may_go_on;
static bool done_waits;

static void sem_take(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

static void on_closed(struct hli_conn *which, const hl_error *err)
{
    (void)which;
    closed_code = err->code;
    closed_turn = ++turns;
}

static bool integers_are_plain(const struct hli_op *op, const struct hli_reply *reply)
{
    (void)op;
    return reply->kind == HLI_REPLY_INTEGER;
}

static const struct hli_conn_events events = {.closed = on_closed, .is_plain = integers_are_plain};

static void on_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct asked *one = (struct asked *)(void *)op; /* its first member */
    one->verdict = answer->verdict;
    one->was_on_loop = hli_loop_is_current(loop);
    if (done_waits) {
        sem_post(&in_done);
        sem_take(&may_go_on);
    }
    one->turn = ++turns;
    hli_gate_open(&one->gate);
}

static void on_bell(void *arg)
{
    (void)arg;
}

static void on_loop(void (*run)(void *arg))
{
    task = (struct hli_task){.run = run};
    hli_loop_post(loop, &task);
    sem_take(&ran);
}

static void task_open(void *arg)
{
    int pair[2];
    (void)arg;
    check_int(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    peer = pair[1];
    check_int(hli_conn_open(&conn, pair[0], NULL), 0);
    sem_post(&ran);
}

static void task_close(void *arg)
{
    hl_error err = {.code = HL_ECONN, .text = "the test is over"};
    (void)arg;
    hli_conn_close(&conn, &err);
    sem_post(&ran);
}

static void begin(void)
{
    const struct hli_bytes word = hli_bytes_of("PING");
    sem_init(&ran, 0, 0);
    sem_init(&in_done, 0, 0);
    sem_init(&may_go_on, 0, 0);
    check_int(hli_loop_start(&loop, on_bell, NULL), 0);
    hli_conn_init(&conn, loop, &events, NULL);
    conn.request_timeout_ms = REQUEST_MS;
    for (int i = 0; i < OPS; i++) {
        asked[i].op.done = on_done;
        check_int(hli_op_command(&asked[i].op, &word, 1), 0);
    }
    on_loop(task_open);
}

static void end(void)
{
    on_loop(task_close);
    hli_loop_stop(loop);
    hli_conn_deinit(&conn);
    hli_loop_free(loop);
    for (int i = 0; i < OPS; i++)
        hli_op_deinit(&asked[i].op);
    close(peer);
}

#define ReaderLaw(name) Test(schedules_lead, name, .init = begin, .fini = end)

static void peer_says(const char *text)
{
    check_int(send(peer, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

static void send_and_promise(struct asked *one)
{
    hli_reader_lead_begin(&conn.reader);
    check(hli_conn_send(&conn, &one->op, HLI_CONN_AT_ONCE));
    check(hli_reader_lead_end(&conn.reader));
}

static void await(struct asked *one)
{
    check_int(hli_gate_wait(&one->gate, hli_after_ms(hli_now(), slow_ms(SOON_MS))), HLI_GATE_OPEN);
}

static bool is_closed(void *arg)
{
    (void)arg;
    return closed_turn > 0;
}

static void *lead_run(void *arg)
{
    struct asked *one = arg;
    send_and_promise(one);
    hli_conn_lead(&conn, &one->gate, HLI_NEVER);
    await(one);
    return NULL;
}

static pthread_t lead_start(struct asked *one)
{
    struct pollfd polled = {.fd = peer, .events = POLLIN};
    char bytes[256];
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, lead_run, one), 0);
    check_int(poll(&polled, 1, (int)slow_ms(SOON_MS)), 1);
    check(recv(peer, bytes, sizeof bytes, 0) > 0);
    return thread;
}

ReaderLaw(tells_a_plain_answer_in_its_own_thread)
{
    send_and_promise(&asked[0]);
    peer_says(":1\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    check(hli_gate_is_open(&asked[0].gate));
    check(asked[0].verdict == HLI_REPLIED && !asked[0].was_on_loop);
}

ReaderLaw(leaves_any_other_answer_to_the_loop)
{
    send_and_promise(&asked[0]);
    peer_says("-ERR no\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    await(&asked[0]);
    check(asked[0].verdict == HLI_REFUSED && asked[0].was_on_loop);
}

/* The second one is plain, but behind one that is not. */
ReaderLaw(tells_answers_in_order)
{
    send_and_promise(&asked[0]);
    for (int i = 1; i < OPS; i++)
        check(hli_conn_send(&conn, &asked[i].op, HLI_CONN_AT_ONCE));
    peer_says(":1\r\n+OK\r\n:2\r\n:");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    peer_says("3\r\n");
    for (int i = 0; i < OPS; i++) {
        await(&asked[i]);
        check_int(asked[i].turn, i + 1);
        check_int(asked[i].was_on_loop, i > 0);
    }
}

ReaderLaw(reads_for_others_while_it_waits)
{
    hli_reader_lead_begin(&conn.reader);
    check(hli_conn_send(&conn, &asked[1].op, HLI_CONN_AT_ONCE)); /* no call waits for it here */
    check(hli_conn_send(&conn, &asked[0].op, HLI_CONN_AT_ONCE));
    check(hli_reader_lead_end(&conn.reader));
    peer_says(":1\r\n:2\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    check(asked[1].turn == 1 && asked[0].turn == 2 && !asked[1].was_on_loop);
}

ReaderLaw(leaves_junk_to_the_loop)
{
    send_and_promise(&asked[0]);
    peer_says("HTTP/1.1 400 Bad Request\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    await(&asked[0]);
    check(asked[0].verdict == HLI_UNKNOWN && asked[0].was_on_loop);
    check(closed_turn == 1 && closed_code == HL_EPROTO);
}

ReaderLaw(leaves_the_end_of_the_connection_to_the_loop)
{
    send_and_promise(&asked[0]);
    shutdown(peer, SHUT_RDWR);
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    await(&asked[0]);
    check(asked[0].verdict == HLI_UNKNOWN && asked[0].was_on_loop);
    check(closed_turn == 1 && closed_code == HL_ECONN);
}

/* At rest the loop is not armed. */
ReaderLaw(leaves_a_connection_whose_end_is_noticed_at_rest)
{
    send_and_promise(&asked[0]);
    peer_says(":1\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    shutdown(peer, SHUT_RDWR);
    check(wait_until(is_closed, NULL, SOON_MS));
}

ReaderLaw(leaves_a_connection_whose_end_may_come_with_the_answer)
{
    pthread_t thread = lead_start(&asked[0]);
    peer_says(":1\r\n");
    shutdown(peer, SHUT_RDWR);
    pthread_join(thread, NULL);
    check_int(asked[0].verdict, HLI_REPLIED);
    check(wait_until(is_closed, NULL, SOON_MS));
}

ReaderLaw(leaves_a_connection_whose_surplus_is_noticed_at_rest)
{
    send_and_promise(&asked[0]);
    peer_says(":1\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    peer_says(":2\r\n");
    check(wait_until(is_closed, NULL, SOON_MS));
    check_int(closed_code, HL_EPROTO);
}

ReaderLaw(finds_surplus_beside_its_answer)
{
    send_and_promise(&asked[0]);
    peer_says(":1\r\n:2\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    check_int(asked[0].verdict, HLI_REPLIED);
    check(wait_until(is_closed, NULL, SOON_MS));
    check_int(closed_code, HL_EPROTO);
}

/* At once, and not only when the connection has been at rest for a while. */
static void check_armed(void)
{
    pthread_mutex_lock(&conn.mutex);
    check(conn.reader.is_armed);
    pthread_mutex_unlock(&conn.mutex);
}

/* The loop reads the answers that are in flight when a leader leaves. */
ReaderLaw(goes_when_its_deadline_comes)
{
    send_and_promise(&asked[0]);
    hli_conn_lead(&conn, &asked[0].gate, hli_after_ms(hli_now(), 10));
    check(hli_gate_is_shut(&asked[0].gate));
    check_armed();
    peer_says(":1\r\n");
    await(&asked[0]);
    check(asked[0].was_on_loop);
}

ReaderLaw(goes_when_its_gate_is_poked)
{
    send_and_promise(&asked[0]);
    hli_gate_nudge(&asked[0].gate);
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    check_int(hli_gate_wait(&asked[0].gate, 0), HLI_GATE_NUDGED);
    check_armed();
    peer_says(":1\r\n");
    await(&asked[0]);
    check(asked[0].was_on_loop);
}

/* Asleep: its request ends as unknown, and it is woken to wait at its gate. */
ReaderLaw(is_woken_by_a_close)
{
    pthread_t thread = lead_start(&asked[0]);
    on_loop(task_close);
    pthread_join(thread, NULL);
    check(asked[0].verdict == HLI_UNKNOWN && asked[0].was_on_loop);
}

static void task_close_without_a_word(void *arg)
{
    hl_error err = {.code = HL_ECONN, .text = "the test closes it"};
    (void)arg;
    hli_conn_close(&conn, &err);
}

/* In the middle of the callbacks: a callback that learns of the close finds the connection quiet.
 */
ReaderLaw(is_waited_for_by_a_close)
{
    struct hli_task closing = {.run = task_close_without_a_word};
    pthread_t thread = lead_start(&asked[0]);
    done_waits = true;
    peer_says(":1\r\n");
    sem_take(&in_done);
    hli_loop_post(loop, &closing);
    struct deadline deadline = deadline_of_wait(SOON_MS);
    while (!atomic_load(&conn.reader.is_recalled) && !deadline_is_over(deadline))
        deadline_nap();
    check_int(closed_turn, 0);
    done_waits = false;
    sem_post(&may_go_on);
    pthread_join(thread, NULL);
    check(wait_until(is_closed, NULL, SOON_MS));
    check(asked[0].turn == 1 && closed_turn == 2 && !asked[0].was_on_loop);
}

ReaderLaw(is_followed_by_the_loop_for_one_who_does_not_promise)
{
    send_and_promise(&asked[0]);
    peer_says(":1\r\n");
    hli_conn_lead(&conn, &asked[0].gate, HLI_NEVER);
    check(hli_conn_send(&conn, &asked[1].op, HLI_CONN_AT_ONCE));
    check_armed();
    peer_says(":2\r\n");
    await(&asked[1]);
    check(asked[1].was_on_loop);
}

/* A connection that is opened anew has forgotten who led the old one. */
ReaderLaw(leads_the_next_connection_too)
{
    for (int i = 0; i < OPS; i++) {
        pthread_t thread = lead_start(&asked[i]);
        if (i % 2 == 0)
            peer_says(":1\r\n");
        else
            on_loop(task_close);
        pthread_join(thread, NULL);
        check_int(asked[i].verdict, i % 2 == 0 ? HLI_REPLIED : HLI_UNKNOWN);
        if (i % 2 == 0)
            on_loop(task_close);
        close(peer);
        on_loop(task_open);
    }
}
